"""Pooling of padded windows: padding is a copy of its own, so that no window reaches outside of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tracer.capture.windows import padded, positions

aten = torch.ops.aten

MAX_TAPS = 25
"""Largest window of which Inductor writes every element; a larger one is a reduction."""


def max_pool2d(
    data: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """`aten.max_pool2d_with_indices` of a padded large window: values, and where they are in `h * w`."""
    kernel, padding, dilation = (_pair(sides) for sides in (kernel, padding, dilation))
    if math.prod(kernel) <= MAX_TAPS or not any(padding) or not data.is_floating_point():
        return NotImplemented
    stride = _pair(stride) if stride else kernel
    widths = [
        (padding[axis], _after(extent, kernel[axis], stride[axis], padding[axis], dilation[axis], ceil_mode))
        for axis, extent in enumerate(data.shape[-2:])
    ]
    whole = padded(data, widths, float("-inf"))
    # A view with strides is one of memory: the copy is not computed again in every window.
    whole = whole.as_strided(whole.shape, whole.stride())
    found, places = aten.max_pool2d_with_indices(whole, kernel, stride, [0, 0], dilation)
    (top, _), (left, _) = widths
    wide = whole.shape[-1]
    return found, (places // wide - top) * data.shape[-1] + places % wide - left


def _pair(sides: Sequence[int]) -> list[int]:
    return list(sides) * 2 if len(sides) == 1 else list(sides)


def _after(extent: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Padding behind a dim: with `ceil_mode` up to the end of a last window that starts inside."""
    whole = extent + 2 * padding
    if not ceil_mode:
        return padding
    reach = dilation * (kernel - 1) + 1
    count = positions(whole + stride - 1, kernel, stride, dilation)
    if (count - 1) * stride >= extent + padding:
        count -= 1
    return max(padding, (count - 1) * stride + reach - extent - padding)
