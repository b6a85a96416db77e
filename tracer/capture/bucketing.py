"""Places of values among sorted boundaries by counting: how many boundaries lie before each value."""

from __future__ import annotations

from typing import Any

import torch

MAX_BOUNDARIES = 8192
"""Longest row of boundaries that every value is compared with."""


def searchsorted(
    boundaries: torch.Tensor,
    values: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> Any:
    """`aten.searchsorted.Tensor`: boundaries `[..., n]` before each of values `[..., m]`; NaN comes last.

    Before a value are the boundaries below it, and from the right those that equal it as well. One row of
    boundaries serves values of any shape.
    """
    if boundaries.shape[-1] > MAX_BOUNDARIES:
        return NotImplemented
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    rows = boundaries if boundaries.dim() == 1 else boundaries.unsqueeze(-2)
    others = values.unsqueeze(-1)
    # `not >=` and `not >`, as in PyTorch's binary search: every boundary lies before a NaN.
    before = ~(rows > others) if right or side == "right" else ~(rows >= others)
    return before.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def bucketize(
    values: torch.Tensor, boundaries: torch.Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """`aten.bucketize.Tensor`: how many of boundaries `[n]` lie before each value."""
    return searchsorted(boundaries, values, out_int32=out_int32, right=right)
