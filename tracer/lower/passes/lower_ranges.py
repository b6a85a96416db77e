"""Index vectors and masks that are fully known become dense constants of one dimension."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.lower.analysis.lanes import LaneBounds
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import Emitter, is_pure, shape_of
from tracer.lower.manager import Job


@dataclass(frozen=True)
class LowerRanges:
    """`tt.make_range`, and `tile * 64 + make_range` where the tile is known.

    The lists are flat and never of booleans, the only form that the public parser reads.
    """

    name: ClassVar[str] = "lower-ranges"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        bounds = LaneBounds(Scalars(job.grid))
        for op in list(module.walk()):
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
    emitter.replace([dense(emitter, [int(lanes[0])] if uniform else lanes.tolist(), value.type)])


def dense(emitter: Emitter, values: list[int], kind: TensorType) -> SSAValue:
    """A constant tensor of one dimension; one value stands for all."""
    return emitter.emit(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(kind, values), kind), "lanes")


