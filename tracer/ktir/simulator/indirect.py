"""Indirect access tiles: index tensors read once, addresses of all points computed by broadcasting.

Over a box of variables every subscript is an array that varies only along the variables it names, so that
bounds are checked and index tensors read on small arrays; only the final sum has one entry per element.
Places in a view are element indices, 1-D; places in a distributed view are coordinates, (n, dims).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.accessed import value_name
from tracer.ktir.affine import contains, evaluate, order_points, permutation, set_box, set_points
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator import distributed
from tracer.ktir.simulator.access import addresses_of, read_addresses, write_addresses
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import DistributedView, View

AnyView = View | DistributedView
Origins = Mapping[int, tuple[str, Sequence[np.ndarray]]]
"""By axis of a view whose coordinates an index tensor holds: its name, and where in it they lie."""


def builder(op: ktdp.ConstructIndirectAccessTileOp) -> Callable[..., tuple[AnyView, np.ndarray]]:
    """`build(session, view, captured, index_views, symbols) -> (view, places)` in the tile's order."""
    points, order = op.variables_space_set.data, op.variables_space_order.data
    subscripts = op.subscripts()
    shape = tuple(op.tile.type.get_shape())
    size = int(np.prod(shape, dtype=np.int64))
    axes = permutation(order)
    names = [value_name(v) for v in op.index_views]

    def build(
        session: Any, view: AnyView, captured: Sequence[int], views: Sequence[AnyView], symbols: Sequence[int]
    ) -> tuple[AnyView, np.ndarray]:
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
        remaining = iter(zip(views, names, strict=True))
        coordinates = []
        origins: dict[int, tuple[str, Sequence[np.ndarray]]] = {}
        for axis, (indirect, map_) in enumerate(subscripts):
            values = [np.asarray(evaluate(e, dims), dtype=np.int64) for e in map_.results]
            if indirect:
                tensor, name = next(remaining)
                coordinates.append(_lookup(session, op, tensor, values, axis, name))
                origins[axis] = name, values
            else:
                coordinates.append(values[0])
        places = _places(view, coordinates, full, origins)
        if box is not None and axes is not None:
            places = places.transpose([*axes, *range(len(axes), places.ndim)])
        return view, places.reshape(size, *places.shape[len(full) :])

    return build


def gather(session: Any, view: AnyView, places: np.ndarray) -> Tensor:
    """The elements at these places, as a 1-D tensor."""
    if isinstance(view, DistributedView):
        return distributed.read_points(session, view, places)
    return read_addresses(session, view, places)


def scatter(session: Any, view: AnyView, places: np.ndarray, value: Tensor) -> None:
    """Store a 1-D tensor to these places."""
    if isinstance(view, DistributedView):
        distributed.write_points(session, view, places, value)
    else:
        write_addresses(session, view, places, value)


def held(view: AnyView, places: np.ndarray) -> Iterator[tuple[View, np.ndarray]]:
    """Element indices of these places in each of the views that hold some."""
    if not isinstance(view, DistributedView):
        yield view, places
        return
    for part, _, local in distributed.owners(view, places):
        yield part, addresses_of(part, local)


def _lookup(
    session: Any, op: Operation, view: AnyView, coordinates: Sequence[np.ndarray], axis: int, name: str
) -> np.ndarray:
    """Elements of an index tensor at broadcast coordinates."""
    shape = np.broadcast_shapes(*(c.shape for c in coordinates))
    try:
        places = _places(view, coordinates, shape, {})
    except Fault as fault:
        raise Fault(fault.code, f"in index tensor {name}: {fault.message}", fault.coordinates) from None
    places = places.reshape(-1, *places.shape[len(shape) :])
    for part, addresses in held(view, places):
        session.indexed(op, part, addresses)
    found = gather(session, view, places)
    if found.is_floating_point():
        raise Fault("KT216", f"the index of axis {axis} is a float")
    return found.numpy().astype(np.int64).reshape(shape)


def _places(
    view: AnyView, coordinates: Sequence[np.ndarray], full: Sequence[int], origins: Origins
) -> np.ndarray:
    """Places of broadcast coordinates, as an array of that shape. Raises Fault for one outside the view."""
    if isinstance(view, DistributedView):
        return np.stack([np.broadcast_to(c, full) for c in coordinates], axis=-1)
    return np.broadcast_to(_addresses(view, coordinates, full, origins), full)


def _addresses(
    view: View, coordinates: Sequence[np.ndarray], full: Sequence[int], origins: Origins
) -> np.ndarray:
    """Element indices of broadcast coordinates. Raises Fault for one outside the view, its set or its
    buffer.
    """
    bounds = view.box or tuple((0, n) for n in view.sizes)
    total = np.asarray(view.offset, dtype=np.int64)
    for axis, (values, (low, high), stride) in enumerate(zip(coordinates, bounds, view.strides, strict=True)):
        if values.size and (int(values.min()) < low or int(values.max()) >= high):
            where = _first_of((values < low) | (values >= high), full)
            point = _at(where, coordinates, full)
            code = "KT201" if not 0 <= point[axis] < view.sizes[axis] else "KT202"
            text = f"axis {axis}: coordinate {point[axis]} is not in [{low}, {high})"
            held = {axis: origins[axis]} if axis in origins else {}
            raise Fault(code, text + _through(held, where, point, full), point)
        total = total + values * stride
    if view.points is not None:
        points, symbols = view.points
        inside = np.broadcast_to(contains(points, list(coordinates), symbols), full)
        if not inside.all():
            where = _first_of(~inside, full)
            point = _at(where, coordinates, full)
            text = "outside the coordinate set of the view"
            raise Fault("KT202", text + _through(origins, where, point, full), point)
    if not view.inside and total.size and (int(total.min()) < 0 or int(total.max()) >= view.buffer.numel):
        where = _first_of((total < 0) | (total >= view.buffer.numel), full)
        point = _at(where, coordinates, full)
        text = f"outside {view.buffer.name}, {view.buffer.bounds}"
        raise Fault("KT203", text + _through(origins, where, point, full), point)
    return total


def _first_of(mask: np.ndarray, full: Sequence[int]) -> tuple[int, ...]:
    """Where in a box a mask, broadcast to it, holds first."""
    return tuple(np.argwhere(np.broadcast_to(mask, full))[0])


def _at(where: tuple[int, ...], coordinates: Sequence[np.ndarray], full: Sequence[int]) -> tuple[int, ...]:
    """The coordinates, broadcast to a box, that lie there."""
    return tuple(int(np.broadcast_to(c, full)[where]) for c in coordinates)


def _through(origins: Origins, where: tuple[int, ...], point: Sequence[int], full: Sequence[int]) -> str:
    """`, where %i[0, 3] = 9`: the index elements that lead to a point."""
    held = [
        f"{name}[{', '.join(map(str, _at(where, values, full)))}] = {point[axis]}"
        for axis, (name, values) in origins.items()
    ]
    return f", where {' and '.join(held)}" if held else ""
