"""Element types: xDSL type, torch dtype, size in bytes, and rounding of Python scalars."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute

Scalar = int | float | bool


@dataclass(frozen=True)
class Element:
    """How elements of one type are held: `bits` is 1 for i1, whose tiles are torch.bool."""

    name: str
    dtype: torch.dtype
    bits: int
    is_float: bool

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory; i1 takes one."""
        return max(1, self.bits // 8)

    @property
    def narrow(self) -> bool:
        """Whether torch does no arithmetic in this dtype (fp8), so that it is done in f32 and rounded."""
        return self.dtype in (torch.float8_e4m3fn, torch.float8_e5m2)


_FLOATS: dict[type, Element] = {
    Float16Type: Element("f16", torch.float16, 16, True),
    BFloat16Type: Element("bf16", torch.bfloat16, 16, True),
    Float32Type: Element("f32", torch.float32, 32, True),
    Float64Type: Element("f64", torch.float64, 64, True),
    Float8E4M3FNType: Element("f8E4M3FN", torch.float8_e4m3fn, 8, True),
    Float8E5M2Type: Element("f8E5M2", torch.float8_e5m2, 8, True),
}
_INTS: dict[int, Element] = {
    1: Element("i1", torch.bool, 1, False),
    8: Element("i8", torch.int8, 8, False),
    16: Element("i16", torch.int16, 16, False),
    32: Element("i32", torch.int32, 32, False),
    64: Element("i64", torch.int64, 64, False),
}
INDEX = Element("index", torch.int64, 64, False)


class UnsupportedTypeError(ValueError):
    """An element type that the simulator does not hold."""


def element(type_: Attribute) -> Element:
    """The element of a scalar, tensor or memref type. Raises UnsupportedTypeError."""
    inner = getattr(type_, "element_type", type_)
    if isinstance(inner, IndexType):
        return INDEX
    if isinstance(inner, IntegerType) and inner.width.data in _INTS:
        return _INTS[inner.width.data]
    found = _FLOATS.get(type(inner))
    if found is None:
        raise UnsupportedTypeError(f"element type {inner} is not supported")
    return found


def is_tensor(type_: Attribute) -> bool:
    """Whether values of the type are tiles."""
    return isinstance(type_, TensorType)


def wrap(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as a signed integer; i1 stays 0 or 1."""
    if bits == 1:
        return value & 1
    half = 1 << (bits - 1)
    return (value + half) % (half << 1) - half


def unsigned(value: int, bits: int) -> int:
    """The unsigned reading of a signed integer of `bits` bits."""
    return value & ((1 << bits) - 1)


def _round_f16(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float16(value))


def _round_f32(value: float) -> float:
    return ctypes.c_float(value).value


def _to_digits(digits: int, least: int, largest: float, over: float) -> Callable[[float], float]:
    """Rounding to `digits` significant bits, down to the spacing of subnormals below 2**least; what rounds
    past `largest` becomes `over`, with its sign.
    """

    def rounded(value: float) -> float:
        if value == 0.0 or math.isnan(value):
            return value
        if math.isinf(value):
            return math.copysign(over, value)
        unit = math.ldexp(1.0, max(math.frexp(value)[1] - 1, least) - digits + 1)
        # round() is to nearest even; the scaling is exact.
        near = math.copysign(round(value / unit) * unit, value)
        return math.copysign(over, value) if abs(near) > largest else near

    return rounded


_ROUND: dict[str, Callable[[float], float]] = {
    "f16": _round_f16,
    "bf16": _to_digits(8, -126, float(torch.finfo(torch.bfloat16).max), math.inf),
    "f32": _round_f32,
    "f64": float,
    # No infinity: see `rounding`.
    "f8E4M3FN": _to_digits(4, -6, 448.0, math.nan),
    "f8E5M2": _to_digits(3, -14, 57344.0, math.inf),
}


def rounder(el: Element) -> Callable[[float], float]:
    """A function that rounds a float to the element type, to nearest even; float64 arithmetic rounded
    once more is exact for + - * / and sqrt in every narrower type, since 53 >= 2 * 24 + 2."""
    return _ROUND[el.name]
