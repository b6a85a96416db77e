"""Comparisons of index expressions that the axes' extents already decide, and what follows from them."""

from __future__ import annotations

from dataclasses import replace

from tracer.rewrite.axes import Axis
from tracer.rewrite.fold import cast_constant
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
    if statement.op == "where" and isinstance(statement.args[0], Const):
        return statement.args[1] if statement.args[0].value else statement.args[2]
    if statement.op == "cast" and isinstance(constant := statement.args[0], Const):
        return cast_constant(constant, statement.dtype)
    if statement.op in ("lt", "le", "gt", "ge") and isinstance(limit := statement.args[1], Const):
        bounds = Intervals(axes, defined).operand(statement.args[0])
        if bounds is not None:
            low, high = bounds
            holds = {
                "lt": (high < limit.value, low >= limit.value),
                "le": (high <= limit.value, low > limit.value),
                "gt": (low > limit.value, high <= limit.value),
                "ge": (low >= limit.value, high < limit.value),
            }[statement.op]
            if any(holds):
                return Const(holds[0], "int1")
    return None
