"""Input values that make errors visible: the same on every machine for the same generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

PERIOD = 1048573
"""Longest run of values that are drawn one by one; longer tensors repeat it. It is prime, so that no row
length or tile size of a real tensor divides it and no two tiles are equal."""

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
) -> torch.Tensor:
    """A tensor of this shape, stride (in elements) and dtype, its memory filled throughout.

    Floats have magnitudes in [1/4, 2) and mixed signs: no value is so small that ignoring it passes, no sum
    of 100 000 products comes near the end of float16 (65504), and sums do not cancel by construction.
    `scale`, a power of two, multiplies them. With `positive` all signs are plus. Integers lie in [low, high);
    `distinct` ones differ from each other, along the last dim where there are more of them than values.
    Bools are mixed. Where strides leave gaps, the gaps hold such values too. A strided tensor starts some
    way into its storage.
    """
    if _skip_floats and dtype.is_floating_point:
        return torch.zeros(1, dtype=dtype).as_strided(tuple(shape), (0,) * len(shape))
    dense = _is_dense(shape, stride)
    span = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    offset = 0 if dense else 64
    if distinct and not dtype.is_floating_point and dtype != torch.bool:
        return _distinct(shape, stride, dtype, generator, low, INTEGERS if high is None else high)
    drawn = min(span + offset, PERIOD)
    values = _values(drawn, dtype, generator, low, INTEGERS if high is None else high, positive)
    if scale != 1.0:
        values *= scale
    if drawn < span + offset:
        values = values.repeat(-(-(span + offset) // drawn))[: span + offset]
    return values.as_strided(tuple(shape), tuple(stride), offset)


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
    count = 1
    for extent in shape:
        count *= extent
    row = shape[-1] if shape else 1
    result = torch.empty_strided(tuple(shape), tuple(stride), dtype=dtype)
    if count <= high - low:
        values = torch.randperm(high - low, generator=generator)[:count]
    else:
        width = max(high - low, row)
        rows = [torch.randperm(width, generator=generator)[:row] for _ in range(count // max(row, 1))]
        values = torch.cat(rows) if rows else torch.empty(0, dtype=torch.int64)
    return result.copy_((values + low).reshape(tuple(shape)).to(dtype))


def _is_dense(shape: Sequence[int], stride: Sequence[int]) -> bool:
    step = 1
    for extent, distance in zip(reversed(shape), reversed(stride), strict=True):
        if extent != 1 and distance != step:
            return False
        step *= extent
    return True
