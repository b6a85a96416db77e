"""Read a generated folder back: its stages as SpyreKernels, without running any of its code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from tracer.emit.errors import NoFolder
from tracer.emit.layout import definitions
from tracer.rewrite.kernel import Parameter, Plan, SpyreKernel


def read_kernels(folder: Path) -> tuple[SpyreKernel, ...]:
    """The kernels of a folder in launch order, from wrapper.py and triton_kernel.py.

    A plan's numbers are not in the folder; they are 0.

    Raises:
        NoFolder: `folder` is not what the tool generates.
    """
    try:
        wrapper = _assignments(_tree(folder, "wrapper.py"))
        _tree(folder, "triton_kernel.py")
        source = (folder / "triton_kernel.py").read_text(encoding="utf-8")
        functions = {_name(text): text for text in definitions([source])}
        stages = [_stage(node) for node in wrapper["STAGES"].elts]
        names = {stage["kernel"] for stage in stages}
        if missing := names - set(functions):
            raise NoFolder(folder=folder, detail=f"triton_kernel.py has no {min(missing)}")
        helpers = [text for name, text in functions.items() if name and name not in names]
        kernels = []
        for stage in stages:
            signature = _signature(wrapper, stage["kernel"])
            values = stage["args"] | stage["constexpr"]
            parameters = tuple(Parameter(name, kind, values[name]) for name, kind in signature.items())
            text = "\n\n\n".join([*helpers, functions[stage["kernel"]], ""]).rstrip("\n") + "\n"
            grid = stage["grid"][0]
            kernels.append(SpyreKernel(stage["kernel"], text, parameters, grid, Plan(0, grid, 0, 0)))
    except OSError as error:
        detail = f"{Path(error.filename).name}: {error.strerror}" if error.filename else str(error)
        raise NoFolder(folder=folder, detail=detail) from error
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise NoFolder(folder=folder, detail=f"wrapper.py is not as generated ({error})") from error
    return tuple(kernels)


def read_identity(folder: Path) -> str:
    """The identity of a folder's op, from its wrapper.py. Raises NoFolder."""
    try:
        return str(ast.literal_eval(_assignments(_tree(folder, "wrapper.py"))["CALL"]))
    except (OSError, KeyError, ValueError) as error:
        raise NoFolder(folder=folder, detail="its wrapper.py has no CALL") from error


def _tree(folder: Path, name: str) -> ast.Module:
    try:
        return ast.parse((folder / name).read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise NoFolder(folder=folder, detail=f"line {error.lineno} of {name}: {error.msg}") from error
    except ValueError as error:
        raise NoFolder(folder=folder, detail=f"{name} is no Python text ({error})") from error


def _assignments(tree: ast.Module) -> dict[str, Any]:
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _stage(node: ast.Call) -> dict[str, Any]:
    fields = {keyword.arg: keyword.value for keyword in node.keywords}
    kernel = fields.pop("kernel")
    if not isinstance(kernel, ast.Attribute):
        raise ValueError("a stage names no kernel")
    return {"kernel": kernel.attr, **{str(name): ast.literal_eval(value) for name, value in fields.items()}}


def _signature(wrapper: dict[str, Any], kernel: str) -> dict[str, str]:
    if "SIGNATURE" in wrapper:
        return ast.literal_eval(wrapper["SIGNATURE"])
    return ast.literal_eval(wrapper["SIGNATURES"])[kernel]


def _name(definition: str) -> str:
    (node,) = ast.parse(definition).body
    return node.name if isinstance(node, ast.FunctionDef) else ""
