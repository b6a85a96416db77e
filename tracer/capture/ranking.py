"""Sorting and top-k by counting: every element's rank is how many come before it."""

from __future__ import annotations

from typing import Any

import torch

MAX_RANKED = 1024
"""Longest row that is sorted by counting: every element is compared with every other."""


def _ranks(values: torch.Tensor, descending: bool) -> torch.Tensor:
    """Where each element of the last dim would be in sorted order; equal ones keep their order."""
    extent = values.shape[-1]
    index = torch.arange(extent, device=values.device)
    mine, theirs = values.unsqueeze(-1), values.unsqueeze(-2)
    before = theirs > mine if descending else theirs < mine
    tied = (theirs == mine) & (index.unsqueeze(0) < index.unsqueeze(1))
    return (before | tied).sum(-1)


def _by_rank(values: torch.Tensor, ranks: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements of ranks 0 .. count - 1 of the last dim, and where they were."""
    extent = values.shape[-1]
    index = torch.arange(extent, device=values.device)
    chosen = ranks.unsqueeze(-2) == torch.arange(count, device=values.device).unsqueeze(-1)
    # Exactly one element is chosen per rank, so the sum adds zeros to it and nothing is rounded.
    picked = torch.where(chosen, values.unsqueeze(-2), torch.zeros((), dtype=values.dtype)).sum(
        -1, dtype=values.dtype
    )
    return picked, torch.where(chosen, index, 0).sum(-1)


def topk(
    values: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002
) -> Any:
    """`aten.topk`: values and indices of the `k` largest (or smallest) of `dim`, in order."""
    if values.dim() == 0 or values.shape[dim] > MAX_RANKED or values.dtype == torch.bool:
        return NotImplemented
    moved = values.movedim(dim, -1)
    picked, where = _by_rank(moved, _ranks(moved, largest), k)
    return picked.movedim(-1, dim), where.movedim(-1, dim)


def sort(values: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    """`aten.sort`: the values of `dim` in order, and where they were; equal ones keep their order."""
    if values.dim() == 0:
        return NotImplemented
    return topk(values, values.shape[dim], dim, descending)


def sort_stable(
    values: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> Any:
    """`aten.sort.stable`: the same, for every sort here is stable."""
    return sort(values, dim, descending)
