"""Convolutions as matrix products over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from tracer.capture.contraction import product

aten = torch.ops.aten


def convolution(
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

    Windows are a view of the padded data: element (o, k) of a window lies at `o * stride + k * dilation`. A
    transposed convolution is an ordinary one over its data spread out by `stride`, with the kernel flipped.
    """
    rank = data.dim() - 2
    stride, padding, dilation, output_padding = (
        _spread(v, rank) for v in (stride, padding, dilation, output_padding)
    )
    if transposed:
        data = _stuffed(data, stride)
        weight = _flipped(weight, groups)
        reach = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        data = _padded(data, [(r, r + o) for r, o in zip(reach, output_padding, strict=True)])
        stride = [1] * rank
    else:
        data = _padded(data, [(p, p) for p in padding])
    batch, _, *extents = data.shape
    outer, inner, *kernel = weight.shape
    out = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(extents, dilation, kernel, stride, strict=True)
    ]
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
        result = product(rows[0], columns[0].t())
    else:
        rows = rows.unsqueeze(0).expand(batch, *rows.shape).reshape(batch * groups, outer // groups, depth)
        result = product(rows, columns.transpose(1, 2))
    result = result.reshape(batch, outer, *out)
    if bias is not None:
        result = result + bias.reshape(1, outer, *([1] * rank))
    return result.to(data.dtype)


def _spread(value: Sequence[int], rank: int) -> list[int]:
    return list(value) * rank if len(value) == 1 else list(value)


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
