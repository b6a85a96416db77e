"""Whether a strided box of memory meets itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Beyond so many elements, views that interleave without meeting count as overlapping.
_COUNTED = 1 << 22


def overlapping(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether two coordinates of a box with these extents and strides (in elements) are one element."""
    axes = sorted((abs(t), n) for t, n in zip(strides, sizes, strict=True) if n > 1)
    span, nested = 0, True
    for stride, size in axes:
        nested = nested and stride > span
        span += (size - 1) * stride
    if nested or 0 in sizes:
        return False
    count = 1
    for _, size in axes:
        count *= size
    # Fewer places than coordinates, or a stride of 0: some must meet.
    if span + 1 < count or count > _COUNTED:
        return True
    places = np.zeros(1, dtype=np.int64)
    for stride, size in axes:
        places = (places[:, None] + np.arange(size) * stride).reshape(-1)
    return len(np.unique(places)) < count
