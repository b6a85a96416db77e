"""The grid that the elements of a tensor lie on: sums on a grid may be exact in any order."""

from __future__ import annotations

import math

import torch

_LOOKED_THROUGH = 1 << 20
"""Elements of a tensor whose grid is looked for at most."""


def grid(tensor: torch.Tensor) -> float:
    """The largest power of two that all elements are integer multiples of; 0 where they are not finite.

    Tensors of more than a million elements are not looked through: 0, too.
    """
    if tensor.numel() > _LOOKED_THROUGH or not bool(torch.isfinite(tensor).all()):
        return 0.0
    mantissa, exponent = torch.frexp(tensor[tensor != 0].to(torch.float64))
    whole = (mantissa * 2.0**53).to(torch.int64)
    lowest = torch.frexp((whole & -whole).to(torch.float64))[1] + exponent
    return 2.0 ** (float(lowest.min()) - 54) if lowest.numel() else math.inf
