"""Interpolation along one axis after the other, with source coordinates as exact fractions.

A coordinate computed in float32 is off by some 1e-6 of a pixel a thousand pixels from the origin, and the
result by as much of the difference of two pixels. Here a coordinate is an integer over a fixed denominator:
the pixel is its quotient, the weight its remainder, rounded once.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import torch

from tracer.capture.contraction import accumulator, product

aten = torch.ops.aten

CUBIC, CUBIC_SMOOTHED = -0.75, -0.5
"""The free parameter of the cubic kernel (Keys, 1981): PyTorch's, and that of its antialiased form."""

_FINEST = 1 << 20
"""Largest denominator of a scale: a fraction below it is within 2**-40 of any scale."""

Taps = list[tuple[torch.Tensor, torch.Tensor]]

NEAREST: dict[int, Any] = {
    1: torch.ops.aten.upsample_nearest1d,
    2: torch.ops.aten.upsample_nearest2d,
    3: torch.ops.aten.upsample_nearest3d,
}
"""By the number of dims."""


def linear(data: torch.Tensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> Any:
    """`aten.upsample_linear1d`, `bilinear2d`, `trilinear3d`: `[batch, channels, *extents]` to `*size`."""
    return _separable(data, size, align_corners, scales, _linear_taps)


def cubic(data: torch.Tensor, size: Sequence[int], align_corners: bool, *scales: float | None) -> Any:
    """`aten.upsample_bicubic2d`: `[batch, channels, h, w]` to `size`."""
    return _separable(data, size, align_corners, scales, _cubic_taps)


def linear_smoothed(
    data: torch.Tensor, size: Sequence[int], align_corners: bool, *scales: float | None
) -> Any:
    """`aten._upsample_bilinear2d_aa`: weights of a triangle as wide as an output pixel."""
    return _smoothed(data, size, align_corners, scales, _triangle)


def cubic_smoothed(
    data: torch.Tensor, size: Sequence[int], align_corners: bool, *scales: float | None
) -> Any:
    """`aten._upsample_bicubic2d_aa`: weights of a cubic kernel stretched to an output pixel."""
    return _smoothed(data, size, align_corners, scales, _cubic_kernel)


def nearest(data: torch.Tensor, size: Sequence[int], *scales: float | None) -> Any:
    """`aten.upsample_nearest1d` and so on, by whole factors: every element several times over."""
    if data.dtype == torch.uint8:
        # Inductor gives its result in float32, which holds every byte.
        return NEAREST[len(size)](data.to(torch.float32), size, *scales).to(torch.uint8)
    factors = []
    for extent, out, factor in zip(data.shape[2:], size, _given(scales, size), strict=True):
        times = out // extent if extent else 0
        if times * extent != out or not _repeats(out, times, factor or out / max(extent, 1)):
            return NotImplemented
        factors.append(times)
    for axis, times in enumerate(factors, start=2):
        if times > 1:
            repeated = data.unsqueeze(axis + 1).expand(
                *data.shape[: axis + 1], times, *data.shape[axis + 1 :]
            )
            data = repeated.flatten(axis, axis + 1)
    return data.clone() if set(factors) == {1} else data


def _repeats(out: int, times: int, factor: float) -> bool:
    """Whether PyTorch's index, floor(i / factor) in float32, is i // times for all i."""
    scale = _single(1.0 / factor)
    return times <= 2 or all(int(_single(i * scale)) == i // times for i in range(out))


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _given(scales: Sequence[float | None], size: Sequence[int]) -> list[float | None]:
    return list(scales) if scales else [None] * len(size)


def _scale(extent: int, out: int, align_corners: bool, factor: float | None) -> Fraction:
    """Input pixels per output pixel (`area_pixel_compute_scale` in ATen)."""
    if align_corners:
        return Fraction(extent - 1, out - 1) if out > 1 else Fraction(0)
    if factor is not None and factor > 0:
        return Fraction(1.0 / factor).limit_denominator(_FINEST)
    return Fraction(extent, out)


def _separable(
    data: torch.Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[float | None], taps_of: Any
) -> Any:
    if not data.is_floating_point() or data.numel() == 0:
        return NotImplemented
    result = data.to(accumulator(data.dtype))
    for axis in range(len(size) - 1, -1, -1):
        extent, dim = data.shape[2 + axis], 2 + axis
        scale = _scale(extent, size[axis], align_corners, _given(scales, size)[axis])
        if scale == 1 and extent == size[axis]:
            continue
        place = torch.arange(size[axis], device=data.device)
        # Twice the coordinate has no halves: pixel centres lie at half pixels.
        top = scale.numerator * (2 * place if align_corners else 2 * place + 1)
        if not align_corners:
            top = top - scale.denominator
        taps: Taps = taps_of(top, 2 * scale.denominator, extent, result.dtype)
        trailing = [1] * (len(size) - 1 - axis)
        total: torch.Tensor | None = None
        for index, weight in taps:
            part = aten._unsafe_index(result, [None] * dim + [index]) * weight.reshape(-1, *trailing)
            total = part if total is None else total + part
        assert total is not None
        result = total
    return result.to(data.dtype) if result is not data else data.clone()


def _parts(
    top: torch.Tensor, bottom: int, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The pixel before the coordinate top / bottom, which is above -1, and the distances from and to it."""
    # A floor by way of a positive quotient.
    low = (top + bottom) // bottom - 1
    rest = top - low * bottom
    return low, rest.to(dtype) / bottom, (bottom - rest).to(dtype) / bottom


def _linear_taps(top: torch.Tensor, bottom: int, extent: int, dtype: torch.dtype) -> Taps:
    """Two pixels around the coordinate; before the first there is the first, twice."""
    low, after, before = _parts(top, bottom, dtype)
    return [(low.clamp(0, extent - 1), before), ((low + 1).clamp(0, extent - 1), after)]


def _cubic_taps(top: torch.Tensor, bottom: int, extent: int, dtype: torch.dtype) -> Taps:
    """Four pixels around the coordinate; outside are the border's pixels."""
    low, after, before = _parts(top, bottom, dtype)
    weights = (
        _outer(after, before, CUBIC),
        _inner(after, before, CUBIC),
        _inner(before, after, CUBIC),
        _outer(before, after, CUBIC),
    )
    return [
        ((low + offset).clamp(0, extent - 1), weight)
        for offset, weight in zip(range(-1, 3), weights, strict=True)
    ]


def _inner(x: torch.Tensor, rest: torch.Tensor, a: float) -> torch.Tensor:
    """The cubic kernel at x in [0, 1], (a + 2) x^3 - (a + 3) x^2 + 1, as factors; `rest` is 1 - x."""
    return rest * (1 + x - (a + 2) * (x * x))


def _outer(x: torch.Tensor, rest: torch.Tensor, a: float) -> torch.Tensor:
    """The cubic kernel at 1 + x, a (x^3 - 2 x^2 + x), as factors."""
    return a * x * (rest * rest)


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x).clamp(min=0)


def _cubic_kernel(x: torch.Tensor) -> torch.Tensor:
    far = torch.where(x < 2, _outer(x - 1, 2 - x, CUBIC_SMOOTHED), 0.0)
    return torch.where(x < 1, _inner(x, 1 - x, CUBIC_SMOOTHED), far)


def _smoothed(
    data: torch.Tensor, size: Sequence[int], align_corners: bool, scales: Sequence[float | None], kernel: Any
) -> Any:
    """Each axis as a product with a matrix of weights `[out, in]`, every row of which sums to one."""
    if not data.is_floating_point() or data.numel() == 0:
        return NotImplemented
    result = data.to(accumulator(data.dtype))
    for axis in (1, 0):
        extent = data.shape[2 + axis]
        scale = _scale(extent, size[axis], align_corners, _given(scales, size)[axis])
        if scale == 1 and extent == size[axis]:
            continue
        out = torch.arange(size[axis], device=data.device).unsqueeze(1)
        pixel = torch.arange(extent, device=data.device).unsqueeze(0)
        # From the output pixel's centre to the input pixel's, in units of the larger of the two.
        gap = (2 * pixel + 1) * scale.denominator - (2 * out + 1) * scale.numerator
        weights = kernel(gap.abs().to(result.dtype) / (2 * max(scale.numerator, scale.denominator)))
        weights = weights / weights.sum(1, keepdim=True)
        rows = result.movedim(2 + axis, -1)
        flat = product(rows.reshape(-1, extent), weights.t())
        result = flat.reshape(*rows.shape[:-1], size[axis]).movedim(-1, 2 + axis)
    return result.to(data.dtype) if result is not data else data.clone()
