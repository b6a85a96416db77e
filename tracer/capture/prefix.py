"""Scans as masked reductions: element i of the result reduces the elements up to i."""

from __future__ import annotations

from typing import Any

import torch

from tracer.capture.contraction import accumulator

MAX_SCANNED = 2048
"""Longest row that is scanned this way: its square is what is computed."""


def scannable(values: torch.Tensor, dim: int) -> bool:
    """Whether rows of `dim` are short enough for a scan, and hold anything."""
    return values.dim() > 0 and 0 < values.shape[dim] <= MAX_SCANNED


def cummax(values: torch.Tensor, dim: int) -> Any:
    """`aten.cummax`: the greatest of `dim` so far, and the last place that holds it; NaN is the greatest."""
    if values.dtype == torch.bool:
        return _as_bool(cummax(values.to(torch.uint8), dim))
    return _extreme(values, dim, greatest=True)


def cummin(values: torch.Tensor, dim: int) -> Any:
    """`aten.cummin`: the smallest of `dim` so far, and the last place that holds it; NaN is the smallest."""
    if values.dtype == torch.bool:
        return _as_bool(cummin(values.to(torch.uint8), dim))
    return _extreme(values, dim, greatest=False)


def logcumsumexp(values: torch.Tensor, dim: int) -> Any:
    """`aten.logcumsumexp`: log of the sum of exponentials of `dim` so far, from the greatest so far."""
    if not scannable(values, dim) or values.is_complex():
        return NotImplemented
    rows = values.movedim(dim, -1).to(accumulator(values.dtype))
    top = _running(rows, greatest=True)
    # An infinity less itself is NaN; the exponentials of infinities need no scale.
    scale = torch.where(top.isinf(), 0.0, top)
    terms = (rows.unsqueeze(-2) - scale.unsqueeze(-1)).exp()
    total = torch.where(_up_to(rows), terms, 0.0).sum(-1)
    return (total.log() + scale).to(values.dtype).movedim(-1, dim)


def cumprod(values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    """`aten.cumprod`: the product of `dim` so far, rounded once."""
    if not scannable(values, dim) or values.is_complex():
        return NotImplemented
    dtype = dtype or (values.dtype if values.is_floating_point() else torch.int64)
    rows = values.movedim(dim, -1).to(dtype).to(accumulator(dtype))
    one = torch.ones((), dtype=rows.dtype)
    return torch.where(_up_to(rows), rows.unsqueeze(-2), one).prod(-1).to(dtype).movedim(-1, dim)


def _as_bool(found: Any) -> Any:
    return found if found is NotImplemented else (found[0].to(torch.bool), found[1])


def _up_to(rows: torch.Tensor) -> torch.Tensor:
    """`[n, n]`: whether element j is among those up to i."""
    index = torch.arange(rows.shape[-1], device=rows.device)
    return index.unsqueeze(0) <= index.unsqueeze(1)


def _running(rows: torch.Tensor, greatest: bool) -> torch.Tensor:
    """The greatest (or smallest) of the last dim so far; NaN from the first NaN on."""
    if rows.is_floating_point():
        identity: float = float("-inf") if greatest else float("inf")
    else:
        info = torch.iinfo(rows.dtype)
        identity = info.min if greatest else info.max
    kept = torch.where(_up_to(rows), rows.unsqueeze(-2), torch.full((), identity, dtype=rows.dtype))
    return kept.amax(-1) if greatest else kept.amin(-1)


def _extreme(values: torch.Tensor, dim: int, greatest: bool) -> Any:
    if not scannable(values, dim):
        return NotImplemented
    rows = values.movedim(dim, -1)
    found = _running(rows, greatest)
    # Places that are as great as all before them; past a NaN these are the NaNs.
    record = (rows == found) | (rows != rows)
    index = torch.arange(rows.shape[-1], device=rows.device)
    where = torch.where(_up_to(rows) & record.unsqueeze(-2), index, 0).amax(-1)
    return found.movedim(-1, dim), where.movedim(-1, dim)
