"""Along which axes a value is zero in the padding of its tile.

A descriptor reads zero beyond its extents, and what is computed from zeros may be zero again. Where it
is, a sum over the padded tile needs no mask.
"""

from __future__ import annotations

import math

from tracer.rewrite.access import Access
from tracer.rewrite.axes import Axis
from tracer.rewrite.functions import ZERO_IF_ALL, ZERO_IF_ANY
from tracer.rewrite.ir import Compute, Const, Kernel, Load, Operand
from tracer.rewrite.types import is_float


def zero_padded(kernel: Kernel, accesses: tuple[Access, ...]) -> dict[str, frozenset[Axis]]:
    """For every value, the axes beyond whose extent its tile holds zeros."""
    loads = {a.statement.name: a for a in accesses if isinstance(a.statement, Load)}
    everywhere = frozenset(axis for a in accesses for axis in a.axes)
    zero: dict[str, frozenset[Axis]] = {}

    def of(operand: Operand) -> frozenset[Axis]:
        if isinstance(operand, Const):
            return everywhere if operand.value == 0 else frozenset()
        return zero[operand]

    def harmless(operand: Operand, dtype: str) -> bool:
        """Whether zero times it is zero: an infinity times zero is not."""
        return not is_float(dtype) or (isinstance(operand, Const) and math.isfinite(operand.value))

    for statement in kernel.body:
        known: frozenset[Axis] = frozenset()
        if isinstance(statement, Load):
            if statement.mask is None or statement.other is None or statement.other.value == 0:
                known = frozenset(loads[statement.name].axes)
        elif isinstance(statement, Compute):
            parts = [of(arg) for arg in statement.args]
            if statement.op in ZERO_IF_ANY:
                known = frozenset.intersection(*parts)
                for part, other in zip(parts, reversed(statement.args), strict=True):
                    known |= part if harmless(other, statement.dtype) else frozenset()
            elif statement.op in ZERO_IF_ALL:
                known = frozenset.intersection(*parts)
            elif statement.op == "where":
                known = parts[1] & parts[2]
        if statement.name:
            zero[statement.name] = known
    return zero
