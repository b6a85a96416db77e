"""Indirect access tiles: index tensors read once, coordinates of all points computed together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ktir import dialect as ktdp
from tracer.ktir.affine import evaluate, order_points, set_points
from tracer.ktir.simulator.access import read_points
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import View


def builder(op: ktdp.ConstructIndirectAccessTileOp) -> Callable[..., tuple[View, np.ndarray]]:
    """`build(session, view, captured, index_views, symbols) -> (view, rows of coordinates)` in the tile's order."""
    points, order = op.variables_space_set.data, op.variables_space_order.data
    subscripts = op.subscripts()
    size = 1
    for extent in op.tile.type.get_shape():
        size *= extent

    def build(
        session: Any, view: View, captured: Sequence[int], views: Sequence[View], symbols: Sequence[int]
    ) -> tuple[View, np.ndarray]:
        variables = order_points(set_points(points, tuple(symbols)), order)
        if len(variables) != size:
            raise Fault("KT113", f"the set holds {len(variables)} points, the tile {size} elements")
        dims = [*captured, *variables.T]
        remaining = iter(views)
        columns = []
        for axis, (indirect, map_) in enumerate(subscripts):
            values = [np.broadcast_to(np.asarray(evaluate(e, dims)), (len(variables),)) for e in map_.results]
            if indirect:
                columns.append(_lookup(session, next(remaining), np.stack(values, axis=1), axis))
            else:
                columns.append(values[0])
        return view, np.stack(columns, axis=1).astype(np.int64)

    return build


def _lookup(session: Any, view: View, rows: np.ndarray, axis: int) -> np.ndarray:
    """Index values at `rows`; each distinct element of the index tensor is read once."""
    unique, inverse = np.unique(rows, axis=0, return_inverse=True)
    found = read_points(session, view, unique)
    if found.is_floating_point():
        raise Fault("KT216", f"the index of axis {axis} is a float")
    return found.numpy().astype(np.int64)[inverse.reshape(-1)]
