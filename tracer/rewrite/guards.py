"""Masks of loads that restrict axes: where the mask holds, each axis lies in an interval.

Padding, pooling and shifted reads load under a mask such as `(x1 - 1 >= 0) & (x1 - 1 < 20)`, and the
address leaves the buffer where it is false. The interval of every axis is read off the mask; the access
then clamps the axis into it and the mask selects, so that no element outside the buffer is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.intervals import Bounds, Intervals
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Operand, Statement

# What `index op limit` says once the two sides are exchanged.
_MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}


@dataclass(frozen=True)
class Interval:
    """Iterations `low <= axis < high` of one axis."""

    low: int
    high: int


def guards(kernel: Kernel, axes: tuple[Axis, ...], mask: str | None) -> dict[Axis, Interval]:
    """Intervals outside of which `mask` is surely false; axes it does not restrict are absent."""
    defined = {s.name: s for s in kernel.body if s.name}
    found: dict[Axis, Interval] = {}
    for statement in conjuncts(mask, defined):
        if compared := comparison(statement, defined, axes):
            axis, interval = compared
            before = found.get(axis, Interval(0, axis.extent))
            found[axis] = Interval(max(before.low, interval.low), min(before.high, interval.high))
    return {axis: i for axis, i in found.items() if (i.low, i.high) != (0, axis.extent)}


def conjuncts(mask: str | None, defined: Mapping[str, Statement]) -> Iterator[Compute]:
    """What must hold for `mask` to hold: the computed operands of its conjunction."""
    pending: list[Operand] = [mask] if mask else []
    while pending:
        operand = pending.pop()
        statement = defined.get(operand) if isinstance(operand, str) else None
        if isinstance(statement, Compute) and statement.op == "and":
            pending += statement.args
        elif isinstance(statement, Compute):
            yield statement


def limited(statement: Compute, defined: Mapping[str, Statement]) -> tuple[sympy.Expr, str, int] | None:
    """`index op limit` of a comparison with a literal, whichever side it is on; None for anything else."""
    if statement.op not in _MIRROR:
        return None
    left, right = statement.args
    op = statement.op
    if isinstance(left, Const):
        left, right, op = right, left, _MIRROR[op]
    index = index_of(left, defined)
    if index is None or not isinstance(right, Const) or not math.isfinite(right.value):
        return None
    return index.index, op, int(right.value)


def comparison(
    statement: Compute, defined: Mapping[str, Statement], axes: tuple[Axis, ...]
) -> tuple[Axis, Interval] | None:
    """The axis that a comparison with a literal restricts, and to what; None where it is no such one."""
    found = limited(statement, defined)
    if found is None:
        return None
    index, op, end = found
    driving = [axis for axis in axes if index.has(axis.symbol)]
    if len(driving) != 1:
        return None
    axis = driving[0]
    slope = index.coeff(axis.symbol)
    rest = index - slope * axis.symbol
    if not (slope.is_Integer and rest.is_Integer and slope > 0):
        return None
    limit, step = end - int(rest), int(slope)
    below = {"lt": -(-limit // step), "le": limit // step + 1}  # axis < below
    above = {"ge": -(-limit // step), "gt": limit // step + 1}  # axis >= above
    if op == "eq":
        return axis, Interval(above["ge"], below["le"])
    return axis, Interval(above.get(op, 0), below.get(op, axis.extent))


def value_bounds(kernel: Kernel, axes: tuple[Axis, ...], mask: str | None) -> dict[str, Bounds]:
    """Bounds outside of which `mask` is surely false, of the integer values that it compares.

    `start + 1 < end` says that `start` is below the greatest `end` but one. A value is absent where the mask
    leaves it open on one side.
    """
    intervals = Intervals.of(kernel, axes)
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    for statement in conjuncts(mask, intervals.defined):
        if statement.op not in _MIRROR:
            continue
        left, right = statement.args
        for operand, op, other in ((left, statement.op, right), (right, _MIRROR[statement.op], left)):
            if (limit := intervals.operand(other)) is None:
                continue
            for name, offset in _offsets(operand, kernel, intervals.defined):
                if op in ("ge", "gt", "eq"):
                    least = limit[0] - offset + (op == "gt")
                    lows[name] = max(lows.get(name, least), least)
                if op in ("le", "lt", "eq"):
                    most = limit[1] - offset - (op == "lt")
                    highs[name] = min(highs.get(name, most), most)
    found: dict[str, Bounds] = {}
    for name in sorted({*lows, *highs}):
        low, high = intervals.operand(name) or (None, None)
        low = max((end for end in (low, lows.get(name)) if end is not None), default=None)
        high = min((end for end in (high, highs.get(name)) if end is not None), default=None)
        if low is not None and high is not None:
            found[name] = low, max(low, high)
    return found


def _offsets(operand: Operand, kernel: Kernel, defined: Mapping[str, Statement]) -> Iterator[tuple[str, int]]:
    """Every value that an operand is but for a constant, with that constant."""
    name: Operand | None = operand
    while isinstance(name, str):
        yield name, 0
        statement = defined.get(name)
        name = statement.args[0] if isinstance(statement, Compute) and statement.op == "cast" else None
    if (compared := index_of(operand, defined)) is not None:
        for value in kernel.body:
            if isinstance(value, Index) and (compared.index - value.index).is_Integer:
                yield value.name, int(compared.index - value.index)


def index_of(operand: Operand, defined: Mapping[str, Statement]) -> Index | None:
    """The index expression behind a value, through casts."""
    statement = defined.get(operand) if isinstance(operand, str) else None
    while isinstance(statement, Compute) and statement.op == "cast" and isinstance(statement.args[0], str):
        statement = defined[statement.args[0]]
    return statement if isinstance(statement, Index) else None
