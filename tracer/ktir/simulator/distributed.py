"""Accesses through distributed views: boxes and lists of points, each part of which some partition holds.

In compat mode as in the public simulator: a load takes an element from the last partition that holds it,
a store goes to all of them; what no partition holds loads as zero and is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from xdsl.ir.affine import AffineSet

from tracer.ktir.affine import contains
from tracer.ktir.simulator.access import (
    Session,
    addresses_of,
    read_addresses,
    read_box,
    write_addresses,
    write_box,
)
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import DistributedView, View


@dataclass(frozen=True)
class Piece:
    """What one partition holds of a box: `window` in the box, start `lo` and `shape` in its own coordinates.

    Of a partition that is no box, `mask` says which elements of the window it holds, and `rows` are the own
    coordinates of those, an (n, dims) array.
    """

    part: View
    window: tuple[slice, ...]
    lo: tuple[int, ...]
    shape: tuple[int, ...]
    mask: np.ndarray | None = None
    rows: np.ndarray | None = None


def pieces(view: DistributedView, lo: Sequence[int], shape: Sequence[int]) -> Iterator[Piece]:
    """The pieces of a box, a partition each; nothing for a partition beside it."""
    for part, box, points in zip(view.parts, view.boxes, view.sets, strict=True):
        if (clip := _clipped(lo, shape, box)) is not None:
            yield Piece(part, *clip, *(_members(points, box, *clip[1:]) if points is not None else ()))


def read(session: Session, view: DistributedView, lo: Sequence[int], shape: Sequence[int]) -> Tensor:
    """The box gathered from the partitions that hold it; raises Fault KT220 where one element has no
    partition.
    """
    out = _empty(view, shape)
    held = np.zeros(tuple(shape), dtype=bool)
    for piece in pieces(view, lo, shape):
        if piece.mask is None or piece.rows is None:
            out[piece.window] = read_box(session, piece.part, piece.lo, piece.shape)
            held[piece.window] = True
        else:
            found = read_addresses(session, piece.part, addresses_of(piece.part, piece.rows))
            out[piece.window][torch.from_numpy(piece.mask)] = found
            held[piece.window] |= piece.mask
    _all_held(session, held, lambda i: tuple(int(n) + b for n, b in zip(i, lo, strict=True)))
    return out


def write(
    session: Session, view: DistributedView, lo: Sequence[int], shape: Sequence[int], value: Tensor
) -> None:
    """The box scattered to every partition that holds a piece of it; Fault KT220 as for `read`."""
    held = np.zeros(tuple(shape), dtype=bool)
    for piece in pieces(view, lo, shape):
        if piece.mask is None or piece.rows is None:
            write_box(session, piece.part, piece.lo, piece.shape, value[piece.window])
            held[piece.window] = True
        else:
            flat = value[piece.window][torch.from_numpy(piece.mask)]
            write_addresses(session, piece.part, addresses_of(piece.part, piece.rows), flat)
            held[piece.window] |= piece.mask
    _all_held(session, held, lambda i: tuple(int(n) + b for n, b in zip(i, lo, strict=True)))


def read_points(session: Session, view: DistributedView, rows: np.ndarray) -> Tensor:
    """The elements at these coordinates, an (n, dims) array, as a 1-D tensor; Fault KT220 as for `read`."""
    out = _empty(view, (len(rows),))
    held = np.zeros(len(rows), dtype=bool)
    for part, mask, local in owners(view, rows):
        out[torch.from_numpy(mask)] = read_addresses(session, part, addresses_of(part, local))
        held |= mask
    _all_held(session, held, lambda i: tuple(int(n) for n in rows[i[0]]))
    return out


def write_points(session: Session, view: DistributedView, rows: np.ndarray, value: Tensor) -> None:
    """Store a 1-D tensor to these coordinates, an (n, dims) array; Fault KT220 as for `read`."""
    held = np.zeros(len(rows), dtype=bool)
    for part, mask, local in owners(view, rows):
        write_addresses(session, part, addresses_of(part, local), value[torch.from_numpy(mask)])
        held |= mask
    _all_held(session, held, lambda i: tuple(int(n) for n in rows[i[0]]))


def owners(view: DistributedView, rows: np.ndarray) -> Iterator[tuple[View, np.ndarray, np.ndarray]]:
    """Each partition that holds some of these global coordinates, which of them, and their local ones."""
    for part, box, points in zip(view.parts, view.boxes, view.sets, strict=True):
        low, high = np.asarray(box, dtype=np.int64).reshape(-1, 2).T
        mask = np.array(((rows >= low) & (rows < high)).all(axis=1))
        if points is not None:
            mask = mask & contains(points[0], list(rows.T), points[1])
        if mask.any():
            yield part, mask, rows[mask] - low


def _members(
    points: tuple[AffineSet, tuple[int, ...]],
    box: Sequence[tuple[int, int]],
    local: Sequence[int],
    extent: Sequence[int],
) -> tuple[np.ndarray, np.ndarray]:
    """Which elements of a window of a partition it holds, and the local coordinates of those, in order."""
    grid = np.meshgrid(*(np.arange(b, b + n) for b, n in zip(local, extent, strict=True)), indexing="ij")
    wanted = [axis + low for axis, (low, _) in zip(grid, box, strict=True)]
    mask = np.array(np.broadcast_to(contains(points[0], wanted, points[1]), tuple(extent)))
    return mask, np.stack([axis[mask] for axis in grid], axis=1)


def _clipped(
    lo: Sequence[int], shape: Sequence[int], box: Sequence[tuple[int, int]]
) -> tuple[tuple[slice, ...], tuple[int, ...], tuple[int, ...]] | None:
    """Window in the tile, and start and extent in the partition's own coordinates, of the overlap."""
    window, local, extent = [], [], []
    for start, size, (low, high) in zip(lo, shape, box, strict=True):
        begin, end = max(start, low), min(start + size, high)
        if begin >= end:
            return None
        window.append(slice(begin - start, end - start))
        local.append(begin - low)
        extent.append(end - begin)
    return tuple(window), tuple(local), tuple(extent)


def _empty(view: DistributedView, shape: Sequence[int]) -> Tensor:
    return torch.zeros(tuple(shape), dtype=view.parts[0].buffer.data.dtype)


def _all_held(
    session: Session, held: np.ndarray, coordinates: Callable[[np.ndarray], tuple[int, ...]]
) -> None:
    if held.all() or (session.compat and held.any()):
        return
    where = coordinates(np.argwhere(~held)[0])
    raise Fault("KT220", "no partition of the distributed view holds this element", where)
