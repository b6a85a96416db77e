"""Address spans: how far apart the elements are that one core reaches in one buffer.

A core addresses `SpyreTarget.span_bytes` of a buffer. Tiles dealt round robin reach from one end of it to
the other; where a buffer is wider, each core takes neighbouring tiles instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tracer.rewrite.access import Access
from tracer.rewrite.axes import Axis
from tracer.target import SpyreTarget

Sizes: TypeAlias = "np.ndarray"


def wide_accesses(accesses: Sequence[Access], target: SpyreTarget) -> tuple[Access, ...]:
    """Accesses that reach over more bytes than a core addresses, all tiles together.

    An access at indices that are data reaches what the data say, whoever takes which tile: it is left out.
    """
    direct = [access for access in accesses if not any(dim.value for dim in access.dims)]
    return tuple(access for access in direct if _whole(access) > target.span_bytes)


def neighbours_reach(access: Access, axes: Sequence[Axis], blocks: Mapping[Axis, Sizes], cores: int) -> Sizes:
    """Bytes between the first and the last element that one core reaches at most, per candidate tiling.

    Core c takes tiles `c * n` up to `(c + 1) * n`, n = ceil(tiles / cores); of the parallel `axes` the last
    runs fastest.
    """
    inner = np.ones_like(next(iter(blocks.values())))
    tiles = math.prod((_count(axis, blocks) for axis in axes), start=inner)
    run = -(-tiles // cores)
    first = np.minimum(np.arange(cores)[:, None] * run, tiles - 1)
    last = np.minimum(first + run, tiles) - 1
    extent: dict[Axis, Sizes] = {}
    for axis in reversed(axes):
        count = _count(axis, blocks)
        outer = inner * count
        steps = np.where(first // outer == last // outer, last // inner - first // inner + 1, count)
        extent[axis] = np.minimum(steps * blocks[axis], axis.extent)
        inner = outer
    reach = np.zeros_like(first)
    for axis, stride in _strides(access):
        reach = reach + (extent.get(axis, axis.extent) - 1) * stride
    return (reach.max(axis=0) + 1) * access.bytes


def _count(axis: Axis, blocks: Mapping[Axis, Sizes]) -> Sizes:
    return -(-axis.extent // blocks[axis])


def _whole(access: Access) -> int:
    return (1 + sum((axis.extent - 1) * stride for axis, stride in _strides(access))) * access.bytes


def _strides(access: Access) -> list[tuple[Axis, int]]:
    """The axes that move the access, and by how many elements one step does."""
    found = []
    for dim in access.dims:
        found += [(axis, dim.stride * abs(step)) for axis, step in dim.steps]
        found += [(dim.axis, dim.stride)] if dim.axis is not None else []
    return found
