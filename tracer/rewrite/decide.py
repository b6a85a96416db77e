"""Comparisons of index expressions that the axes' extents already decide, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

from tracer.rewrite.axes import Axis
from tracer.rewrite.fold import cast_constant, fold
from tracer.rewrite.guards import index_of
from tracer.rewrite.intervals import Intervals
from tracer.rewrite.ir import Compute, Const, Kernel, Load, Operand, Statement
from tracer.rewrite.simplify import substitute


def decide(kernel: Kernel, axes: tuple[Axis, ...]) -> Kernel:
    """Replace every condition that is true (or false) on the whole iteration space by a literal.

    A load under a true mask loses it; under a false one it is its `other` value.
    """
    names: dict[str, Operand] = {}
    defined: dict[str, Statement] = {}
    body: list[Statement] = []
    for statement in kernel.body:
        if isinstance(statement, Load) and statement.mask:
            known = names.get(statement.mask)
            if isinstance(known, Const):
                if not known.value and statement.other is not None:
                    names[statement.name] = statement.other
                    continue
                statement = replace(statement, mask=None, other=None)
        current = substitute(statement, names)
        if isinstance(current, Compute) and (value := _value(current, defined, axes)) is not None:
            names[current.name] = value
            continue
        body.append(current)
        if current.name:
            defined[current.name] = current
    return kernel.with_body(tuple(body))


def _value(statement: Compute, defined: dict[str, Statement], axes: tuple[Axis, ...]) -> Operand | None:
    if statement.op in ("and", "or"):
        absorbing = statement.op == "or"
        for constant, other in (statement.args, statement.args[::-1]):
            if isinstance(constant, Const) and constant.dtype == "int1":
                return constant if bool(constant.value) is absorbing else other
        return None
    if statement.op == "cast" and isinstance(constant := statement.args[0], Const):
        return cast_constant(constant, statement.dtype)
    if (literal := fold(statement.op, statement.args)) is not None:
        return literal
    if statement.op in ("lt", "le", "gt", "ge"):
        return _comparison(statement, defined, axes)
    return None


def _comparison(statement: Compute, defined: dict[str, Statement], axes: tuple[Axis, ...]) -> Const | None:
    """A value against a literal, or two indices that differ by a constant: `3 * x + 1 < 3 * x + 3`."""
    left, right = statement.args
    bounds, limit = Intervals(axes, defined).operand(left), 0.0
    if isinstance(right, Const):
        limit = right.value
    else:
        indices = index_of(left, defined), index_of(right, defined)
        distance = indices[0].index - indices[1].index if indices[0] and indices[1] else None
        bounds = (int(distance), int(distance)) if distance is not None and distance.is_Integer else None
    if bounds is None:
        return None
    low, high = bounds
    holds, fails = {
        "lt": (high < limit, low >= limit),
        "le": (high <= limit, low > limit),
        "gt": (low > limit, high <= limit),
        "ge": (low >= limit, high < limit),
    }[statement.op]
    return Const(holds, "int1") if holds or fails else None
