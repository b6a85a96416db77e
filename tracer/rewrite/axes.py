"""Refinement of the iteration ranges into loop axes in which every index expression is affine.

An index like `x % 64 + 128 * (x // 64)` reads mixed-radix digits of the range x. The break points of all
digits, sorted, must each divide the next; between two neighbours lies one axis. Neighbouring axes that
every access walks contiguously are merged again, so that an axis exists only where some access needs it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import sympy

from tracer.rewrite.digits import separate
from tracer.rewrite.ir import (
    FloorDiv,
    Index,
    Kernel,
    Load,
    Modulo,
    Range,
    Statement,
    Store,
    value_symbols,
)

MAX_EXTENT = 2**31 - 1
"""Coordinates of descriptors are 32-bit."""


@dataclass(frozen=True)
class Axis:
    """One loop axis of `extent` iterations; `reduced` axes end in a reduction."""

    name: str
    extent: int
    reduced: bool

    @property
    def symbol(self) -> sympy.Symbol:
        """The axis in index expressions."""
        return sympy.Symbol(self.name, integer=True, nonnegative=True)


@dataclass(frozen=True)
class _Digit:
    """`(range // low) % (high / low)`: the part of a range index between two break points."""

    low: int
    high: int


def refine(kernel: Kernel) -> tuple[tuple[Axis, ...], Kernel]:
    """Axes (parallel ones first, each group outermost first) and the kernel over them.

    What is no digit of a range stays opaque; see `lift_opaque`.
    """
    names: dict[Range, list[tuple[Axis, int]]] = {}
    rewrites: dict[sympy.Expr, sympy.Expr] = {}
    extents = {entry.symbol: entry.extent for entry in kernel.ranges}
    kernel = kernel.with_body(
        tuple(
            replace(s, index=separate(s.index, extents)) if isinstance(s, Load | Store | Index) else s
            for s in kernel.body
        )
    )
    for entry in kernel.ranges:
        digits = _digits(kernel, entry)
        pieces = _split(entry, digits)
        names[entry] = pieces
        rewrites[entry.symbol] = _combine(pieces, 1, entry.extent)
    body = [_rewrite(statement, names, rewrites) for statement in kernel.body]
    axes = [axis for pieces in names.values() for axis, _ in pieces]
    refined = kernel.with_body(tuple(body))
    axes, refined = _merge(axes, refined)
    return _rename(axes, refined)


def _rewrite(
    statement: Statement, names: dict[Range, list[tuple[Axis, int]]], rewrites: dict[sympy.Expr, sympy.Expr]
) -> Statement:
    if not isinstance(statement, Load | Store | Index):
        return statement

    def visit(expression: sympy.Expr) -> sympy.Expr:
        for entry, pieces in names.items():
            digit = _as_digit(expression, entry)
            if digit is not None and _fits(digit, pieces, entry):
                return _combine(pieces, digit.low, digit.high)
        if not expression.args:
            return rewrites.get(expression, expression)
        return expression.func(*(visit(arg) for arg in expression.args))

    return replace(statement, index=sympy.expand(visit(statement.index)))


def _as_digit(expression: sympy.Expr, entry: Range) -> _Digit | None:
    """`expression` as a digit of the range, if it is one."""
    if expression == entry.symbol:
        return _Digit(1, entry.extent)
    if isinstance(expression, FloorDiv | Modulo):
        inner, number = expression.args
        digit = _as_digit(inner, entry)
        if digit is None or not number.is_Integer:
            return None
        count = int(number)
        if isinstance(expression, FloorDiv):
            low = digit.low * count
            return _Digit(low, digit.high) if digit.high % low == 0 else None
        high = digit.low * count
        if high >= digit.high:
            return digit
        return _Digit(digit.low, high) if digit.high % high == 0 else None
    return None


def _digits(kernel: Kernel, entry: Range) -> list[_Digit]:
    found: dict[_Digit, None] = {}
    for statement in kernel.body:
        if isinstance(statement, Load | Store | Index):
            for node in sympy.preorder_traversal(statement.index):
                if isinstance(node, FloorDiv | Modulo) and (digit := _as_digit(node, entry)):
                    found[digit] = None
    return list(found)


def _split(entry: Range, digits: list[_Digit]) -> list[tuple[Axis, int]]:
    """Axes of the range, outermost first, each with its stride in range iterations.

    A digit whose break points do not divide the others is left out (it stays opaque).
    """
    points = {1, entry.extent}
    if entry.extent > MAX_EXTENT:
        points |= {max((d for d in sympy.divisors(entry.extent) if d <= MAX_EXTENT), default=1)}
    for digit in digits:
        candidate = sorted(points | {digit.low, digit.high})
        if all(b % a == 0 for a, b in itertools.pairwise(candidate)):
            points = set(candidate)
    ordered = sorted(points)
    pieces = [
        (Axis(f"{entry.symbol.name}_{low}", high // low, entry.reduced), low)
        for low, high in itertools.pairwise(ordered)
    ]
    return pieces[::-1]


def _fits(digit: _Digit, pieces: list[tuple[Axis, int]], entry: Range) -> bool:
    points = {low for _, low in pieces} | {entry.extent, 1}
    return {digit.low, digit.high} <= points


def _combine(pieces: list[tuple[Axis, int]], low: int, high: int) -> sympy.Expr:
    return sympy.Add(*(axis.symbol * (stride // low) for axis, stride in pieces if low <= stride < high))


def _merge(axes: list[Axis], kernel: Kernel) -> tuple[list[Axis], Kernel]:
    """Join two axes of one kind wherever every index expression walks them as one."""
    expressions = [s.index for s in kernel.body if isinstance(s, Load | Store | Index)]
    gone: dict[sympy.Symbol, sympy.Expr] = {}
    merged = list(axes)
    while pair := _mergeable(merged, expressions):
        outer, inner = pair
        gone[outer.symbol] = sympy.Integer(0)
        expressions = [e.xreplace({outer.symbol: sympy.Integer(0)}) for e in expressions]
        merged[merged.index(inner)] = replace(inner, extent=outer.extent * inner.extent)
        merged.remove(outer)
    body = [
        replace(s, index=s.index.xreplace(gone)) if isinstance(s, Load | Store | Index) else s
        for s in kernel.body
    ]
    return merged, kernel.with_body(tuple(body))


def _mergeable(axes: list[Axis], expressions: list[sympy.Expr]) -> tuple[Axis, Axis] | None:
    for outer in axes:
        for inner in axes:
            if outer is inner or outer.reduced is not inner.reduced or 1 in (outer.extent, inner.extent):
                continue
            if outer.extent * inner.extent > MAX_EXTENT:
                continue
            if all(_contiguous(e, outer.symbol, inner) for e in expressions):
                return outer, inner
    return None


def _contiguous(expression: sympy.Expr, outer: sympy.Symbol, inner: Axis) -> bool:
    if not expression.has(outer) and not expression.has(inner.symbol):
        return True
    if any(node.has(outer) or node.has(inner.symbol) for node in expression.atoms(FloorDiv, Modulo)):
        return False
    return bool(expression.coeff(outer) == expression.coeff(inner.symbol) * inner.extent)


def lift_opaque(kernel: Kernel) -> Kernel:
    """Terms that are no multiple of an axis or a value leave the accesses and become values of their own."""
    lifted: dict[sympy.Expr, str] = {}
    body: list[Statement] = []
    for statement in kernel.body:
        if isinstance(statement, Load | Store):
            opaque = {n for n in sympy.Add.make_args(statement.index) if _is_opaque(n)}
            for node in sorted((_strip(n)[1] for n in opaque), key=str):
                if node not in lifted:
                    lifted[node] = f"tmp_index{len(lifted)}"
                    body.append(Index(lifted[node], node, "int32", statement.line))
            total = sympy.Integer(0)
            for term in sympy.Add.make_args(statement.index):
                factor, rest = _strip(term)
                total += factor * sympy.Symbol(lifted[rest], integer=True) if term in opaque else term
            statement = replace(statement, index=total)
        body.append(statement)
    return kernel.with_body(tuple(body))


def _is_opaque(term: sympy.Expr) -> bool:
    factor, rest = term.as_coeff_Mul()
    falling = bool(factor < 0) and bool(value_symbols(rest))
    return falling or not (rest.is_Symbol or rest == 1)


def _strip(term: sympy.Expr) -> tuple[sympy.Integer, sympy.Expr]:
    """A positive factor and what it multiplies, but for axes, which may fall."""
    factor, rest = term.as_coeff_Mul()
    return (-factor, -rest) if factor < 0 and value_symbols(rest) else (factor, rest)


def _rename(axes: list[Axis], kernel: Kernel) -> tuple[tuple[Axis, ...], Kernel]:
    """Axes of extent 1 vanish; the others are numbered `x0 ..` and `r0 ..` in the store's memory order."""
    order = _memory_order(kernel, axes)
    kept = [axis for axis in axes if axis.extent > 1]
    parallel = sorted((a for a in kept if not a.reduced), key=order.__getitem__)
    reduced = sorted((a for a in kept if a.reduced), key=order.__getitem__)
    if not parallel:
        parallel = [Axis("one", 1, False)]
    final = [replace(a, name=f"x{i}") for i, a in enumerate(parallel)]
    final += [replace(a, name=f"r{i}") for i, a in enumerate(reduced)]
    swap: dict[sympy.Symbol, sympy.Expr] = {a.symbol: sympy.Integer(0) for a in axes if a.extent == 1}
    swap |= {old.symbol: new.symbol for old, new in zip(parallel + reduced, final, strict=True)}
    body = [
        replace(s, index=s.index.xreplace(swap)) if isinstance(s, Load | Store | Index) else s
        for s in kernel.body
    ]
    return tuple(final), kernel.with_body(tuple(body))


def _memory_order(kernel: Kernel, axes: list[Axis]) -> dict[Axis, tuple[int, int]]:
    """Outermost first: axes by falling stride in the store that has most of them, else in the loads."""
    accesses = [s for s in kernel.body if isinstance(s, Store)] + [
        s for s in kernel.body if isinstance(s, Load)
    ]
    accesses.sort(key=lambda s: not isinstance(s, Store))

    def stride(axis: Axis) -> int:
        for access in accesses:
            coefficient = access.index.coeff(axis.symbol)
            if coefficient != 0:
                return -abs(int(coefficient))
        return 0

    return {axis: (stride(axis), position) for position, axis in enumerate(axes)}
