"""Accumulation at given indices without atomics: every target looks at all sources and takes its own.

Sums have one order then, which an atomic addition has not. The work grows with targets times sources.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tracer.capture.contraction import accumulator

MAX_PAIRS = 1 << 28
"""Most pairs of a target element and a source element that are compared."""


def scatter_reduce(
    target: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """`aten.scatter_reduce.two`: `target[..., index[..., s, ...], ...]` reduced with `source[..., s, ...]`.

    `index` may be shorter than `source` and `target`; what it does not reach stays.
    """
    if target.dim() == 0:
        target, index, source = target.reshape(1), index.reshape(1), source.reshape(1)
        found = scatter_reduce(target, 0, index, source, reduce, include_self=include_self)
        return found if found is NotImplemented else found.reshape(())
    if index.numel() * target.shape[dim] > MAX_PAIRS or target.is_complex():
        return NotImplemented
    if 0 in index.shape:
        return target.clone()
    dim = dim % target.dim()
    source = source[tuple(slice(0, n) for n in index.shape)]
    reached = target[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))]
    result = _combine(
        reached.movedim(dim, -1),
        _mine(index.movedim(dim, -1), target.shape[dim]),
        source.movedim(dim, -1).unsqueeze(-2),
        reduce,
        include_self,
    ).movedim(-1, dim)
    for axis, (whole, part) in enumerate(zip(target.shape, result.shape, strict=True)):
        if part < whole:
            around = tuple(slice(0, n) if d > axis else slice(None) for d, n in enumerate(index.shape))
            around = tuple(slice(None) if d == dim else s for d, s in enumerate(around))
            rest = target[around].narrow(axis, part, whole - part)
            result = torch.cat((result, rest), axis)
    return result


def scatter_add(target: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    """`aten.scatter_add`: `source` added to `target` at `index` of `dim`."""
    return scatter_reduce(target, dim, index, source, "sum")


def scatter(
    target: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor | float, *, reduce: str
) -> Any:
    """`aten.scatter.reduce` and `aten.scatter.value_reduce`, the older spelling of `aten.scatter_reduce`."""
    if not isinstance(source, torch.Tensor):
        source = torch.full(index.shape, source, dtype=target.dtype, device=target.device)
    return scatter_reduce(target, dim, index, source, {"add": "sum", "multiply": "prod"}[reduce])


def index_add(
    target: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: Any = 1
) -> Any:
    """`aten.index_add`: `alpha * source[..., s, ...]` added to `target[..., index[s], ...]`."""
    if target.dim() == 0:
        return NotImplemented
    if alpha != 1:
        source = source.to(accumulator(target.dtype)) * alpha
    return _by_rows(target, dim, index, source, "sum", include_self=True)


def index_reduce(
    target: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """`aten.index_reduce`: `source[..., s, ...]` reduced into `target[..., index[s], ...]`."""
    if target.dim() == 0:
        return NotImplemented
    return _by_rows(target, dim, index, source, reduce, include_self)


def index_put(
    target: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    values: torch.Tensor,
    accumulate: bool = False,
) -> Any:
    """`aten.index_put` under a mask, or with `accumulate`: values added where the indices together point.

    A mask takes values that are the same wherever it holds. Indexed dims must be neighbours. Numbers without
    `accumulate` are a plain store.
    """
    places = [d for d, index in enumerate(indices) if index is not None]
    tensors = [index for index in indices if index is not None]
    if not places:
        return NotImplemented
    if any(t.dtype in (torch.bool, torch.uint8) for t in tensors):
        return (
            _masked(target, places[0], tensors[0], values, accumulate) if len(places) == 1 else NotImplemented
        )
    if not accumulate:
        return NotImplemented
    first, count = places[0], len(places)
    if places != list(range(first, first + count)):
        return NotImplemented
    extents = target.shape[first : first + count]
    linear = torch.zeros((), dtype=torch.int64, device=target.device)
    for index, extent in zip(tensors, extents, strict=True):
        # An element of a row of numbers is its own, not negative, place.
        linear = linear * extent + torch.arange(extent, device=target.device)[index]
    shape = (*target.shape[:first], *linear.shape, *target.shape[first + count :])
    rows = values.expand(shape)
    rows = rows.flatten(first, first + linear.dim() - 1) if linear.dim() else rows.unsqueeze(first)
    found = _by_rows(
        target.flatten(first, first + count - 1), first, linear.reshape(-1), rows, "sum", include_self=True
    )
    return found if found is NotImplemented else found.reshape(target.shape)


def masked_scatter(target: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> Any:
    """`aten.masked_scatter`: where `mask` holds, the next element of `source`, in memory's order.

    Where the mask is one number for whole rows, as its strides say, whole rows are taken. What is looked up
    is how often the mask holds before a place, which is what its running sum is one place before: no kernel
    then looks up what it has only begun to count.
    """
    target, mask = torch.broadcast_tensors(target, mask)
    alike = 0
    while alike < mask.dim() and (mask.stride(-1 - alike) == 0 or mask.shape[-1 - alike] == 1):
        alike += 1
    lead, tail = mask.shape[: mask.dim() - alike], mask.shape[mask.dim() - alike :]
    width = math.prod(tail)
    if target.numel() == 0 or source.numel() < width:
        return target.clone()
    count = source.numel() // width
    held = mask.as_strided(lead, mask.stride()[: len(lead)]).reshape(-1).to(torch.int64)
    before = torch.ops.aten.constant_pad_nd(held.cumsum(0)[:-1], [1, 0])
    rows = source.reshape(-1)[: count * width].reshape(count, width)[before.clamp(max=count - 1)]
    return torch.where(mask, rows.reshape(*lead, *tail), target)


def _masked(
    target: torch.Tensor, first: int, mask: torch.Tensor, values: torch.Tensor, accumulate: bool
) -> Any:
    """`values` where `mask`, which covers the dims of `target` from `first` on, holds."""
    rest = target.dim() - first - mask.dim()
    # What a mask selects is one dim, between those before `first` and the `rest`.
    whole = values.reshape(*[1] * (first + 1 + rest - values.dim()), *values.shape)
    if whole.shape[first] != 1:
        return NotImplemented
    spread = whole.reshape(*whole.shape[:first], *[1] * mask.dim(), *whole.shape[first + 1 :])
    held = mask.to(torch.bool).reshape(*mask.shape, *[1] * rest)
    return torch.where(held, target + spread if accumulate else spread, target)


def _by_rows(
    target: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduce: str, include_self: bool
) -> Any:
    """One index for whole slices of `dim`."""
    if source.numel() * target.shape[dim] > MAX_PAIRS or target.is_complex():
        return NotImplemented
    if source.numel() == 0:
        return target.clone()
    return _combine(
        target.movedim(dim, -1),
        _mine(index.reshape(-1), target.shape[dim]),
        source.movedim(dim, -1).unsqueeze(-2),
        reduce,
        include_self,
    ).movedim(-1, dim)


def _mine(index: torch.Tensor, extent: int) -> torch.Tensor:
    """`[..., extent, sources]`: whether a source goes to a target."""
    targets = torch.arange(extent, device=index.device)
    # The element of that row at `index` is `index` itself; the access carries the check that PyTorch makes.
    return targets[index].unsqueeze(-2) == targets.unsqueeze(-1)


def _combine(
    target: torch.Tensor, mine: torch.Tensor, source: torch.Tensor, reduce: str, include_self: bool
) -> torch.Tensor:
    """Targets `[..., t]` reduced with the sources `[..., 1, s]` that `mine` `[..., t, s]` gives them."""
    dtype = accumulator(target.dtype)
    before, source = target.to(dtype), source.to(dtype)
    combine: Callable[..., torch.Tensor]
    kept = torch.where(mine, source, torch.full((), _identity(reduce, dtype), dtype=dtype))
    if reduce in ("sum", "mean"):
        combine, result = torch.add, kept.sum(-1, dtype=dtype)
    elif reduce == "prod":
        combine, result = torch.mul, kept.prod(-1).to(dtype)
    elif reduce == "amax":
        combine, result = torch.maximum, kept.amax(-1)
    else:
        combine, result = torch.minimum, kept.amin(-1)
    if include_self:
        result = combine(before, result)
    if reduce == "mean":
        count = mine.sum(-1) + (1 if include_self else 0)
        count = count.clamp(min=1).to(dtype)
        whole = dtype.is_floating_point
        result = result / count if whole else torch.div(result, count, rounding_mode="floor")
    if not include_self:
        result = torch.where(mine.any(-1), result, before)
    return result.to(target.dtype)


def _identity(reduce: str, dtype: torch.dtype) -> float | int | bool:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if dtype == torch.bool:
        return reduce == "amin"
    info = torch.iinfo(dtype)
    return info.min if reduce == "amax" else info.max
