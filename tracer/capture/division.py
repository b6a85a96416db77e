"""Whole quotients of floating-point numbers, and decimals, rounded where PyTorch rounds them."""

from __future__ import annotations

from typing import Any

import torch

from tracer.capture.contraction import accumulator


def floor_divide(dividend: Any, divisor: Any, *, rounding_mode: str | None) -> Any:
    """`aten.div.Tensor_mode` and `Scalar_mode` with `rounding_mode="floor"` of floating-point numbers.

    The floor of a rounded quotient is one too many where the quotient is just below a whole number: 1 / 0.1,
    with 0.1 in float32, is 10 after rounding, and 9 is the answer.
    """
    dtype = torch.result_type(dividend, divisor)
    if rounding_mode != "floor" or not dtype.is_floating_point:
        return NotImplemented
    wide = accumulator(dtype)
    a, b = (
        x.to(wide) if isinstance(x, torch.Tensor) else torch.full((), x, dtype=wide)
        for x in (dividend, divisor)
    )
    rest = torch.fmod(a, b)
    quotient = (a - rest) / b
    quotient = torch.where((rest != 0) & ((b < 0) != (rest < 0)), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    ratio = a / b
    whole = torch.where(quotient != 0, whole, torch.copysign(torch.zeros_like(ratio), ratio))
    return torch.where(b == 0, ratio, whole).to(dtype)


def round_decimals(data: torch.Tensor, *, decimals: int) -> Any:
    """`aten.round.decimals`: whole multiples of 10**-decimals. Inductor multiplies by that, which is rounded
    itself; PyTorch divides by 10**decimals."""
    if decimals == 0 or not data.is_floating_point():
        return NotImplemented
    wide, power = data.to(accumulator(data.dtype)), 10.0 ** abs(decimals)
    found = torch.round(wide * power) / power if decimals > 0 else torch.round(wide / power) * power
    return found.to(data.dtype)
