"""Regions of the iteration space in which masked loads need no mask along the innermost axis.

A padded row read element by element, each clamped into the buffer, would move single elements. Cutting the
axis where some mask begins or ends leaves pieces that are read whole or not at all. Every region becomes a
tile loop of its own.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.decide import decide
from tracer.rewrite.guards import guards
from tracer.rewrite.ir import FloorDiv, Index, Kernel, Load, Modulo, Store

MAX_PIECES = 8
LETTERS = ("xr", "ys", "zt", "wu", "vq", "hp", "go", "fn")
"""Names of the parallel and reduced axes of each region."""


def split(kernel: Kernel, axes: tuple[Axis, ...]) -> list[tuple[tuple[Axis, ...], Kernel]]:
    """The kernel once per region, over the region's own axes; one region where nothing is gained."""
    axis, cuts = _cuts(kernel, axes)
    if axis is None:
        return [(axes, decide(kernel, axes))]
    edges = [0, *cuts, axis.extent]
    regions = []
    for (low, high), letters in zip(itertools.pairwise(edges), LETTERS, strict=False):
        regions.append(_region(kernel, axes, axis, low, high, letters))
    return regions


def _region(
    kernel: Kernel, axes: tuple[Axis, ...], cut: Axis, low: int, high: int, letters: str
) -> tuple[tuple[Axis, ...], Kernel]:
    swap: dict[sympy.Symbol, sympy.Expr] = {}
    local: list[Axis] = []
    for axis in axes:
        name = letters[axis.reduced] + axis.name[1:]
        new = Axis(name, high - low if axis == cut else axis.extent, axis.reduced)
        local.append(new)
        swap[axis.symbol] = new.symbol + low if axis == cut else new.symbol
    body = [
        replace(s, index=_resolve(sympy.expand(s.index.xreplace(swap)), tuple(local)))
        if isinstance(s, Load | Store | Index)
        else s
        for s in kernel.body
    ]
    return tuple(local), decide(kernel.with_body(tuple(body)), tuple(local))


def _resolve(expression: sympy.Expr, axes: tuple[Axis, ...]) -> sympy.Expr:
    """`(x + c) % n` without the modulo where the whole region lies in one period."""
    for node in expression.atoms(Modulo):
        inner, period = node.args
        if inner.atoms(FloorDiv, Modulo):
            continue
        constant = int(inner.as_coeff_Add()[0])
        rest = inner - constant
        reach = next((a.extent - 1 for a in axes if a.symbol == rest), None)
        if reach is not None and constant // int(period) == (constant + reach) // int(period):
            expression = expression.xreplace({node: inner - (constant // int(period)) * period})
    return expression


def _cuts(kernel: Kernel, axes: tuple[Axis, ...]) -> tuple[Axis | None, list[int]]:
    """The innermost parallel axis of the store that masks or wrap-arounds restrict, and where they change."""
    innermost = {
        axis
        for s in kernel.body
        if isinstance(s, Store)
        for axis in axes
        if not axis.reduced and abs(s.index.coeff(axis.symbol)) == 1
    }
    for axis in axes:
        if axis not in innermost:
            continue
        cuts: set[int] = set()
        for statement in kernel.body:
            if isinstance(statement, Load) and (interval := guards(kernel, axes, statement.mask).get(axis)):
                cuts |= {interval.low, interval.high}
            if isinstance(statement, Load | Index):
                cuts |= _wraps(statement.index, axis)
        inside = sorted(c for c in cuts if 0 < c < axis.extent)
        if inside and len(inside) < MAX_PIECES:
            return axis, inside
    return None, []


def _wraps(expression: sympy.Expr, axis: Axis) -> set[int]:
    """Where `(axis + c) % n` starts a new period."""
    cuts: set[int] = set()
    for node in expression.atoms(Modulo):
        inner, period = node.args
        constant = inner.as_coeff_Add()[0]
        if inner - constant == axis.symbol and period.is_Integer:
            first = -int(constant) % int(period)
            if axis.extent <= 2 * int(period):
                cuts |= set(range(first, axis.extent, int(period)))
    return cuts
