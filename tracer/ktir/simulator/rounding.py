"""One rounding, to nearest even, from float64, float32 or an integer to any element type.

torch goes through float32 where it makes a 16-bit or 8-bit float of a float64 or an integer, which rounds
twice. Here the first step rounds to odd: of the two neighbours of an inexact value, the one whose last bit is
set. Rounding that to nearest, to a type of at least two bits less, gives the nearest of the value itself
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Transactions on Computers 57, 2008).

f8E4M3FN has no infinity: what rounds past its largest number, 448, becomes NaN, infinity too. So does
`APFloat::convert`, by which MLIR folds constants; torch and some hardware saturate instead.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

# Half-way from the largest f8E4M3FN to the next number there would be; the tie rounds down, to even.
_E4M3_LIMIT = 464.0
_EXACT = 1 << 53


def narrowed(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Floats of any type rounded once to the float type `dtype`."""
    if value.dtype == torch.float64 and dtype not in (torch.float64, torch.float32):
        value = _odd_single(value)
    if dtype == torch.float8_e4m3fn and value.dtype != dtype:
        value = value.to(torch.float32)
        value = torch.where(value.abs() > _E4M3_LIMIT, torch.nan, value)
    return value.to(dtype)


def to_odd(value: Tensor, error: Tensor) -> Tensor:
    """`value + error` rounded to odd, where `value` (f32 or f64) is that sum rounded to nearest."""
    bits = value.view(torch.int64 if value.dtype == torch.float64 else torch.int32)
    inexact = (error != 0) & torch.isfinite(value) & torch.isfinite(error) & ((bits & 1) == 0)
    # The next bit pattern is farther from zero, on either side of it.
    step = torch.where((error > 0) == (value > 0), 1, -1).to(bits.dtype)
    return torch.where(inexact, bits + step, bits).view(value.dtype)


def _odd_single(value: Tensor) -> Tensor:
    single = value.to(torch.float32)
    # A value that vanishes in f32 does so in every narrower type.
    vanished = single == 0
    return torch.where(vanished, single, to_odd(single, value - single.to(torch.float64)))


def from_integers(value: Tensor, dtype: torch.dtype, *, signed: bool) -> Tensor:
    """Integers, read as signed or as unsigned, rounded once to the float type `dtype`; i1 true is -1 or 1."""
    if value.dtype == torch.bool:
        held = value.to(torch.float32)
        return narrowed(torch.where(value, -held, held) if signed else held, dtype)
    if value.dtype != torch.int64:
        # Exact in f32 (8 and 16 bits) or in f64.
        exact = torch.float64 if value.dtype == torch.int32 else torch.float32
        if signed:
            return value.to(dtype) if dtype == torch.float32 else narrowed(value.to(exact), dtype)
        plain = value.to(torch.int64) & ((1 << (8 * value.element_size())) - 1)
        return narrowed(plain.to(exact), dtype)
    if signed and dtype in (torch.float32, torch.float64):
        return value.to(dtype)
    if signed:
        return narrowed(_sticky(value, 10).to(torch.float64), dtype)
    array = value.contiguous().numpy().view(np.uint64)
    if dtype in (torch.float32, torch.float64):
        exactly = array.astype(np.float32 if dtype == torch.float32 else np.float64)
        return torch.from_numpy(np.asarray(exactly))
    # Half of a number that needs bit 63, its last bit kept odd, so that it is a signed one.
    high = value < 0
    halved = ((value >> 1) & ((1 << 63) - 1)) | (value & 1)
    double = _sticky(torch.where(high, halved, value), 10).to(torch.float64)
    return narrowed(torch.where(high, 2.0 * double, double), dtype)


def _sticky(value: Tensor, bits: int) -> Tensor:
    """Integers that f64 holds exactly and that every narrower float rounds as it does `value`."""
    odd = (value >> bits << bits) | ((value & ((1 << bits) - 1)) != 0).to(torch.int64) << bits
    return torch.where((value >= _EXACT) | (value <= -_EXACT), odd, value)
