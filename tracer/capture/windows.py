"""Sliding windows over the last dims: as a view of padded data, and their overlapping sum without atomics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tracer.capture.contraction import accumulator

aten = torch.ops.aten

MAX_TERMS = 64
"""Longest kernel side whose windows are added up one after the other."""


def spread(sides: Sequence[int], rank: int) -> list[int]:
    """One number for each of `rank` dims, where one may stand for all."""
    return list(sides) * rank if len(sides) == 1 else list(sides)


def positions(extent: int, kernel: int, stride: int, dilation: int) -> int:
    """Places that a window has along a dim."""
    return (extent - dilation * (kernel - 1) - 1) // stride + 1


def windows(
    data: torch.Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> torch.Tensor:
    """`[batch, channels, *extents]` as `[batch, channels, *positions, *kernel]`, a view.

    Element (o, k) of a window lies at `o * stride + k * dilation`.
    """
    batch, channels, *extents = data.shape
    steps = data.stride()
    out = [positions(*sides) for sides in zip(extents, kernel, stride, dilation, strict=True)]
    return data.as_strided(
        (batch, channels, *out, *kernel),
        (
            *steps[:2],
            *(s * step for s, step in zip(stride, steps[2:], strict=True)),
            *(d * step for d, step in zip(dilation, steps[2:], strict=True)),
        ),
        data.storage_offset(),
    )


def padded(data: torch.Tensor, widths: Sequence[tuple[int, int]], value: float = 0.0) -> torch.Tensor:
    """`data` with `value` before and after its last `len(widths)` dims."""
    if all(width == (0, 0) for width in widths):
        return data
    return aten.constant_pad_nd(data, [n for width in reversed(widths) for n in width], value)


def stuffed(data: torch.Tensor, dim: int, step: int) -> torch.Tensor:
    """`data` with `step - 1` zeros between neighbours of `dim`."""
    if step == 1:
        return data
    extent = data.shape[dim]
    first = torch.arange(step, device=data.device).reshape(step, *[1] * (data.dim() - 1 - dim)) == 0
    spread = torch.where(first, data.unsqueeze(dim + 1), 0).flatten(dim, dim + 1)
    return spread.narrow(dim, 0, (extent - 1) * step + 1)


def im2col(
    data: torch.Tensor,
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """`aten.im2col`: windows of `[(batch,) channels, h, w]` as columns.

    They are `[(batch,) channels * kernel h * kernel w, places]`.
    """
    if data.dim() == 3:
        return im2col(data.unsqueeze(0), kernel, dilation, padding, stride).squeeze(0)
    cut = windows(padded(data, [(p, p) for p in padding]), kernel, stride, dilation)
    batch, channels, high, wide = cut.shape[:4]
    return cut.permute(0, 1, 4, 5, 2, 3).reshape(batch, channels * math.prod(kernel), high * wide)


def col2im(
    columns: torch.Tensor,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Any:
    """`aten.col2im`: columns `[(batch,) channels * kernel, places]` added up where their windows overlap."""
    if max(kernel) > MAX_TERMS:
        return NotImplemented
    if columns.dim() == 2:
        return col2im(columns.unsqueeze(0), size, kernel, dilation, padding, stride).squeeze(0)
    whole = [n + 2 * p for n, p in zip(size, padding, strict=True)]
    places = [positions(*sides) for sides in zip(whole, kernel, stride, dilation, strict=True)]
    batch, depth, _ = columns.shape
    data = columns.to(accumulator(columns.dtype))
    # [batch, channels, kernel h, kernel w, h, w]: first w, then h.
    data = data.reshape(batch, depth // math.prod(kernel), *kernel, *places)
    for axis in (1, 0):
        data = _overlapped(data, axis, stride[axis], dilation[axis], whole[axis])
    top, left = padding
    return data[..., top : top + size[0], left : left + size[1]].to(columns.dtype)


def _overlapped(data: torch.Tensor, axis: int, stride: int, dilation: int, extent: int) -> torch.Tensor:
    """Kernel dim and place dim of `axis` (0: h, 1: w) of `[batch, channels, *kernel, *places]` as one dim."""
    if stride == data.shape[2 + axis] and dilation == 1:
        # Windows side by side are in order: place, then tap.
        joined = data.movedim(2 + axis, axis - 2).flatten(axis - 3, axis - 2)
        return padded(joined, [(0, extent - joined.shape[axis - 2]), (0, 0)][: 2 - axis])
    total: torch.Tensor | None = None
    for tap in range(data.shape[2 + axis]):
        part = data.select(2 + axis, tap)
        part = stuffed(part, part.dim() - 2 + axis, stride)
        before = tap * dilation
        after = extent - before - part.shape[axis - 2]
        part = padded(part, [(before, after), (0, 0)][: 2 - axis])
        total = part if total is None else total + part
    assert total is not None
    return total
