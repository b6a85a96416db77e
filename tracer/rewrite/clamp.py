"""Loads whose mask bounds a sum of axes: the sum is clamped, so that no read leaves the buffer.

A pooling window that overlaps its neighbours reads row `2*x1 + r0 - 2` under the mask `0 <= row < rows`. No
single axis can be clamped there. The sum becomes a value of its own, clamped into the mask's interval; where
the mask is false, it selects what was read there away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.guards import conjuncts, guards, limited
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Statement, value_symbols


def clamp_sums(kernel: Kernel, axes: tuple[Axis, ...], numel: dict[str, int]) -> Kernel:
    """The kernel with clamped sums in every masked load that would leave its buffer of `numel` elements."""
    defined: dict[str, Statement] = {s.name: s for s in kernel.body if s.name}
    made: dict[tuple[sympy.Expr, int, int], str] = {}
    body: list[Statement] = []
    for statement in kernel.body:
        if isinstance(statement, Load) and _leaves(statement, kernel, axes, numel[statement.param]):
            index = statement.index
            for total, (low, high) in _sums(statement.mask, defined).items():
                factor = _factor(index, total)
                if factor is None or low is None or high is None:
                    continue
                key = (total, low, high)
                if key not in made:
                    made[key] = f"tmp_clamped{len(made)}"
                    body += _clamped(made[key], total, low, high, statement.line)
                value = sympy.Symbol(made[key], integer=True)
                index = sympy.expand(index - factor * total + factor * value)
            statement = replace(statement, index=index)
        body.append(statement)
    return kernel.with_body(tuple(body))


def _leaves(load: Load, kernel: Kernel, axes: tuple[Axis, ...], numel: int) -> bool:
    """Whether the index leaves the buffer although the axes keep to what the mask says of each alone."""
    if load.mask is None or value_symbols(load.index):
        return False
    limits = guards(kernel, axes, load.mask)
    first = last = load.index.as_coeff_Add()[0]
    for axis in axes:
        low, high = (limits[axis].low, limits[axis].high) if axis in limits else (0, axis.extent)
        ends = [load.index.coeff(axis.symbol) * i for i in (low, high - 1)]
        first, last = first + min(ends), last + max(ends)
    return bool(first < 0 or last >= numel)


def _sums(mask: str | None, defined: Mapping[str, Statement]) -> dict[sympy.Expr, tuple[int | None, ...]]:
    """Least value and end of every sum of axes that the mask compares with literals."""
    found: dict[sympy.Expr, tuple[int | None, ...]] = {}
    for statement in conjuncts(mask, defined):
        compared = limited(statement, defined)
        if compared is None or compared[1] == "eq" or len(compared[0].free_symbols) < 2:
            continue
        total, op, limit = compared
        limit += op in ("gt", "le")
        low, high = found.get(total, (None, None))
        if op in ("ge", "gt"):
            low = limit if low is None else max(low, limit)
        else:
            high = limit if high is None else min(high, limit)
        found[total] = (low, high)
    return found


def _factor(index: sympy.Expr, total: sympy.Expr) -> sympy.Expr | None:
    """How often the index holds the sum; None where it does not hold it as a whole."""
    factors = {index.coeff(s) / total.coeff(s) for s in total.free_symbols if total.coeff(s) != 0}
    [factor] = factors if len(factors) == 1 else [None]
    return factor if factor is not None and factor.is_Integer and factor > 0 else None


def _clamped(name: str, total: sympy.Expr, low: int, high: int, line: str) -> list[Statement]:
    whole, raised = f"{name}_whole", f"{name}_raised"
    return [
        Index(whole, total, "int32", line),
        Compute(raised, "maximum", (whole, Const(low, "int32")), "int32", line),
        Compute(name, "minimum", (raised, Const(high - 1, "int32")), "int32", line),
    ]
