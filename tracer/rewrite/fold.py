"""Constant folding while parsing: Inductor writes arithmetic on literals out."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from tracer.rewrite.ir import Const, Operand
from tracer.rewrite.types import is_float, promote

# Python agrees with Triton on these for literals that the dtype holds exactly.
_FOLD: dict[str, Callable[..., bool | int | float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "minimum": min, "maximum": max, "and": operator.and_, "or": operator.or_,
}  # fmt: skip
# Whole numbers up to here are exact in the dtype, sums and products that stay below included.
_WHOLE = {"float32": 2**24, "float64": 2**53}


def fold(op: str, args: Sequence[Operand]) -> Operand | None:
    """The value of an op on whole or boolean literals, or the branch of a literal `where`; else None.

    Floating-point arithmetic that may round is left to the kernel: its rounding is the dtype's, not Python's.
    """
    if op == "where" and isinstance(args[0], Const):
        return args[1] if args[0].value else args[2]
    if op == "signbit" and isinstance(args[0], Const):
        return Const(math.copysign(1, args[0].value) < 0, "int1")
    constants = [a for a in args if isinstance(a, Const)]
    if op not in _FOLD or not args or len(constants) < len(args):
        return None
    floats = {c.dtype for c in constants if is_float(c.dtype)}
    if floats and (len({c.dtype for c in constants}) > 1 or not floats <= set(_WHOLE)):
        return None
    value = _FOLD[op](*(c.value for c in constants))
    if any(
        not _whole(number, dtype) for dtype in floats for number in (value, *(c.value for c in constants))
    ):
        return None
    dtype = "int1" if isinstance(value, bool) else promote(constants, [c.dtype for c in constants])
    return Const(value, dtype)


def _whole(number: float, dtype: str) -> bool:
    return math.isfinite(number) and number == int(number) and abs(number) <= _WHOLE[dtype]


def cast_constant(constant: Const, dtype: str) -> Const:
    """A literal of another dtype, converted as Triton does: towards zero, to true where not zero."""
    if is_float(dtype):
        return Const(float(constant.value), dtype)
    return Const(bool(constant.value) if dtype == "int1" else int(constant.value), dtype)
