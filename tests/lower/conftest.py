"""What the tests of the lowering share: kernels by name, the IR after any pass, and ordered text checks."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tracer.ktir.text.module import print_module
from tracer.lower import lowering
from tracer.lower.ktir_text import Ktir
from tracer.lower.lowering import lower_source, pipeline
from tracer.lower.manager import Job, run_passes
from tracer.lower.reader import parse_ttir
from tracer.lower.ttir import generate_ttir
from tracer.target import SPYRE

KERNELS = (Path(__file__).parent / "data" / "kernels.py").read_text()


def signature(name: str, pointers: dict[str, str], source: str = KERNELS) -> dict[str, str]:
    """Parameter types of a kernel: pointers as given, constexprs as annotated, the rest i32."""
    functions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
    return {
        a.arg: pointers.get(a.arg, "constexpr" if a.annotation is not None else "i32")
        for a in functions[name].args.args
    }


@pytest.fixture(scope="session", autouse=True)
def verified_passes() -> Iterator[None]:
    """Whatever is lowered in these tests is verified after every pass."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "run_passes", functools.partial(run_passes, verify_each=True))
        yield


@pytest.fixture(scope="session")
def source() -> str:
    """Text of the sample kernels."""
    return KERNELS


@pytest.fixture(scope="session")
def lowered() -> Callable[..., Ktir]:
    """`lowered(name, {pointer: type}, values, profile=...)`: KTIR of a sample kernel; CORES is the grid."""

    def run(name: str, pointers: dict[str, str], values: dict[str, int], **options: str) -> Ktir:
        types = signature(name, pointers)
        return lower_source(KERNELS, name, types, values, values["CORES"], **options)  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def module_after() -> Callable[..., ModuleOp]:
    """`module_after(pass_name, name, pointers, values)`: the IR right after the last run of a pass."""

    def run(until: str, name: str, pointers: dict[str, str], values: dict[str, int]) -> ModuleOp:
        ttir = generate_ttir(KERNELS, name, signature(name, pointers), values)
        module = parse_ttir(ttir.text)
        steps = pipeline()
        last = max((i for i, step in enumerate(steps) if step.name == until), default=-1)
        job = Job(name, KERNELS, values["CORES"], SPYRE)
        run_passes(module, job, steps[: last + 1], verify_each=True)
        return module

    return run


@pytest.fixture(scope="session")
def text_after(module_after: Callable[..., ModuleOp]) -> Callable[..., str]:
    """The printed form of `module_after`."""
    return lambda *args: print_module(module_after(*args))


@pytest.fixture(scope="session")
def in_order() -> Callable[..., None]:
    """`in_order(text, *parts, absent=(...))`: the parts occur in this order, and the others nowhere."""

    def check(text: str, *parts: str, absent: tuple[str, ...] = ()) -> None:
        position = 0
        for part in parts:
            found = text.find(part, position)
            assert found >= 0, f"no {part!r} after position {position} of\n{text}"
            position = found + len(part)
        for part in absent:
            assert part not in text, f"unexpected {part!r} in\n{text}"

    return check
