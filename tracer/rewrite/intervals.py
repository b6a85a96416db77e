"""Least and greatest integer that a value or an index expression can take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Compute, Const, FloorDiv, Index, Kernel, Modulo, Operand, Statement
from tracer.rewrite.types import is_float

Bounds: TypeAlias = "tuple[int, int]"
"""Least and greatest value, both included."""


@dataclass
class Intervals:
    """Interval arithmetic over a kernel's integers; every method gives None where nothing is known.

    `asserted[name] = n` says `0 <= name < n`.
    """

    axes: tuple[Axis, ...]
    defined: Mapping[str, Statement]
    asserted: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: Kernel, axes: tuple[Axis, ...]) -> Intervals:
        """Intervals of all values of `kernel`."""
        return cls(axes, {s.name: s for s in kernel.body if s.name}, dict(kernel.bounds))

    def operand(self, operand: Operand) -> Bounds | None:
        """Bounds of a value or literal."""
        if isinstance(operand, Const):
            return None if is_float(operand.dtype) else (int(operand.value), int(operand.value))
        if operand in self.asserted:
            return 0, self.asserted[operand] - 1
        statement = self.defined.get(operand)
        if isinstance(statement, Index):
            return self.expression(statement.index)
        dtype = getattr(statement, "dtype", "")
        found = self._compute(statement) if isinstance(statement, Compute) and not is_float(dtype) else None
        if found is None and dtype.startswith(("uint", "int1")) and dtype != "int16":
            return 0, 2 ** int(dtype.lstrip("uint")) - 1
        return found

    def expression(self, expression: sympy.Expr) -> Bounds | None:
        """Bounds of an index expression over the axes and values."""
        if expression.is_Integer:
            return int(expression), int(expression)
        if expression.is_Symbol:
            extent = next((axis.extent for axis in self.axes if axis.symbol == expression), None)
            return (0, extent - 1) if extent is not None else self.operand(expression.name)
        parts = [self.expression(part) for part in expression.args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if expression.is_Add:
            return sum(low for low, _ in known), sum(high for _, high in known)
        if expression.is_Mul:
            result = known[0]
            for factor in known[1:]:
                result = _product(result, factor)
            return result
        if isinstance(expression, FloorDiv | Modulo):
            return _divided("floordiv" if isinstance(expression, FloorDiv) else "mod", known[0], known[1])
        return None

    def _compute(self, statement: Compute) -> Bounds | None:
        args = statement.args[1:] if statement.op == "where" else statement.args
        if statement.op == "cast" and is_float(getattr(self.defined.get(str(args[0])), "dtype", "")):
            return None
        parts = [self.operand(arg) for arg in args]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        lows, highs = [low for low, _ in known], [high for _, high in known]
        match statement.op:
            case "cast":
                return known[0]
            case "where":
                return min(lows), max(highs)
            case "add":
                return sum(lows), sum(highs)
            case "sub":
                return lows[0] - highs[1], highs[0] - lows[1]
            case "mul":
                return _product(*known)
            case "neg":
                return -highs[0], -lows[0]
            case "abs":
                return max(lows[0], -highs[0], 0), max(highs[0], -lows[0])
            case "minimum":
                return min(lows), min(highs)
            case "maximum":
                return max(lows), max(highs)
            case "floordiv" | "mod":
                return _divided(statement.op, *known)
        return None


def _product(a: Bounds, b: Bounds) -> Bounds:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _divided(op: str, a: Bounds, b: Bounds) -> Bounds | None:
    """Division by one positive number of what is not negative (there Triton and Python agree)."""
    if a[0] < 0 or b[0] != b[1] or b[0] <= 0:
        return None
    if op == "floordiv":
        return a[0] // b[0], a[1] // b[0]
    return (0, b[0] - 1) if a[1] >= b[0] else a
