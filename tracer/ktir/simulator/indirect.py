"""Indirect access tiles: index tensors read once, addresses of all points computed by broadcasting.

Over a box of variables every subscript is an array that varies only along the variables it names, so that
bounds are checked and index tensors read on small arrays; only the final sum has one entry per element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tracer.ktir import dialect as ktdp
from tracer.ktir.affine import contains, evaluate, order_points, permutation, set_box, set_points
from tracer.ktir.simulator.access import read_addresses
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import View


def builder(op: ktdp.ConstructIndirectAccessTileOp) -> Callable[..., tuple[View, np.ndarray]]:
    """`build(session, view, captured, index_views, symbols) -> (view, element indices)` in the
    tile's order.
    """
    points, order = op.variables_space_set.data, op.variables_space_order.data
    subscripts = op.subscripts()
    shape = tuple(op.tile.type.get_shape())
    size = int(np.prod(shape, dtype=np.int64))
    axes = permutation(order)

    def build(
        session: Any, view: View, captured: Sequence[int], views: Sequence[View], symbols: Sequence[int]
    ) -> tuple[View, np.ndarray]:
        box = set_box(points, tuple(symbols))
        if box is not None and axes is not None:
            variables: list[np.ndarray] = list(
                np.ogrid[tuple(slice(b, h) for b, h in zip(box.lo, box.hi, strict=True))]
            )
            full: tuple[int, ...] = box.shape
        else:
            variables = list(order_points(set_points(points, tuple(symbols)), order).T)
            full = (len(variables[0]),) if variables else (1,)
        if int(np.prod(full, dtype=np.int64)) != size:
            raise Fault("KT113", f"the set holds {np.prod(full)} points, the tile {size} elements")
        dims: list[Any] = [*captured, *variables]
        remaining = iter(views)
        coordinates = []
        for axis, (indirect, map_) in enumerate(subscripts):
            values = [np.asarray(evaluate(e, dims), dtype=np.int64) for e in map_.results]
            coordinates.append(_lookup(session, op, next(remaining), values, axis) if indirect else values[0])
        addresses = np.broadcast_to(_addresses(view, coordinates, full), full)
        if box is not None and axes is not None:
            addresses = addresses.transpose(axes)
        return view, addresses.reshape(-1)

    return build


def _lookup(
    session: Any, op: Operation, view: View, coordinates: Sequence[np.ndarray], axis: int
) -> np.ndarray:
    """Elements of an index tensor at broadcast coordinates."""
    shape = np.broadcast_shapes(*(c.shape for c in coordinates))
    addresses = np.broadcast_to(_addresses(view, coordinates, shape), shape)
    session.indexed(op, view, addresses.reshape(-1))
    found = read_addresses(session, view, addresses.reshape(-1))
    if found.is_floating_point():
        raise Fault("KT216", f"the index of axis {axis} is a float")
    return found.numpy().astype(np.int64).reshape(shape)


def _addresses(view: View, coordinates: Sequence[np.ndarray], full: Sequence[int]) -> np.ndarray:
    """Element indices of broadcast coordinates. Raises Fault for one outside the view, its set or its
    buffer.
    """
    bounds = view.box or tuple((0, n) for n in view.sizes)
    total = np.asarray(view.offset, dtype=np.int64)
    for axis, (values, (low, high), stride) in enumerate(zip(coordinates, bounds, view.strides, strict=True)):
        if values.size and (int(values.min()) < low or int(values.max()) >= high):
            where = np.argwhere(np.broadcast_to((values < low) | (values >= high), full))[0]
            point = tuple(int(np.broadcast_to(c, full)[tuple(where)]) for c in coordinates)
            code = "KT201" if not 0 <= point[axis] < view.sizes[axis] else "KT202"
            raise Fault(code, f"axis {axis}: coordinate {point[axis]} is not in [{low}, {high})", point)
        total = total + values * stride
    if view.points is not None:
        points, symbols = view.points
        inside = np.broadcast_to(contains(points, list(coordinates), symbols), full)
        if not inside.all():
            where = np.argwhere(~inside)[0]
            point = tuple(int(np.broadcast_to(c, full)[tuple(where)]) for c in coordinates)
            raise Fault("KT202", "outside the coordinate set of the view", point)
    if not view.inside and total.size and (int(total.min()) < 0 or int(total.max()) >= view.buffer.numel):
        raise Fault("KT203", f"outside {view.buffer.name}, which has {view.buffer.numel} elements")
    return total
