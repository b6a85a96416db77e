"""Loads and stores: bounds, coordinate sets, and the sanitizer's maps; one closure per operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.affine import contains
from tracer.ktir.dialect.ktdp import LoadOp, StoreOp
from tracer.ktir.rules.overlap import overlapping
from tracer.ktir.simulator import compat
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import (
    UNWRITTEN,
    Buffer,
    View,
    assign,
    span,
    strided,
)
from tracer.ktir.simulator.ordering import Apart, BoxWindow, Clocks, ElementWindow, Window

Coordinates = tuple[int, ...]


class Session(Protocol):
    """What an access needs to know about the run."""

    core: int
    sanitize: bool
    compat: bool
    order: Apart | Clocks

    def report(
        self,
        code: str,
        message: str,
        coordinates: Coordinates | None = None,
        other: type[LoadOp | StoreOp] | None = None,
    ) -> None:
        """Record a finding of the current operation without stopping."""

    def accessed(self, buffer: Buffer, low: int, high: int) -> None:
        """Note the address span of an access."""


def check_box(view: View, lo: Sequence[int], shape: Sequence[int]) -> None:
    """Raise Fault unless the box `lo + [0, shape)` lies in the view, its coordinate set and its buffer."""
    for axis, (start, extent) in enumerate(zip(lo, shape, strict=True)):
        if extent and not (start >= 0 and start + extent <= view.sizes[axis]):
            bad = list(lo)
            bad[axis] = start if start < 0 else max(start, view.sizes[axis])
            raise Fault(
                "KT201",
                f"axis {axis}: coordinates {start} to {start + extent - 1} of a view of {view.sizes[axis]}",
                tuple(bad),
            )
    if view.box is not None:
        for axis, ((low, high), start, extent) in enumerate(zip(view.box, lo, shape, strict=True)):
            if extent and (start < low or start + extent > high):
                raise Fault(
                    "KT202",
                    f"axis {axis}: coordinates {start} to {start + extent - 1}, the set of the view holds "
                    f"{low} to {high - 1}",
                    tuple(lo),
                )
    if view.points is not None:
        grid = np.meshgrid(*(np.arange(b, b + n) for b, n in zip(lo, shape, strict=True)), indexing="ij")
        check_points(view, np.stack([g.ravel() for g in grid], axis=1))
    if not view.inside:
        low, high = span(view.address(lo), shape, view.strides)
        if low < 0 or high >= view.buffer.numel:
            raise Fault(
                "KT203",
                f"elements {low} to {high} of {view.buffer.name}, {view.buffer.bounds}",
                tuple(lo),
            )


def check_shape(shape: Sequence[int], points: np.ndarray, what: str = "tensor") -> None:
    """Raise Fault KT201 unless every row of `points` is an index into this shape."""
    bad = ((points < 0) | (points >= np.asarray(shape))).any(axis=1)
    if bad.any():
        where = tuple(int(v) for v in points[bad.argmax()])
        raise Fault("KT201", f"outside the {what} of shape {list(shape)}", where)


def check_points(view: View, points: np.ndarray) -> None:
    """Raise Fault unless every row of `points` lies in the view, its coordinate set and its buffer."""
    if not len(points):
        return
    check_shape(view.sizes, points, "view")
    allowed = np.ones(len(points), dtype=bool)
    if view.box is not None:
        lo, hi = np.asarray(view.box).T
        allowed = ((points >= lo) & (points < hi)).all(axis=1)
    if view.points is not None:
        points_set, symbols = view.points
        allowed = allowed & contains(points_set, list(points.T), symbols)
    if not allowed.all():
        where = tuple(int(v) for v in points[allowed.argmin()])
        raise Fault("KT202", "outside the coordinate set of the view", where)
    if not view.inside:
        addresses = view.offset + points @ np.asarray(view.strides)
        outside = (addresses < 0) | (addresses >= view.buffer.numel)
        if outside.any():
            where = tuple(int(v) for v in points[outside.argmax()])
            raise Fault("KT203", f"outside {view.buffer.name}, {view.buffer.bounds}", where)


Place = Callable[[Sequence[int]], Coordinates]
"""Coordinates in the view of an element of a window, whose place in the window is given."""


def _in_box(lo: Sequence[int]) -> Place:
    # Where elements have several numbers each, the place has one axis more.
    return lambda place: tuple(i + b for i, b in zip(place, lo, strict=False))


def _in_list(view: View, flat: np.ndarray) -> Place:
    return lambda place: coordinates(int(flat[place[0]]) - view.offset, view.sizes, view.strides)


def _first(mask: Tensor) -> list[int]:
    return [int(i) for i in torch.nonzero(mask)[0]]


def coordinates(index: int, sizes: Sequence[int], strides: Sequence[int]) -> Coordinates:
    """Coordinates of the element `index` elements from the one at the origin; any of them where the layout
    overlaps itself.
    """
    index -= sum((n - 1) * s for n, s in zip(sizes, strides, strict=True) if s < 0)
    found = [0] * len(sizes)
    for axis in sorted(range(len(sizes)), key=lambda a: -abs(strides[a])):
        size, stride = sizes[axis], strides[axis]
        if size > 1 and stride:
            step = min(index // abs(stride), size - 1)
            index -= step * abs(stride)
            found[axis] = step if stride > 0 else size - 1 - step
    return tuple(found)


def note_read(session: Session, buffer: Buffer, window: Window, place: Place) -> None:
    """Record that the current core reads these elements; report what it must not read yet."""
    order, core = session.order, session.core
    buffer.track(order.dtype)
    assert buffer.writers is not None
    writers = window.get(buffer.writers)
    if not buffer.initialized:
        missing = writers == UNWRITTEN
        if bool(missing.any()):
            where = place(_first(missing))
            session.report("KT204", f"{buffer.name}: nobody wrote this element", where)
    if (foreign := order.foreign(writers, core)) is not None:
        other = order.writer(int(writers[tuple(torch.nonzero(foreign)[0])]))
        where = place(_first(foreign))
        session.report("KT206", f"{buffer.name}: core {other} writes this element", where, StoreOp)
    order.read(buffer, window, core)


def note_write(session: Session, buffer: Buffer, window: Window, place: Place) -> None:
    """Record that the current core writes these elements; report what others wrote or read."""
    order, core = session.order, session.core
    buffer.track(order.dtype)
    assert buffer.writers is not None
    writers = window.get(buffer.writers)
    if (foreign := order.foreign(writers, core)) is not None:
        other = order.writer(int(writers[tuple(torch.nonzero(foreign)[0])]))
        where = place(_first(foreign))
        session.report("KT205", f"{buffer.name}: core {other} writes this element too", where, StoreOp)
    if (late := order.unordered_reads(buffer, window, core)) is not None:
        session.report(
            "KT206", f"{buffer.name}: another core reads this element", place(_first(late)), LoadOp
        )
    window.put(buffer.writers, order.mark(core))


def _present(buffer: Buffer) -> None:
    """Raise Fault KT304 where a trace needs elements of memory that was not given."""
    if buffer.numel > buffer.data.numel():
        raise Fault("KT304", f"the address depends on elements of {buffer.name}; pass the tensor")


def read_box(session: Session, view: View, lo: Sequence[int], shape: Sequence[int]) -> Tensor:
    """The elements of a box of the view, a copy where somebody may store there later."""
    if session.compat:
        return compat.read(view, lo, shape)
    check_box(view, lo, shape)
    buffer = view.buffer
    _present(buffer)
    offset = view.address(lo)
    session.accessed(buffer, *span(offset, shape, view.strides))
    if not buffer.stored:
        return strided(buffer.data, offset, shape, view.strides)
    if session.sanitize:
        note_read(session, buffer, BoxWindow(offset, shape, view.strides, buffer.grain), _in_box(lo))
    return strided(buffer.data, offset, shape, view.strides).clone(memory_format=torch.contiguous_format)


def write_box(session: Session, view: View, lo: Sequence[int], shape: Sequence[int], value: Tensor) -> None:
    """Store `value` to a box of the view."""
    if session.compat:
        compat.write(view, lo, shape, value)
        return
    check_box(view, lo, shape)
    buffer = view.buffer
    if overlapping(shape, view.strides):
        tile = f"elements of this {list(shape)} tile of {buffer.name}"
        raise Fault("KT118", f"strides {list(view.strides)} make {tile} share memory", tuple(lo))
    offset = view.address(lo)
    session.accessed(buffer, *span(offset, shape, view.strides))
    if session.sanitize:
        note_write(session, buffer, BoxWindow(offset, shape, view.strides, buffer.grain), _in_box(lo))
    assign(buffer.data, offset, shape, view.strides, value)


def addresses_of(view: View, points: np.ndarray) -> np.ndarray:
    """Element indices of rows of coordinates. Raises Fault for one outside the view, its set or
    its buffer.
    """
    check_points(view, points)
    return view.offset + points @ np.asarray(view.strides, dtype=np.int64)


def read_addresses(session: Session, view: View, flat: np.ndarray) -> Tensor:
    """The elements at these indices, which lie in the buffer, as a 1-D tensor."""
    buffer = view.buffer
    _present(buffer)
    addresses = torch.from_numpy(np.array(flat))
    if len(flat):
        session.accessed(buffer, int(flat.min()), int(flat.max()))
    if buffer.stored and session.sanitize:
        note_read(session, buffer, ElementWindow(addresses, buffer.grain), _in_list(view, flat))
    return buffer.data[addresses]


def write_addresses(session: Session, view: View, flat: np.ndarray, value: Tensor) -> None:
    """Store a 1-D tensor to these element indices; the last of duplicates wins."""
    buffer = view.buffer
    if not len(flat):
        return
    session.accessed(buffer, int(flat.min()), int(flat.max()))
    unique, last, counts = np.unique(flat[::-1], return_index=True, return_counts=True)
    if len(unique) != len(flat):
        first = int(np.isin(flat, unique[counts > 1]).argmax())
        text = f"{buffer.name}: {len(flat) - len(unique)} elements are written twice, where the last wins"
        session.report("KT217", f"{text}; the first is", _in_list(view, flat)([first]))
        keep = len(flat) - 1 - last
        flat, value = flat[keep], value[torch.from_numpy(keep)]
    addresses = torch.from_numpy(np.array(flat))
    if session.sanitize:
        note_write(session, buffer, ElementWindow(addresses, buffer.grain), _in_list(view, flat))
    buffer.data[addresses] = value
