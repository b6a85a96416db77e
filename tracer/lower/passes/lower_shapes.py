"""Operations that only move elements: splat, reshape, expand_dims, broadcast, trans, join, unsplat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation

from tracer.lower.analysis.dims import integers
from tracer.lower.build import broadcast, insert, only_element, reshaped, splat, transposed
from tracer.lower.edit import Emitter, operations, shape_of
from tracer.lower.manager import Job
from tracer.lower.tt_ops import (
    BroadcastOp,
    ExpandDimsOp,
    JoinOp,
    ReshapeOp,
    SplatOp,
    TransOp,
    UnsplatOp,
)


@dataclass(frozen=True)
class LowerShapes:
    """To `tensor` reshapes and slices, `linalg.broadcast` and `linalg.transpose`."""

    name: ClassVar[str] = "lower-shapes"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            rule = _RULES.get(type(op))
            if rule is not None:
                rule(op, Emitter(op))


def _reshape(op: Any, emitter: Emitter) -> None:
    emitter.replace([reshaped(emitter, op.source, shape_of(op.result))])


def _broadcast(op: BroadcastOp, emitter: Emitter) -> None:
    emitter.replace([broadcast(emitter, op.source, shape_of(op.result))])


def _transpose(op: TransOp, emitter: Emitter) -> None:
    emitter.replace([transposed(emitter, op.source, integers(op.attributes["order"]))])


def _splat(op: SplatOp, emitter: Emitter) -> None:
    assert isinstance(op.result.type, TensorType)
    emitter.replace([splat(emitter, op.source, op.result.type)])


def _unsplat(op: UnsplatOp, emitter: Emitter) -> None:
    emitter.replace([only_element(emitter, op.source)])


def _join(op: JoinOp, emitter: Emitter) -> None:
    assert isinstance(op.result.type, TensorType)
    joined = emitter.splat(0, op.result.type)
    shape = shape_of(op.lhs)
    for position, part in enumerate((op.lhs, op.rhs)):
        column = reshaped(emitter, part, [*shape, 1])
        joined = insert(emitter, column, joined, [0] * len(shape) + [position])
    emitter.replace([joined])


_RULES: dict[type[Operation], Callable[[Any, Emitter], None]] = {
    ReshapeOp: _reshape,
    ExpandDimsOp: _reshape,
    BroadcastOp: _broadcast,
    TransOp: _transpose,
    SplatOp: _splat,
    UnsplatOp: _unsplat,
    JoinOp: _join,
}
