"""Pooling of large windows: padding is a copy of its own, so that no window reaches outside of memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tracer.capture.contraction import accumulator
from tracer.capture.windows import padded, positions, spread, windows

aten = torch.ops.aten

_MAX_POOL: dict[int, Any] = {2: aten.max_pool2d_with_indices, 3: aten.max_pool3d_with_indices}

MAX_TAPS = 25
"""Largest window of which Inductor writes every element; a larger one is a reduction."""


def max_pool(
    rank: int,
    data: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """`aten.max_pool2d_with_indices` and `3d` of a padded large window over the last `rank` dims: values, and
    where they are in the product of those dims."""
    kernel, padding, dilation = (spread(sides, rank) for sides in (kernel, padding, dilation))
    stride = spread(stride, rank) if stride else kernel
    widths = _widths(data.shape[-rank:], kernel, stride, padding, dilation, ceil_mode)
    if math.prod(kernel) <= MAX_TAPS or all(width == (0, 0) for width in widths):
        return NotImplemented
    whole = padded(data, widths, _least(data.dtype))
    # A view with strides is one of memory: the copy is not computed again in every window.
    whole = whole.as_strided(whole.shape, whole.stride())
    found, places = _MAX_POOL[rank](whole, kernel, stride, [0] * rank, dilation)
    # Digits of the place in the padded data, the last dim's first, are those in the data after the padding.
    digits, step = [], 1
    for axis in range(-1, -rank - 1, -1):
        digit = places if axis == -rank else places % whole.shape[axis]
        digits.append((digit - widths[axis][0]) * step)
        places, step = places // whole.shape[axis], step * data.shape[axis]
    return found, sum(digits[1:], start=digits[0])


def _least(dtype: torch.dtype) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def avg_pool(
    rank: int,
    data: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """`aten.avg_pool2d` and `aten.avg_pool3d` of a large window over the last `rank` dims: its sum, divided.

    The divisor is `divisor_override`, or how many elements of the window lie inside of the data and, with
    `count_include_pad`, its padding: a last window that only `ceil_mode` allows may reach beyond both.
    """
    kernel, padding = spread(kernel, rank), spread(padding, rank)
    if math.prod(kernel) <= MAX_TAPS or not data.is_floating_point():
        return NotImplemented
    if data.dim() == rank + 1:
        whole = avg_pool(
            rank, data[None], kernel, stride, padding, ceil_mode, count_include_pad, divisor_override
        )
        return whole.squeeze(0)
    stride = spread(stride, rank) if stride else kernel
    ones = [1] * rank
    extents = data.shape[-rank:]
    widths = _widths(extents, kernel, stride, padding, ones, ceil_mode)
    cut = windows(padded(data, widths), kernel, stride, ones)
    total = cut.sum(tuple(range(-rank, 0)), dtype=accumulator(data.dtype))
    divisor: Any = divisor_override or math.prod(kernel)
    reaches = [pads != (pad, pad) for pads, pad in zip(widths, padding, strict=True)]
    if divisor_override is None and (any(reaches) or (any(padding) and not count_include_pad)):
        counts = []
        for axis, count in enumerate(total.shape[-rank:]):
            # From the start of the padding on.
            margin = 0 if count_include_pad else padding[axis]
            first = torch.arange(count, device=data.device) * stride[axis]
            low = first.clamp(min=margin)
            high = (first + kernel[axis]).clamp(max=extents[axis] + 2 * padding[axis] - margin)
            counts.append((high - low).reshape(count, *[1] * (rank - 1 - axis)))
        divisor = math.prod(counts[1:], start=counts[0])
    return (total / divisor).to(data.dtype)


def adaptive_avg_pool(rank: int, data: torch.Tensor, size: Sequence[int]) -> Any:
    """`aten._adaptive_avg_pool2d` and `3d`: the mean of window o along a dim of extent n, which is
    `floor(o n / size)` to `ceil((o + 1) n / size)`, one dim after the other.

    Windows of few elements in 2-D are left to Inductor, which writes every one.
    """
    extents = data.shape[-rank:]
    taps = math.prod(-(-extent // count) + 1 for extent, count in zip(extents, size, strict=True) if count)
    if 0 in size or not data.is_floating_point() or (rank == 2 and taps <= MAX_TAPS):
        return NotImplemented
    total = data.to(accumulator(data.dtype))
    for axis, (extent, count) in enumerate(zip(extents, size, strict=True)):
        window = torch.arange(count, device=data.device)
        first = window * extent // count
        end = ((window + 1) * extent + count - 1) // count
        place = torch.arange(extent, device=data.device)
        inside = (place >= first[:, None]) & (place < end[:, None])
        rows = total.movedim(axis - rank, -1).unsqueeze(-2)
        mean = torch.where(inside, rows, 0).sum(-1) / (end - first)
        total = mean.movedim(-1, axis - rank)
    return total.to(data.dtype)


def _widths(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[tuple[int, int]]:
    """Padding before and behind every dim."""
    sides = zip(extents, kernel, stride, padding, dilation, strict=True)
    return [(side[3], _after(*side, ceil_mode)) for side in sides]


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
