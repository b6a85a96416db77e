"""Bounds of integer tensors lane by lane, so that masks can be proved true or false.

A tensor is a pair of arrays (least and greatest value of every lane over all programs), broadcastable
to its shape: unit extents stand for dimensions along which nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect.arith_ops import CmpiOp, SelectOp
from tracer.lower.analysis.dims import integer, integers
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import element_type, shape_of, splat_value
from tracer.lower.tt_ops import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp

Array = np.ndarray[Any, Any]


class Interval(NamedTuple):
    """Inclusive bounds of every lane."""

    low: Array
    high: Array


@dataclass
class LaneBounds:
    """Bounds of the integer tensors of one function."""

    scalars: Scalars
    _known: dict[SSAValue, Interval | None] = field(default_factory=dict)

    def of(self, value: SSAValue) -> Interval | None:
        """Bounds of a tensor's lanes; None where they depend on data."""
        if value not in self._known:
            self._known[value] = self._evaluate(value)
        return self._known[value]

    def _evaluate(self, value: SSAValue) -> Interval | None:
        op = value.owner
        found: Interval | None = None
        if not isinstance(op, Operation) or not isinstance(value.type, TensorType):
            return None
        if not isinstance(value.type.element_type, IntegerType):
            return None
        match op:
            case arith.ConstantOp():
                return _listed(op, value)
            case MakeRangeOp():
                lanes = np.arange(integer(op.attributes["start"]), integer(op.attributes["end"]))
                return Interval(lanes, lanes)
            case SplatOp():
                bounds = self.scalars.bounds(op.source, op)
                return None if bounds is None else _uniform(*bounds, value)
            case ExpandDimsOp():
                return self._moved(op.source, lambda a: np.expand_dims(a, integer(op.attributes["axis"])))
            case BroadcastOp():
                return self.of(op.source)
            case TransOp():
                order = integers(op.attributes["order"])
                return self._moved(op.source, lambda a: a.transpose(order))
            case ReshapeOp():
                shape, target = shape_of(op.source), shape_of(value)
                found = self._moved(op.source, lambda a: _reshaped(a, shape, target))
            case SelectOp():
                sides = self.of(op.lhs), self.of(op.rhs)
                found = _either(*sides)
            case _:
                found = self._arithmetic(op)
        if found is None and value.type.element_type == IntegerType(1):
            return _uniform(0, 1, value)
        return found

    def _moved(self, source: SSAValue, move: Any) -> Interval | None:
        found = self.of(source)
        return None if found is None else Interval(move(found.low), move(found.high))

    def _arithmetic(self, op: Operation) -> Interval | None:
        parts = [self.of(o) for o in op.operands]
        if op.name in ("arith.extui", "arith.extsi"):
            return _extended(parts[0], op.operands[0], signed=op.name == "arith.extsi")
        known = [p for p in parts if p is not None]
        if not known or len(known) != len(parts):
            return None
        a, b = known[0], known[-1]
        match op.name:
            case "arith.trunci":
                return a
            case "arith.addi":
                return Interval(a.low + b.low, a.high + b.high)
            case "arith.subi":
                return Interval(a.low - b.high, a.high - b.low)
            case "arith.muli":
                corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
                return Interval(np.minimum.reduce(corners), np.maximum.reduce(corners))
            case "arith.andi" if element_type(op.results[0].type) == IntegerType(1):
                return Interval(np.minimum(a.low, b.low), np.minimum(a.high, b.high))
            case "arith.ori" if element_type(op.results[0].type) == IntegerType(1):
                return Interval(np.maximum(a.low, b.low), np.maximum(a.high, b.high))
            case "arith.cmpi":
                assert isinstance(op, CmpiOp)
                return _comparison(op.word, a, b)
        return None


def _reshaped(lanes: Array, shape: tuple[int, ...], target: tuple[int, ...]) -> Array:
    if lanes.size == 1:
        return lanes.reshape((1,) * len(target))
    return np.broadcast_to(lanes, shape).reshape(target)


def _either(a: Interval | None, b: Interval | None) -> Interval | None:
    if a is None or b is None:
        return None
    return Interval(np.minimum(a.low, b.low), np.maximum(a.high, b.high))


def _listed(op: arith.ConstantOp, value: SSAValue) -> Interval | None:
    constant = splat_value(value)
    if constant is not None:
        return _uniform(int(constant), int(constant), value)
    if not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    lanes = np.array(list(op.value.iter_values()), dtype=np.int64).reshape(shape_of(value))
    return Interval(lanes, lanes)


def _uniform(low: int, high: int, value: SSAValue) -> Interval:
    shape = (1,) * len(shape_of(value))
    return Interval(np.full(shape, low), np.full(shape, high))


def _extended(found: Interval | None, source: SSAValue, signed: bool) -> Interval | None:
    """A widened number; where nothing better is known, any number of the narrow width."""
    kind = element_type(source.type)
    assert isinstance(kind, IntegerType)
    half = 1 << (kind.width.data - 1)
    if found is not None and half == 1:
        return Interval(-found.high, -found.low) if signed else found
    if found is not None and (signed or (found.low >= 0).all()):
        return found
    if half > 1 << 31:
        return None
    return _uniform(-half if signed else 0, half - 1 if signed else 2 * half - 1, source)


def _comparison(word: str, a: Interval, b: Interval) -> Interval | None:
    """Truth of every lane: (1, 1), (0, 0), or (0, 1) where it depends."""
    match word:
        case "slt":
            always, never = a.high < b.low, a.low >= b.high
        case "sle":
            always, never = a.high <= b.low, a.low > b.high
        case "sgt":
            always, never = a.low > b.high, a.high <= b.low
        case "sge":
            always, never = a.low >= b.high, a.high < b.low
        case "eq":
            always = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
            never = (a.high < b.low) | (a.low > b.high)
        case "ne":
            never = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
            always = (a.high < b.low) | (a.low > b.high)
        case _:
            return None
    return Interval(always.astype(np.int64), 1 - never.astype(np.int64))
