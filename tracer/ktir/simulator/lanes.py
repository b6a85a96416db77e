"""Lanes: cores, or iterations of a core's loop, run together as the leading dimension of every tile.

Only programs in which lanes do not meet can run this way. Whatever is not plainly so - an access out of
bounds, two lanes at one element, a read of something stored - raises Bail, and the caller runs the
function core by core, which finds and names what is wrong. Lanes therefore never report anything
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.memory import Buffer, View

MAX_TRIPS = 1 << 26
"""Iterations that are expanded at once, over all lanes; more would not fit in memory."""


class Bail(Exception):
    """These lanes cannot be shown to be independent."""


class Lanes:
    """A set of lanes that run together: the core of each, and a number that no other lane of the run has."""

    issued = 0

    def __init__(self, cores: np.ndarray, limit: int):
        self.n = len(cores)
        self.cores = cores
        self.limit = limit
        self.ids = torch.arange(Lanes.issued + 1, Lanes.issued + 1 + self.n, dtype=torch.int32)
        Lanes.issued = (Lanes.issued + self.n) % (1 << 30)

    def coordinate(self, axis: int, grid: Sequence[int]) -> Tensor:
        """Grid coordinate of every lane's core along an axis, x fastest."""
        x, y, _ = grid
        values = (self.cores % x, self.cores // x % y, self.cores // (x * y))[axis]
        return torch.from_numpy(values)

    def expand(
        self, session: Any, lower: Any, upper: Any, step: Any, weight: int
    ) -> Iterator[tuple[Tensor, Tensor, Lanes]]:
        """Chunks of (lane, iteration) pairs: index of the outer lane, induction value, and the new lanes.

        The loop executes `weight` operations per iteration. Raises Bail where the lanes need too many.
        """
        low, high, by = (np.broadcast_to(np.asarray(v), (self.n,)) for v in (lower, upper, step))
        if (by <= 0).any():
            raise Bail
        trips = np.maximum(0, -(-(high - low) // by))
        if float(trips.sum(dtype=np.float64)) > MAX_TRIPS:
            raise Bail
        self.spend(session, trips * weight)
        outer = np.repeat(np.arange(self.n), trips)
        count = np.arange(len(outer)) - np.repeat(np.cumsum(trips) - trips, trips)
        values = low[outer] + count * by[outer]
        order = np.argsort(values, kind="stable")
        outer, values = outer[order], values[order]
        for start in range(0, len(outer), self.limit):
            part = slice(start, start + self.limit)
            lanes = Lanes(self.cores[outer[part]], self.limit)
            yield torch.from_numpy(outer[part]), torch.from_numpy(values[part]), lanes

    def where(self, condition: Tensor, wanted: bool) -> tuple[Tensor, Lanes] | None:
        """The lanes whose condition is as wanted; None where there are none."""
        index = torch.nonzero(condition == wanted).reshape(-1)
        return (index, Lanes(self.cores[index.numpy()], self.limit)) if len(index) else None

    def spend(self, session: Any, operations: Any) -> None:
        """Count operations of every lane for its core. Raises Bail where a core would execute too many."""
        weights = np.broadcast_to(np.asarray(operations, dtype=np.float64), (self.n,))
        for core, spent in enumerate(np.bincount(self.cores, weights)):
            session.spent[core] = session.spent.get(core, 0) + int(spent)
            if session.spent[core] > session.max_steps:
                raise Bail

    def steps(self, session: Any, lower: int, upper: int, step: int, weight: int) -> range:
        """Induction values of a loop whose bounds are those of every lane. Raises Bail as `expand` does."""
        if step <= 0:
            raise Bail
        self.spend(session, weight * max(0, -(-(upper - lower) // step)))
        return range(lower, upper, step)

    def trips(self, session: Any, lower: Any, upper: Any, step: Any, weight: int) -> Iterator[Any]:
        """Induction values of a loop that every lane runs equally often. Raises Bail for any other."""
        low, high, by = (np.asarray(v) for v in (lower, upper, step))
        if (by <= 0).any():
            raise Bail
        counts = np.maximum(0, -(-(high - low) // by))
        if counts.size and (counts.min() != counts.max() or counts.max() > MAX_TRIPS):
            raise Bail
        self.spend(session, counts * weight)
        for k in range(int(counts.max()) if counts.size else 0):
            value = lower + k * step
            yield value if isinstance(value, Tensor) else torch.full((self.n,), int(value), dtype=torch.int64)


def take(value: Any, index: Tensor) -> Any:
    """A varying value for a selection of lanes."""
    if isinstance(value, Tensor):
        return value[index]
    if isinstance(value, View):
        return value if isinstance(value.offset, int) else replace(value, offset=value.offset[index.numpy()])
    if isinstance(value, tuple):
        return tuple(take(v, index) for v in value)
    return value


def spread(value: Any, lanes: Lanes, dtype: torch.dtype, shape: Sequence[int] | None) -> Tensor:
    """A uniform value, once per lane."""
    if not isinstance(value, Tensor):
        return torch.full((lanes.n,), value, dtype=dtype)
    return value.expand(lanes.n, *(shape if shape is not None else ()))


def merge(
    lanes: Lanes, parts: Sequence[tuple[Tensor, Any]], dtype: torch.dtype, shape: Sequence[int]
) -> Tensor:
    """The results of both branches of a conditional, each for its lanes."""
    out = torch.empty((lanes.n, *shape), dtype=dtype)
    for index, value in parts:
        out[index] = value if isinstance(value, Tensor) else torch.tensor(value, dtype=dtype)
    return out


def _progression(first: np.ndarray) -> list[tuple[int, int]] | None:
    """`first` as a nest of (count, step), outermost first, at most two deep; None where it is no
    such nest.
    """
    n = len(first)
    if n == 1:
        return [(1, 0)]
    deltas = np.diff(first)
    step = int(deltas[0])
    breaks = np.flatnonzero(deltas != step)
    if not len(breaks):
        return [(n, step)] if step >= 0 else None
    run = int(breaks[0]) + 1
    if n % run or step < 0:
        return None
    rows = first.reshape(-1, run)
    outer = np.diff(rows[:, 0])
    if (np.diff(rows, axis=1) != step).any() or (outer != outer[0]).any() or outer[0] < 0:
        return None
    return [(n // run, int(outer[0])), (run, step)]


def read_window(data: Tensor, first: np.ndarray, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """`[lanes, *shape]` elements of 1-D `data`, lane i from storage element `first[i]`."""
    nest = _progression(first)
    if nest is None:
        return torch.stack([torch.as_strided(data, shape, strides, int(f)) for f in first])
    counts, steps = [c for c, _ in nest], [s for _, s in nest]
    window = torch.as_strided(data, (*counts, *shape), (*steps, *strides), int(first[0]))
    return window if len(nest) == 1 else window.reshape(len(first), *shape)


def write_window(
    data: Tensor, first: np.ndarray, shape: Sequence[int], strides: Sequence[int], value: Any
) -> None:
    """Store `[lanes, *shape]` or one number to windows that do not overlap."""
    nest = _progression(first)
    if nest is not None:
        counts, steps = [c for c, _ in nest], [s for _, s in nest]
        window = torch.as_strided(data, (*counts, *shape), (*steps, *strides), int(first[0]))
        if isinstance(value, Tensor):
            window.copy_(value.reshape(*counts, *shape) if len(nest) > 1 else value)
        else:
            window.fill_(value)
        return
    for lane, start in enumerate(first):
        window = torch.as_strided(data, shape, strides, int(start))
        if isinstance(value, Tensor):
            window.copy_(value[lane])
        else:
            window.fill_(value)


def _starts(view: View, subscripts: Sequence[Any], lo: Sequence[int], extents: Sequence[int]) -> list[Any]:
    """First coordinate per axis, as ints or arrays. Raises Bail unless the boxes lie in the view and its
    set.
    """
    if view.points is not None or min(view.strides, default=0) < 0 or not view.inside:
        raise Bail
    out = []
    bounds = view.box or tuple((0, n) for n in view.sizes)
    for value, base, extent, (low, high) in zip(subscripts, lo, extents, bounds, strict=True):
        start = (value.numpy() if isinstance(value, Tensor) else value) + base
        smallest, largest = (
            (int(start.min()), int(start.max())) if isinstance(start, np.ndarray) else (start, start)
        )
        if smallest < low or largest + extent > high:
            raise Bail
        out.append(start)
    return out


def _first(view: View, starts: Sequence[Any], lanes: Lanes) -> np.ndarray:
    total: Any = view.offset + view.buffer.base
    for start, stride in zip(starts, view.strides, strict=True):
        total = total + start * stride
    return np.broadcast_to(np.asarray(total, dtype=np.int64), (lanes.n,))


def load(session: Any, tile: Any, lanes: Lanes, lo: Sequence[int], extents: Sequence[int]) -> Tensor:
    """A tile per lane."""
    view = tile[0]
    if not isinstance(view, View):
        raise Bail
    starts = _starts(view, tile[2:], lo, extents)
    first = _first(view, starts, lanes)
    buffer = view.buffer
    if not buffer.initialized:
        raise Bail
    session.reached(buffer, first, extents, view.strides, lanes)
    if not buffer.stored:
        return read_window(buffer.data, first, extents, view.strides)
    written, readers = _maps(buffer)
    local = first - buffer.base
    if bool(read_window(written, local, extents, view.strides).any()):
        raise Bail
    before = read_window(readers, local, extents, view.strides)
    own = lanes.ids.reshape(-1, *([1] * len(extents)))
    # Lanes that share an element overwrite each other's mark, so look whether every mark stayed.
    marked = torch.where((before == 0) | (before == own), own, -1)
    write_window(readers, local, extents, view.strides, marked)
    after = read_window(readers, local, extents, view.strides)
    if not bool((after == marked).all()):
        write_window(readers, local, extents, view.strides, -1)
    return read_window(buffer.data, first, extents, view.strides).clone()


def store(
    session: Any, value: Tensor, tile: Any, lanes: Lanes, lo: Sequence[int], extents: Sequence[int]
) -> None:
    """A tile per lane, to elements that no other lane touches. Raises Bail where that is not certain."""
    view = tile[0]
    if not isinstance(view, View):
        raise Bail
    starts = _starts(view, tile[2:], lo, extents)
    if not (_injective(view) and isinstance(view.offset, int) and _disjoint(starts, extents, lanes)):
        raise Bail
    first = _first(view, starts, lanes)
    buffer = view.buffer
    session.reached(buffer, first, extents, view.strides, lanes)
    written, readers = _maps(buffer)
    local = first - buffer.base
    if bool(read_window(written, local, extents, view.strides).any()):
        raise Bail
    if buffer.loaded:
        before = read_window(readers, local, extents, view.strides)
        own = lanes.ids.reshape(-1, *([1] * len(extents)))
        if bool(((before != 0) & (before != own)).any()):
            raise Bail
    write_window(written, local, extents, view.strides, 1)
    write_window(buffer.data, first, extents, view.strides, value.expand(lanes.n, *extents))


def _maps(buffer: Buffer) -> tuple[Tensor, Tensor]:
    if buffer.writers is None:
        buffer.writers = torch.zeros(buffer.numel, dtype=torch.uint8)
        # Only buffers that are loaded too need to know who read what.
        buffer.readers = torch.zeros(buffer.numel if buffer.loaded else 0, dtype=torch.int32)
    assert buffer.readers is not None
    return buffer.writers, buffer.readers


def _injective(view: View) -> bool:
    """Whether distinct coordinates of the view are distinct elements."""
    reach = 1
    for stride, size in sorted((s, n) for s, n in zip(view.strides, view.sizes, strict=True) if n > 1):
        if stride < reach:
            return False
        reach = stride * (size - 1) + reach
    return True


def _disjoint(starts: Sequence[Any], extents: Sequence[int], lanes: Lanes) -> bool:
    """Whether the boxes lie on distinct cells of one grid."""
    if lanes.n == 1:
        return True
    cells = np.zeros(lanes.n, dtype=np.int64)
    for start, extent in zip(starts, extents, strict=True):
        if not isinstance(start, np.ndarray):
            continue
        offset = start - start.min()
        if (offset % extent).any():
            return False
        cell = offset // extent
        cells = cells * (int(cell.max()) + 1) + cell
    return len(np.unique(cells)) == lanes.n
