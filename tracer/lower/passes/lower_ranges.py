"""Index vectors and masks that are fully known become dense constants of one dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.lower.analysis.lanes import LaneBounds
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.build import broadcast, reshaped, slice_of
from tracer.lower.edit import Emitter, dense_constant, is_pure, operations, shape_of, with_shape
from tracer.lower.manager import Job

_LONG = 1024
_COLUMNS = 128


@dataclass(frozen=True)
class LowerRanges:
    """`tt.make_range`, and `tile * 64 + make_range` where the tile is known.

    The lists are flat and never of booleans, the only form that the public parser reads.
    """

    name: ClassVar[str] = "lower-ranges"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        bounds = LaneBounds(Scalars(job.grid))
        for op in operations(module):
            if len(op.results) == 1 and not isinstance(op, arith.ConstantOp) and is_pure(op):
                _fold(op, bounds)


def _fold(op: Operation, bounds: LaneBounds) -> None:
    value = op.results[0]
    if len(shape_of(value)) != 1 or not isinstance(value.type, TensorType):
        return
    interval = bounds.of(value)
    if interval is None or not (interval.low == interval.high).all():
        return
    lanes = np.broadcast_to(interval.low, shape_of(value))
    uniform = bool((lanes == lanes[0]).all())
    if value.type.element_type == IntegerType(1) and not uniform:
        return
    emitter = Emitter(op)
    if uniform:
        found = emitter.splat(int(lanes[0]), value.type)
    elif len(lanes) > _LONG and (np.diff(lanes) == lanes[1] - lanes[0]).all():
        found = _long_range(emitter, int(lanes[0]), int(lanes[1] - lanes[0]), len(lanes), value.type)
    else:
        found = _dense(emitter, lanes.tolist(), value.type)
    emitter.replace([found])


def _dense(emitter: Emitter, values: list[int], kind: TensorType) -> SSAValue:
    return emitter.emit(dense_constant(values, kind), "lanes")


def _long_range(emitter: Emitter, start: int, step: int, extent: int, kind: TensorType) -> SSAValue:
    """`start + i step` from two short lists, rows and columns, instead of one long list."""
    rows = -(-extent // _COLUMNS)
    outer = _dense(emitter, [start + row * _COLUMNS * step for row in range(rows)], with_shape(kind, [rows]))
    inner = _dense(emitter, [column * step for column in range(_COLUMNS)], with_shape(kind, [_COLUMNS]))
    shape = [rows, _COLUMNS]
    spread = (
        broadcast(emitter, reshaped(emitter, outer, [rows, 1]), shape),
        broadcast(emitter, reshaped(emitter, inner, [1, _COLUMNS]), shape),
    )
    total = emitter.emit(arith.AddiOp(*spread, result_type=with_shape(kind, shape)))
    return slice_of(emitter, reshaped(emitter, total, [rows * _COLUMNS]), [0], [extent])
