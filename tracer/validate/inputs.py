"""Input values that make errors visible: the same on every machine for the same generator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

PERIOD = 1048573
"""Longest run of values that are drawn one by one; longer tensors repeat it. It is prime, so that no row
length or tile size of a real tensor divides it and no two tiles are equal."""

OCTAVES = 3
"""Binades of the values that floats are drawn from: [1/4, 2)."""

MOST_OCTAVES = {torch.bfloat16: 100, torch.float16: 15}
"""Binades, down from [1, 2), that different floats are drawn from where there would be too few of them."""

_OCTAVE = 1 << 18
"""Values of a binade that different floats are drawn from at most: more than `PERIOD` in all."""

STEPS = {torch.bfloat16: 128, torch.float16: 1024, torch.float32: 1 << 20, torch.float64: 1 << 20}
"""Values between 1 and 2 that floats are drawn from, by dtype."""

INTEGERS = 100
"""Bound of integers that nothing indexes with: small enough for int8, large enough to tell values apart."""


_skip_floats: list[bool] = []


@contextmanager
def floats_without_memory() -> Iterator[None]:
    """Inside, floating tensors are one zero seen through strides of zero: for who needs only the indices."""
    _skip_floats.append(True)
    try:
        yield
    finally:
        _skip_floats.pop()


def random_tensor(
    shape: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype,
    *,
    generator: torch.Generator,
    low: int = 0,
    high: int | None = None,
    distinct: bool = False,
    positive: bool = False,
    scale: float = 1.0,
    ordered: bool = False,
) -> torch.Tensor:
    """A tensor of this shape, stride (in elements) and dtype, its memory filled throughout.

    Floats have magnitudes in [1/4, 2) and mixed signs: no value is so small that ignoring it passes, no sum
    of 100 000 products comes near the end of float16 (65504), and sums do not cancel by construction.
    `scale`, a power of two, multiplies them. With `positive` all signs are plus, and no integer is 0.
    Integers lie in [low, high); `distinct` ones differ from each other. Where there are more of them than
    values, those of as many trailing dims differ as have no more elements than there are values, and beyond
    those every dim by itself that is no longer.
    `distinct` floats, and integers without `high`, differ along every dim that is no longer than there are
    values: 30 000 of float16, 25 000 of bfloat16, a million of float32, half as many where they are positive.
    Those of a long dim reach below 1/4.
    `ordered` ones ascend along the last dim. Bools are mixed. Where strides leave gaps, the gaps hold such
    values too. A strided tensor starts some way into its storage.
    """
    if _skip_floats and dtype.is_floating_point:
        return torch.zeros(1, dtype=dtype).as_strided(tuple(shape), (0,) * len(shape))
    low = max(low, 1) if positive and not dtype.is_floating_point else low
    dense = _is_dense(shape, stride)
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    offset = 0 if dense else 64
    if distinct and not dtype.is_floating_point and dtype != torch.bool and high is not None:
        made = _distinct(shape, stride, dtype, generator, low, high)
        return _ascending(made) if ordered else made
    if distinct and dtype != torch.bool:
        values = _different(span + offset, dtype, generator, low, max((INTEGERS, *shape)), positive)
    else:
        drawn = min(span + offset, PERIOD)
        values = _values(drawn, dtype, generator, low, INTEGERS if high is None else high, positive)
    drawn = values.numel()
    if scale != 1.0:
        values *= scale
    if drawn < span + offset:
        values = values.repeat(-(-(span + offset) // drawn))[: span + offset]
    made = values.as_strided(tuple(shape), tuple(stride), offset)
    return _ascending(made) if ordered and made.dim() else made


def _ascending(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, its memory changed so that its rows ascend."""
    once = tensor
    for dim, step in enumerate(tensor.stride()):
        if step == 0:
            once = once.narrow(dim, 0, min(1, once.shape[dim]))
    once.copy_(once.sort(-1).values)
    return tensor


def _different(
    count: int, dtype: torch.dtype, generator: torch.Generator, low: int, least: int, positive: bool
) -> torch.Tensor:
    """`count` values, or as many different ones as are repeated to make `count`: a prime number of them.

    Then any two elements of a row or a column differ, whatever its stride, unless that is a multiple of the
    prime. Of integers there are at least `least`, if the dtype has them.
    """
    if dtype.is_floating_point:
        octave = min(STEPS.get(dtype, 1), _OCTAVE)
        signs = 1 if positive else 2
        # One binade more than it takes, so that a prime number of values is enough, too.
        octaves = min(max(OCTAVES, least // (octave * signs) + 1), MOST_OCTAVES.get(dtype, OCTAVES))
        pool = octaves * octave * signs
    else:
        pool = min(2 * least, torch.iinfo(dtype).max - low)
    chosen = torch.randperm(pool, generator=generator)
    chosen = chosen[: count if count <= pool else _prime(min(pool, PERIOD))]
    if not dtype.is_floating_point:
        return (chosen + low).to(dtype)
    sign = torch.ones(1) if positive else (chosen % 2 * 2 - 1).to(torch.float64)
    place = chosen if positive else chosen // 2
    exponent = (place // octave - (octaves - 1)).to(torch.float64)
    return (sign * (1 + (place % octave).to(torch.float64) / octave) * torch.exp2(exponent)).to(dtype)


def _prime(limit: int) -> int:
    """The largest prime that is not above `limit`."""
    return next(n for n in range(limit, 1, -1) if all(n % d for d in range(2, math.isqrt(n) + 1)))


def _values(
    count: int, dtype: torch.dtype, generator: torch.Generator, low: int, high: int, positive: bool
) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).to(torch.bool)
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(low, max(high, low + 1), (count,), generator=generator).to(dtype)
    # As many bits as the dtype holds: nothing is rounded, and equal values (ties of a sort) are rare.
    steps = STEPS.get(dtype, 128)
    magnitude = torch.randint(steps // 4, 2 * steps, (count,), generator=generator).to(torch.float32) / steps
    if not positive:
        magnitude *= torch.randint(0, 2, (count,), generator=generator).to(torch.float32) * 2 - 1
    return magnitude.to(dtype)


def _distinct(
    shape: Sequence[int],
    stride: Sequence[int],
    dtype: torch.dtype,
    generator: torch.Generator,
    low: int,
    high: int,
) -> torch.Tensor:
    width = max(high - low, 1)
    inner = len(shape)
    while inner and math.prod(shape[inner - 1 :]) <= width:
        inner -= 1
    places = torch.arange(math.prod(shape[inner:])).reshape(tuple(shape[inner:]))
    for extent in reversed(shape[:inner]):
        # Another shift for every row: two elements of one place in their rows differ as well.
        shifts = torch.randperm(width, generator=generator).repeat(-(-extent // width))[:extent]
        places = shifts.view(-1, *[1] * places.dim()) + places
    values = torch.randperm(width, generator=generator)[places % width]
    result = torch.empty_strided(tuple(shape), tuple(stride), dtype=dtype)
    return result.copy_((values + low).to(dtype))


def _is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    step = 1
    for extent, distance in zip(reversed(shape), reversed(stride), strict=True):
        if extent != 1 and distance != step:
            return False
        step *= extent
    return True
