"""Sorting, top-k and order statistics by counting: every element's rank is how many come before it.

The few greatest of a long row are first looked for in chunks of it, and then among what the chunks gave.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from tracer.capture.scattering import MAX_PAIRS

aten = torch.ops.aten

MAX_RANKED = 2048
"""Longest row that is ranked however many rows there are: every element is compared with every other."""


def rankable(values: torch.Tensor, dim: int) -> bool:
    """Whether rows of `dim` are short or few enough to be ranked, and hold anything."""
    if values.dim() == 0:
        return False
    extent = values.shape[dim]
    return 0 < extent <= MAX_RANKED or 0 < values.numel() * extent <= MAX_PAIRS


def _ranks(values: torch.Tensor, descending: bool) -> torch.Tensor:
    """Where each element of the last dim would be in sorted order; equal ones keep their order.

    NaN is greater than every number, and equal to NaN.
    """
    extent = values.shape[-1]
    index = torch.arange(extent, device=values.device)
    mine, theirs = values.unsqueeze(-1), values.unsqueeze(-2)
    earlier = index.unsqueeze(0) < index.unsqueeze(1)
    if not values.is_floating_point():
        before = theirs > mine if descending else theirs < mine
        return (before | ((theirs == mine) & earlier)).sum(-1)
    # A comparison with NaN is false: `not <=` holds for what is greater and for NaN.
    mine_is_nan, theirs_is_nan = mine != mine, theirs != theirs
    before = ~(theirs <= mine) & ~mine_is_nan if descending else ~(theirs >= mine) & ~theirs_is_nan
    tied = (theirs == mine) | (mine_is_nan & theirs_is_nan)
    return (before | (tied & earlier)).sum(-1)


def _at_ranks(values: torch.Tensor, ranks: torch.Tensor, wanted: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements of the last dim with the ranks `wanted` `[..., count]`, and where they were."""
    index = torch.arange(values.shape[-1], device=values.device)
    chosen = ranks.unsqueeze(-2) == wanted.unsqueeze(-1)
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
    if values.dim() == 0 or values.numel() == 0 or values.is_complex():
        return NotImplemented
    if values.dtype == torch.bool:
        found = topk(values.to(torch.uint8), k, dim, largest)
        return found if found is NotImplemented else (found[0].to(torch.bool), found[1])
    moved = values.movedim(dim, -1)
    chunk = _chunk(moved.shape[-1], k)
    if chunk < moved.shape[-1]:
        first = _of_chunks(moved, k, largest, chunk)
    elif rankable(values, dim):
        first = _at_ranks(moved, _ranks(moved, largest), torch.arange(k, device=values.device))
    else:
        return NotImplemented
    if first is NotImplemented:
        return NotImplemented
    picked, where = first
    return picked.movedim(-1, dim), where.movedim(-1, dim)


def _chunk(extent: int, k: int) -> int:
    """The power of two for which chunks and what they give take the fewest comparisons; `extent` for none."""
    best, least = extent, extent * extent
    if extent <= MAX_RANKED:
        return best
    for chunk in (1 << bit for bit in range(max(k, 1).bit_length(), MAX_RANKED.bit_length())):
        count = math.ceil(extent / chunk)
        # What the chunks give may be many: then there is another round, which halves it at least.
        pairs = count * chunk * (chunk + k) + (count * k) * min(count * k, MAX_RANKED)
        if pairs < least:
            best, least = chunk, pairs
    return best


def _of_chunks(rows: torch.Tensor, k: int, largest: bool, chunk: int) -> Any:
    """The `k` first of the last dim, by way of the `k` first of every chunk of it.

    Of equal elements the earlier one comes first in its chunk, and earlier chunks come first: their order is
    that of the row. What fills the last chunk up ties with the last in order at most, and comes after it.
    """
    extent = rows.shape[-1]
    count = math.ceil(extent / chunk)
    if rows.is_floating_point():
        last = -math.inf if largest else math.nan
    else:
        info = torch.iinfo(rows.dtype)
        last = info.min if largest else info.max
    filled = aten.constant_pad_nd(rows, [0, count * chunk - extent], last)
    *steps, step = filled.stride()
    # A view with strides is one of memory: the row is filled up once, and not in every comparison.
    chunks = filled.as_strided((*rows.shape[:-1], count, chunk), (*steps, chunk * step, step))
    found, where = topk(chunks, k, -1, largest)
    where = where + chunk * torch.arange(count, device=rows.device).unsqueeze(-1)
    first = topk(_in_memory(found), k, -1, largest)
    if first is NotImplemented:
        return NotImplemented
    picked, place = first
    chosen = place.unsqueeze(-1) == torch.arange(count * k, device=rows.device)
    return picked, torch.where(chosen, _in_memory(where).unsqueeze(-2), 0).sum(-1)


def _in_memory(parts: torch.Tensor) -> torch.Tensor:
    """`[..., count, k]` as `[..., count * k]`, a view of a buffer that is read as one row."""
    whole = parts.contiguous()
    *lead, count, k = parts.shape
    return whole.as_strided((*lead, count * k), (*whole.stride()[:-2], 1))


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


def kthvalue(values: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """`aten.kthvalue`: the k-th smallest of `dim`, k from 1, and where it was; NaN is the greatest."""
    if not rankable(values, dim):
        return NotImplemented
    return _of_rank(values, torch.full((1,), k - 1, device=values.device), dim, keepdim)


def median(values: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    """`aten.median.dim`: the lower median of `dim`, and where it was; the first NaN where there is one."""
    if not rankable(values, dim):
        return NotImplemented
    extent = values.shape[dim]
    middle = (extent - 1) // 2
    if not values.is_floating_point():
        return _of_rank(values, torch.full((1,), middle, device=values.device), dim, keepdim)
    # NaNs come last in the order: the first of them has as many elements before it as there are numbers.
    numbers = (values == values).movedim(dim, -1).sum(-1, keepdim=True)
    return _of_rank(values, torch.where(numbers < extent, numbers, middle), dim, keepdim)


def nanmedian(values: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    """`aten.nanmedian.dim`: the lower median of the numbers in `dim`, NaN where there are none."""
    if not values.is_floating_point():
        return median(values, dim, keepdim)
    if not rankable(values, dim):
        return NotImplemented
    numbers = (values == values).movedim(dim, -1).sum(-1, keepdim=True)
    return _of_rank(values, (numbers - 1).clamp(min=0) // 2, dim, keepdim)


def median_of_all(values: torch.Tensor) -> Any:
    """`aten.median`: the lower median of all elements."""
    flat = values.reshape(-1)
    return median(flat, 0)[0] if rankable(flat, 0) else NotImplemented


def nanmedian_of_all(values: torch.Tensor) -> Any:
    """`aten.nanmedian`: the lower median of all numbers."""
    flat = values.reshape(-1)
    return nanmedian(flat, 0)[0] if rankable(flat, 0) else NotImplemented


def _of_rank(
    values: torch.Tensor, wanted: torch.Tensor, dim: int, keepdim: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    moved = values.movedim(dim, -1)
    found, where = (part.movedim(-1, dim) for part in _at_ranks(moved, _ranks(moved, False), wanted))
    return (found, where) if keepdim else (found.squeeze(dim), where.squeeze(dim))
