"""TTIR text of a kernel from stock Triton, without a GPU and without touching the disk.

The frontend is driven directly with options of our own target: no dot minimum, no CUDA rule, no
driver. It reads source through `linecache`, where the text is registered under a name of its own.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import linecache
import math
import re
import textwrap
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracer.lower.errors import InterpretedTritonError, SourceRejectedError
from tracer.lower.locations import KERNEL_FILE

_LOCK = threading.Lock()
_FP8 = ("fp8e5", "fp8e4nv")


@dataclass(frozen=True)
class Ttir:
    """TTIR of one kernel. `text` carries locations whose line numbers count from 1 in `source`."""

    name: str
    text: str
    source: str

    def line(self, number: int) -> str:
        """The source line of that number; empty if there is none."""
        lines = self.source.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True)
class _Options:
    """What Triton's frontend asks of a target."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 1
    debug: bool = False
    sanitize_overflow: bool = False
    arch: str = "spyre"
    backend_name: str = "spyre"
    supported_fp8_dtypes: tuple[str, ...] = _FP8
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple[tuple[str, str], ...] = ()
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False


def generate_ttir(source: str, name: str, signature: Mapping[str, str], constants: Mapping[str, Any]) -> Ttir:
    """TTIR of the `@triton.jit` function `name` in `source`.

    `signature` maps every parameter to its Triton type (`*fp16`, `i32`, `constexpr`); those in
    `constants` are specialised to their values. `source` may lack its imports; `triton`, `tl`, `libdevice`
    and `math` are there. Raises SourceRejectedError and InterpretedTritonError.
    """
    with _LOCK:
        filename = _register(source)
        try:
            function = _jit_function(source, name, filename)
            specialised = {p: "constexpr" if p in constants else t for p, t in signature.items()}
            text = _compile(function, specialised, dict(constants), source)
        finally:
            linecache.cache.pop(filename, None)
    return Ttir(name, text, source)


@functools.lru_cache(maxsize=1)
def _context() -> Any:
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    return context


def _register(source: str) -> str:
    """A file name under which `inspect` finds the text. It reaches the locations, so it must not vary."""
    filename = f"{KERNEL_FILE}{hashlib.sha256(source.encode()).hexdigest()[:16]}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return filename


def _jit_function(source: str, name: str, filename: str) -> Any:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.jit import JITFunction

    if not isinstance(tl.sum, JITFunction):
        raise InterpretedTritonError(op=name)
    namespace = {
        "triton": triton,
        "tl": tl,
        "math": math,
        "libdevice": libdevice,
        "__name__": "tracer_kernel",
    }
    try:
        exec(compile(source, filename, "exec"), namespace)
    except Exception as error:
        number = getattr(error, "lineno", None) or 0
        raise SourceRejectedError(
            op=name, number=number, reason=f"{type(error).__name__}: {error}"
        ) from error
    function = namespace.get(name)
    if not isinstance(function, JITFunction):
        raise SourceRejectedError(op=name, number=0, reason=f"it defines no @triton.jit function {name}")
    return function


def _compile(function: Any, signature: dict[str, str], constants: dict[str, Any], source: str) -> str:
    from triton._C.libtriton import ir, passes
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.errors import CompilationError

    missing = sorted(set(function.arg_names) ^ set(signature))
    if missing:
        raise SourceRejectedError(
            op=function.__name__, number=0, reason=f"parameters and signature differ in {', '.join(missing)}"
        )
    context = _context()
    generators = {"min_dot_size": lambda lhs, rhs: (1, 1, 1), "convert_custom_types": None}
    try:
        module = ASTSource(function, signature, constants).make_ir(
            GPUTarget("spyre", 1, 1), _Options(), generators, _module_map(), context
        )
        manager = ir.pass_manager(context)
        passes.common.add_inliner(manager)
        passes.common.add_canonicalizer(manager)
        passes.ttir.add_reorder_broadcast(manager)
        passes.common.add_cse(manager)
        passes.common.add_symbol_dce(manager)
        manager.run(module, "make_ttir")
    except CompilationError as error:
        raise _rejection(error, function, source) from error
    except Exception as error:
        raise SourceRejectedError(op=function.__name__, number=0, reason=str(error)) from error
    return module.str()


def _module_map() -> dict[str, Any]:
    from triton.language.extra.cuda import libdevice

    return {"triton.language.extra.libdevice": libdevice}


def _rejection(error: Any, function: Any, source: str) -> SourceRejectedError:
    cause: BaseException = error
    while cause.__cause__ is not None and not getattr(cause, "error_message", None):
        cause = cause.__cause__
    reason = getattr(cause, "error_message", None) or str(cause)
    number = _line_of(error, function, source)
    line = source.splitlines()[number - 1] if number else None
    return SourceRejectedError(
        op=function.__name__, line=line, number=number, reason=" ".join(reason.split())
    )


def _line_of(error: Any, function: Any, source: str) -> int:
    """Line in `source` of the statement that failed, 0 if unknown. Triton counts from the `def` line."""
    if not isinstance(getattr(error, "node", None), ast.AST) or not hasattr(error.node, "lineno"):
        return 0
    if error.src is not None and textwrap.dedent(error.src) != textwrap.dedent(function.src):
        return 0
    lines = source.splitlines()
    start = next(
        (i for i, line in enumerate(lines) if re.match(rf"\s*def\s+{function.__name__}\b", line)), None
    )
    return 0 if start is None else min(start + error.node.lineno, len(lines))
