"""Decompositions that give Inductor something to write Triton for where it would call a library."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tracer.capture.inductor import can_dot

aten = torch.ops.aten


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """Inductor's decompositions with ours over them."""
    from torch._inductor.decomposition import select_decomp_table

    return {**select_decomp_table(), **OURS}


def _accumulator(dtype: torch.dtype) -> torch.dtype:
    """Where sums of products are formed: float32 for half types, as tl.dot does; integers as torch does."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def _contract(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`[..., m, k] @ [..., k, n]` as a broadcast product summed over k, not yet rounded."""
    dtype = _accumulator(left.dtype)
    product = left.to(dtype).unsqueeze(-1) * right.to(dtype).unsqueeze(-3)
    return product.sum(-2, dtype=dtype)


def _takes(left: torch.Tensor, right: torch.Tensor) -> bool:
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    return can_dot(left.dtype, right.dtype, m, n, k)


def _mm(left: torch.Tensor, right: torch.Tensor) -> Any:
    return NotImplemented if _takes(left, right) else _contract(left, right).to(left.dtype)


def _addmm(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    # Inductor adds the bias to a product that is already rounded; PyTorch adds it before rounding.
    product = aten.mm(left, right) if _takes(left, right) else _contract(left, right)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product.to(left.dtype)
    return ((bias if beta == 1 else bias * beta) + product).to(left.dtype)


def _baddbmm(bias: torch.Tensor, left: torch.Tensor, right: torch.Tensor, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    product = aten.bmm(left, right) if _takes(left, right) else _contract(left, right)
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product.to(left.dtype)
    return ((bias if beta == 1 else bias * beta) + product).to(left.dtype)


def _convolution(
    data: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """A convolution of any rank as windows times weights: a copy of the windows and one matrix product.

    Windows are a view of the padded data: element (o, k) of a window lies at `o * stride + k * dilation`. A transposed
    convolution is an ordinary one over its data spread out by `stride`, with the kernel flipped.
    """
    rank = data.dim() - 2
    stride, padding, dilation, output_padding = (_spread(v, rank) for v in (stride, padding, dilation, output_padding))
    if transposed:
        data = _stuffed(data, stride)
        weight = _flipped(weight, groups)
        reach = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        data = _padded(data, [(r, r + o) for r, o in zip(reach, output_padding, strict=True)])
        stride = [1] * rank
    else:
        data = _padded(data, [(p, p) for p in padding])
    batch, channels, *extents = data.shape
    outer, inner, *kernel = weight.shape
    out = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(extents, dilation, kernel, stride, strict=True)]
    # [batch, groups, *out, inner, *kernel]; dims of size one are not loops.
    steps = data.stride()
    windows = data.as_strided(
        (batch, groups, *out, inner, *kernel),
        (
            steps[0],
            inner * steps[1],
            *(s * step for s, step in zip(stride, steps[2:], strict=True)),
            steps[1],
            *(d * step for d, step in zip(dilation, steps[2:], strict=True)),
        ),
        data.storage_offset() if data.dim() else 0,
    )
    depth = inner * math.prod(kernel)
    columns = windows.reshape(batch * groups, math.prod(out), depth)
    rows = weight.reshape(groups, outer // groups, depth)
    if groups == 1 and batch == 1:
        result = _product(rows[0], columns[0].t())
    else:
        rows = rows.unsqueeze(0).expand(batch, *rows.shape).reshape(batch * groups, outer // groups, depth)
        result = _product(rows, columns.transpose(1, 2))
    result = result.reshape(batch, outer, *out)
    if bias is not None:
        result = result + bias.reshape(1, outer, *([1] * rank))
    return result.to(data.dtype)


def _spread(value: Sequence[int], rank: int) -> list[int]:
    return list(value) * rank if len(value) == 1 else list(value)


def _product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    if not _takes(left, right):
        return _contract(left, right)
    return aten.mm(left, right) if left.dim() == 2 else aten.bmm(left, right)


def _padded(data: torch.Tensor, widths: list[tuple[int, int]]) -> torch.Tensor:
    if all(width == (0, 0) for width in widths):
        return data
    return aten.constant_pad_nd(data, [n for width in reversed(widths) for n in width], 0.0)


def _stuffed(data: torch.Tensor, stride: list[int]) -> torch.Tensor:
    """`data` with `stride - 1` zeros between neighbours."""
    for dim, step in enumerate(stride, start=2):
        if step == 1:
            continue
        zeros = data.new_zeros(()).expand(*data.shape, step - 1)
        extent = data.shape[dim]
        spread = torch.cat([data.unsqueeze(-1), zeros], -1).movedim(-1, dim + 1)
        data = spread.reshape(*data.shape[:dim], extent * step, *data.shape[dim + 1 :])
        data = data.narrow(dim, 0, (extent - 1) * step + 1)
    return data


def _flipped(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Weights `[in, out / groups, *kernel]` of a transposed convolution as those of an ordinary one."""
    inner, outer, *kernel = weight.shape
    grouped = weight.reshape(groups, inner // groups, outer, *kernel).transpose(1, 2)
    return grouped.reshape(groups * outer, inner // groups, *kernel).flip(list(range(2, 2 + len(kernel))))


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
    picked = torch.where(chosen, values.unsqueeze(-2), torch.zeros((), dtype=values.dtype)).sum(-1, dtype=values.dtype)
    return picked, torch.where(chosen, index, 0).sum(-1)


def _topk(values: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    if values.dim() == 0 or values.shape[dim] > MAX_RANKED or values.dtype == torch.bool:
        return NotImplemented
    moved = values.movedim(dim, -1)
    picked, where = _by_rank(moved, _ranks(moved, largest), k)
    return picked.movedim(-1, dim), where.movedim(-1, dim)


def _sort(values: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    if values.dim() == 0:
        return NotImplemented
    return _topk(values, values.shape[dim], dim, descending)


def _sort_stable(values: torch.Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(values, dim, descending)


OURS: dict[Any, Callable[..., Any]] = {
    aten.mm.default: _mm,
    aten.bmm.default: _mm,
    aten.addmm.default: _addmm,
    aten.baddbmm.default: _baddbmm,
    aten.convolution.default: _convolution,
    aten.topk.default: _topk,
    aten.sort.default: _sort,
    aten.sort.stable: _sort_stable,
}
