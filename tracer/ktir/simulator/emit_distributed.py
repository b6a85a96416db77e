"""Distributed views: one logical view over several, which must hold disjoint coordinates (but in compat
mode, see `distributed`).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation
from xdsl.ir.affine import AffineSet

from tracer.ktir.affine import contains, set_points
from tracer.ktir.dialect.ktdp import ConstructDistributedMemoryViewOp
from tracer.ktir.simulator.compiler import Compiler, emits
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.memory import DistributedView, View

Bounds = tuple[tuple[int, int], ...]
Points = tuple[AffineSet, tuple[int, ...]]


@emits("ktdp.construct_distributed_memory_view")
def _distributed(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ConstructDistributedMemoryViewOp)
    shape = op.view.type.get_shape()

    def build(session: Any, *parts: View) -> DistributedView:
        boxes, sets = zip(*(_held(part) for part in parts), strict=True)
        sizes = tuple(
            max(b[axis][1] for b in boxes) if extent == DYNAMIC_INDEX else extent
            for axis, extent in enumerate(shape)
        )
        for held in boxes:
            if any(lo < 0 or hi > n for (lo, hi), n in zip(held, sizes, strict=True)):
                raise Fault("KT220", f"a partition holds {held}, outside the view of shape {list(sizes)}")
        if not session.compat and (twice := shared(boxes, sets)) is not None:
            raise Fault("KT220", "two partitions of the distributed view hold this element", twice)
        plain = tuple(View(p.buffer, p.offset, p.sizes, p.strides, p.inside) for p in parts)
        return DistributedView(plain, boxes, sizes, sets)

    arguments = f"session, {compiler.uses(op.operands)}"
    compiler.line(f"{compiler.define(op.view)} = {compiler.bind(build, 'f')}({arguments})")


def _held(part: View) -> tuple[Bounds, Points | None]:
    if (box := part.held) is not None:
        if box.shape != part.sizes:
            raise Fault(
                "KT220", f"a partition of shape {list(part.sizes)} holds a set of shape {list(box.shape)}"
            )
        return tuple(zip(box.lo, box.hi, strict=True)), None
    assert part.points is not None
    bounds = _bounds(*part.points)
    if any(hi - lo > size for (lo, hi), size in zip(bounds, part.sizes, strict=True)):
        raise Fault("KT220", f"a partition of shape {list(part.sizes)} holds a set that spans {bounds}")
    return bounds, part.points


@lru_cache(maxsize=256)
def _bounds(points: AffineSet, symbols: tuple[int, ...]) -> Bounds:
    try:
        rows = set_points(points, symbols)
    except ValueError as error:
        raise Fault("KT220", f"a partition cannot be enumerated: {error}") from None
    if not len(rows):
        return ((0, 0),) * points.num_dims
    return tuple(zip(rows.min(axis=0).tolist(), (rows.max(axis=0) + 1).tolist(), strict=True))


@lru_cache(maxsize=256)
def shared(boxes: tuple[Bounds, ...], sets: tuple[Points | None, ...]) -> tuple[int, ...] | None:
    """The first coordinates that two partitions hold, or None."""
    for i, (first, ours) in enumerate(zip(boxes, sets, strict=True)):
        for second, theirs in zip(boxes[i + 1 :], sets[i + 1 :], strict=True):
            common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(first, second, strict=True)]
            if any(lo >= hi for lo, hi in common):
                continue
            if ours is None and theirs is None:
                return tuple(lo for lo, _ in common)
            # Where one partition is a set, the common part is no larger than that, which was enumerated.
            grid = np.meshgrid(*(np.arange(lo, hi) for lo, hi in common), indexing="ij")
            both = np.ones(grid[0].shape, dtype=bool)
            for points in (ours, theirs):
                if points is not None:
                    both = both & contains(points[0], list(grid), points[1])
            if both.any():
                return tuple(int(v) + lo for v, (lo, _) in zip(np.argwhere(both)[0], common, strict=True))
    return None
