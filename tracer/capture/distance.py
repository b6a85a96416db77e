"""Distances between rows, from their differences: |x - y| ** p summed over the row."""

from __future__ import annotations

import math
from typing import Any

import torch

from tracer.capture.contraction import accumulator

MAX_POINTS = 32
"""Most points of which the pairs are written one row after the other (`pdist`)."""


def cdist(left: torch.Tensor, right: torch.Tensor, p: float, mode: int | None) -> Any:
    """`aten._cdist_forward`: the p-norms of `left[..., i, :] - right[..., j, :]`, `[..., P, R]`.

    `mode` asks for a matrix product in the 2-norm, which is faster on other machines and less exact.
    """
    dtype = accumulator(left.dtype)
    gap = (left.to(dtype).unsqueeze(-2) - right.to(dtype).unsqueeze(-3)).abs()
    if gap.shape[-1] == 0:
        return gap.new_zeros(gap.shape[:-1]).to(left.dtype)
    return _norm(gap, p).to(left.dtype)


def pdist(points: torch.Tensor, p: float = 2) -> Any:
    """`aten._pdist_forward`: the p-norms between all pairs of rows i < j of `points` `[n, m]`, i by i."""
    count = points.shape[0]
    if not 1 < count <= MAX_POINTS or points.shape[1] == 0:
        return NotImplemented
    whole = cdist(points, points, p, None)
    return torch.cat([whole[row, row + 1 :] for row in range(count - 1)])


def _norm(gap: torch.Tensor, p: float) -> torch.Tensor:
    if p == 0:
        return (gap != 0).sum(-1, dtype=gap.dtype)
    if p == 1:
        return gap.sum(-1)
    if p == 2:
        return (gap * gap).sum(-1).sqrt()
    if math.isinf(p):
        return gap.amax(-1)
    return gap.pow(p).sum(-1).pow(1 / p)
