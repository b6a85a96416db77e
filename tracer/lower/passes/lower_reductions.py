"""Reductions become `linalg.reduce`, each of one input; argmax and argmin become two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp
from xdsl.ir import SSAValue

from tracer.ktir.dialect.arith_ops import CmpfOp, CmpiOp, SelectOp
from tracer.lower.analysis.combiners import Combiner, recognise
from tracer.lower.analysis.dims import integer
from tracer.lower.analysis.padding import identity
from tracer.lower.build import ARITH, broadcast, insert, only_element, reduce, reshaped
from tracer.lower.edit import Emitter, element_type, operations, shape_of, with_shape
from tracer.lower.lift import along, lift, liftable
from tracer.lower.manager import Job
from tracer.lower.tt_ops import ReduceOp


@dataclass(frozen=True)
class LowerReductions:
    """`tt.reduce` with a combiner that KTIR has; others stay and are reported."""

    name: ClassVar[str] = "lower-reductions"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            if not isinstance(op, ReduceOp):
                continue
            combiner = recognise(op.combiner.block)
            if combiner is not None and len(op.sources) == 1 and combiner.name in ARITH:
                _single(op, combiner)
            elif combiner is not None and len(op.sources) == 2:
                _argument(op, combiner)
            elif liftable(op.combiner.block):
                _fold(op)


def _fold(op: ReduceOp) -> None:
    """Any other combiner: halves are combined until one lane is left."""
    emitter = Emitter(op)
    axis = integer(op.axis)
    values = list(op.sources)
    extent = shape_of(values[0])[axis]
    while extent > 1:
        half = extent // 2
        first = [along(emitter, v, axis, 0, half) for v in values]
        second = [along(emitter, v, axis, half, 2 * half) for v in values]
        combined = lift(emitter, op.combiner.block, [*first, *second])
        if extent % 2:
            head = [along(emitter, c, axis, 0, 1) for c in combined]
            odd = [along(emitter, v, axis, extent - 1, extent) for v in values]
            ends = lift(emitter, op.combiner.block, [*head, *odd])
            zeros = [0] * len(shape_of(values[0]))
            combined = [insert(emitter, e, c, zeros) for e, c in zip(ends, combined, strict=True)]
        values, extent = combined, half
    kept = [e for i, e in enumerate(shape_of(values[0])) if i != axis]
    emitter.replace([reshaped(emitter, v, kept) if kept else only_element(emitter, v) for v in values])


def _single(op: ReduceOp, combiner: Combiner) -> None:
    start = identity(combiner.name, element_type(op.sources[0].type))
    if start is None:
        return
    emitter = Emitter(op)
    emitter.replace([_along(emitter, op.sources[0], integer(op.axis), ARITH[combiner.name], start)])


def _along(emitter: Emitter, value: SSAValue, axis: int, combine: Any, start: float) -> SSAValue:
    """The reduction, a scalar if nothing is left; one element needs none. No tensor of rank 0 arises."""
    shape = shape_of(value)
    if len(shape) == 1:
        if shape[0] > 1:
            value = reduce(emitter, reshaped(emitter, value, [1, shape[0]]), 1, combine, start)
        return only_element(emitter, value)
    if shape[axis] == 1:
        return reshaped(emitter, value, [e for i, e in enumerate(shape) if i != axis])
    return reduce(emitter, value, axis, combine, start)


def _argument(op: ReduceOp, combiner: Combiner) -> None:
    """The best value, then the least index that has it. NaN is best where the source says so."""
    values, indices = op.sources
    kind, index_kind = element_type(values.type), element_type(indices.type)
    if combiner.name not in ("argmax", "argmin") or not isinstance(index_kind, IntegerType):
        return
    emitter = Emitter(op)
    axis = integer(op.axis)
    start = identity(combiner.best, kind)
    assert start is not None
    best = _along(emitter, values, axis, ARITH[combiner.best], start)
    spread = _spread(emitter, best, values, axis)
    if isinstance(kind, AnyFloat):
        hit = emitter.emit(CmpfOp(values, spread, "oeq"), "hit")
        if combiner.nan_wins:
            missing = emitter.emit(CmpfOp(values, values, "uno"), "missing")
            hit = emitter.emit(arith.OrIOp(hit, missing, hit.type), "hit")
    else:
        hit = emitter.emit(CmpiOp(values, spread, "eq"), "hit")
    largest = (1 << (index_kind.width.data - 1)) - 1
    never = emitter.splat(largest, with_shape(index_kind, shape_of(indices)))
    candidates = emitter.emit(SelectOp(hit, indices, never), "candidates")
    emitter.replace([best, _along(emitter, candidates, axis, ARITH["arith.minsi"], largest)])


def _spread(emitter: Emitter, best: SSAValue, like: SSAValue, axis: int) -> SSAValue:
    """The reduced value back over the reduced axis."""
    shape = list(shape_of(like))
    if len(shape) == 1:
        return emitter.emit(tensor.SplatOp(best, [], with_shape(like.type, shape)))
    column = reshaped(emitter, best, [1 if i == axis else e for i, e in enumerate(shape)])
    return broadcast(emitter, column, shape)
