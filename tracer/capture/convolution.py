"""Convolutions as matrix products over windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from tracer.capture.contraction import product
from tracer.capture.windows import padded, positions, spread, stuffed


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
        spread(v, rank) for v in (stride, padding, dilation, output_padding)
    )
    if transposed:
        for dim, step in enumerate(stride, start=2):
            data = stuffed(data, dim, step)
        weight = _flipped(weight, groups)
        reach = [d * (k - 1) - p for d, k, p in zip(dilation, weight.shape[2:], padding, strict=True)]
        data = padded(data, [(r, r + o) for r, o in zip(reach, output_padding, strict=True)])
        stride = [1] * rank
    else:
        data = padded(data, [(p, p) for p in padding])
    batch, _, *extents = data.shape
    outer, inner, *kernel = weight.shape
    out = [positions(*sides) for sides in zip(extents, kernel, stride, dilation, strict=True)]
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


def _flipped(weight: torch.Tensor, groups: int) -> torch.Tensor:
    """Weights `[in, out / groups, *kernel]` of a transposed convolution as those of an ordinary one."""
    inner, outer, *kernel = weight.shape
    grouped = weight.reshape(groups, inner // groups, outer, *kernel).transpose(1, 2)
    return grouped.reshape(groups * outer, inner // groups, *kernel).flip(list(range(2, 2 + len(kernel))))
