"""Affine maps and sets: boxes, enumeration of points, and plain printing.

Everything works on xDSL's `AffineExpr`, `AffineMap` and `AffineSet`. Points are rows of int64 NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

MAX_POINTS = 1 << 22
"""Largest number of candidate points that enumerating a set may visit."""
MAX_CONSTANT = 1 << 40
"""Largest constant of a set whose points are enumerated: more than any memory has elements."""


@dataclass(frozen=True)
class Linear:
    """`constant + sum(dims[i] * d_i) + sum(symbols[j] * s_j)`; zero coefficients are absent."""

    constant: int
    dims: tuple[tuple[int, int], ...]
    symbols: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Box:
    """The integer points with `lo[i] <= d_i < hi[i]`."""

    lo: tuple[int, ...]
    hi: tuple[int, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Extent of every axis, zero where the box is empty."""
        return tuple(max(0, h - b) for b, h in zip(self.lo, self.hi, strict=True))


def box_set(shape: Sequence[int]) -> AffineSet:
    """The set `0 <= d_i < shape[i]`, in the form `(d0 >= 0, -d0 + shape[0] - 1 >= 0, ...)`."""
    constraints = []
    zero = AffineExpr.constant(0)
    for axis, extent in enumerate(shape):
        dim = AffineExpr.dimension(axis)
        constraints.append(AffineConstraintExpr(AffineConstraintKind.ge, dim, zero))
        constraints.append(AffineConstraintExpr(AffineConstraintKind.ge, -dim + (extent - 1), zero))
    return AffineSet(len(shape), 0, tuple(constraints))


def linear(expr: AffineExpr) -> Linear | None:
    """The linear form of `expr`, or None where it has `mod`, `floordiv`, `ceildiv` or a product of
    variables.
    """
    match expr:
        case AffineConstantExpr():
            return Linear(expr.value, (), ())
        case AffineDimExpr():
            return Linear(0, ((expr.position, 1),), ())
        case AffineSymExpr():
            return Linear(0, (), ((expr.position, 1),))
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            a, b = linear(lhs), linear(rhs)
            return None if a is None or b is None else _add(a, b)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            a, b = linear(lhs), linear(rhs)
            if a is None or b is None:
                return None
            if not b.dims and not b.symbols:
                return _scale(a, b.constant)
            return _scale(b, a.constant) if not a.dims and not a.symbols else None
    return None


def _add(a: Linear, b: Linear) -> Linear:
    return Linear(a.constant + b.constant, _merge(a.dims, b.dims), _merge(a.symbols, b.symbols))


def _merge(a: tuple[tuple[int, int], ...], b: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    total = dict(a)
    for key, value in b:
        total[key] = total.get(key, 0) + value
    return tuple(sorted((k, v) for k, v in total.items() if v))


def _scale(a: Linear, factor: int) -> Linear:
    if factor == 0:
        return Linear(0, (), ())
    return Linear(
        a.constant * factor,
        tuple((k, v * factor) for k, v in a.dims),
        tuple((k, v * factor) for k, v in a.symbols),
    )


@lru_cache(maxsize=4096)
def set_box(points: AffineSet, symbols: tuple[int, ...] = ()) -> Box | None:
    """The box that equals `points` for these symbol values, or None where it is no bounded
    axis-aligned box.
    """
    lo: list[int | None] = [None] * points.num_dims
    hi: list[int | None] = [None] * points.num_dims
    for constraint in points.constraints:
        form = linear(constraint.lhs)
        if form is None or constraint.rhs != AffineExpr.constant(0) or len(form.dims) > 1:
            return None
        constant = form.constant + sum(c * symbols[s] for s, c in form.symbols)
        if not form.dims:
            if not _holds(constraint.kind, constant):
                if not points.num_dims:
                    return None  # The box of no axes holds one point, this set none.
                return Box((0,) * points.num_dims, (0,) * points.num_dims)
            continue
        ((axis, coefficient),) = form.dims
        if abs(coefficient) != 1:
            return None
        bound = -constant * coefficient
        lower = constraint.kind is AffineConstraintKind.eq or (
            (constraint.kind is AffineConstraintKind.ge) == (coefficient == 1)
        )
        upper = constraint.kind is AffineConstraintKind.eq or not lower
        if lower:
            lo[axis] = bound if lo[axis] is None else max(lo[axis], bound)  # type: ignore[type-var]
        if upper:
            hi[axis] = bound + 1 if hi[axis] is None else min(hi[axis], bound + 1)  # type: ignore[type-var]
    if None in lo or None in hi:
        return None
    return Box(tuple(lo), tuple(hi))  # type: ignore[arg-type]


def _holds(kind: AffineConstraintKind, value: int) -> bool:
    return (
        value == 0
        if kind is AffineConstraintKind.eq
        else (value >= 0 if kind is AffineConstraintKind.ge else value <= 0)
    )


def evaluate(
    expr: AffineExpr, dims: Sequence[np.ndarray | int], symbols: Sequence[int] = ()
) -> np.ndarray | int:
    """`expr` on whole arrays of dimension values; `floordiv` and `mod` round towards minus infinity."""
    match expr:
        case AffineConstantExpr():
            return expr.value
        case AffineDimExpr():
            return dims[expr.position]
        case AffineSymExpr():
            return symbols[expr.position]
        case AffineBinaryOpExpr(kind, left, right):
            lhs, rhs = evaluate(left, dims, symbols), evaluate(right, dims, symbols)
            match kind:
                case AffineBinaryOpKind.Add:
                    return lhs + rhs
                case AffineBinaryOpKind.Mul:
                    return lhs * rhs
                case AffineBinaryOpKind.Mod:
                    return lhs % rhs
                case AffineBinaryOpKind.FloorDiv:
                    return lhs // rhs
                case AffineBinaryOpKind.CeilDiv:
                    return -(-lhs // rhs)
    raise TypeError(f"not an affine expression: {expr!r}")


def contains(points: AffineSet, dims: Sequence[np.ndarray | int], symbols: Sequence[int] = ()) -> np.ndarray:
    """Whether each point lies in the set; a boolean array of the broadcast shape of `dims`."""
    inside: np.ndarray = np.asarray(True)
    for constraint in points.constraints:
        value = evaluate(constraint.lhs, dims, symbols) - evaluate(constraint.rhs, dims, symbols)
        if constraint.kind is AffineConstraintKind.eq:
            inside = inside & (np.asarray(value) == 0)
        elif constraint.kind is AffineConstraintKind.ge:
            inside = inside & (np.asarray(value) >= 0)
        else:
            inside = inside & (np.asarray(value) <= 0)
    return inside


def bounding_box(points: AffineSet, symbols: Sequence[int] = ()) -> Box | None:
    """A box around the set by interval propagation over linear constraints, or None where it is unbounded."""
    lo: list[float] = [-np.inf] * points.num_dims
    hi: list[float] = [np.inf] * points.num_dims
    rows: list[tuple[dict[int, int], int]] = []
    for constraint in points.constraints:
        form = linear(constraint.lhs)
        if form is None or constraint.rhs != AffineExpr.constant(0):
            continue
        constant = form.constant + sum(c * symbols[s] for s, c in form.symbols)
        if constraint.kind is not AffineConstraintKind.le:
            rows.append((dict(form.dims), constant))
        if constraint.kind is not AffineConstraintKind.ge:
            rows.append(({k: -v for k, v in form.dims}, -constant))
    for _ in range(points.num_dims + 2):
        for row, constant in rows:
            for axis, coefficient in row.items():
                rest = constant + sum(v * (hi[k] if v > 0 else lo[k]) for k, v in row.items() if k != axis)
                if not np.isfinite(rest):
                    continue
                bound = int(rest)
                if coefficient > 0:
                    lo[axis] = max(lo[axis], -(bound // coefficient))
                else:
                    hi[axis] = min(hi[axis], bound // -coefficient)
    if not all(np.isfinite(v) for v in (*lo, *hi)):
        return None
    return Box(tuple(int(v) for v in lo), tuple(int(v) + 1 for v in hi))


@lru_cache(maxsize=256)
def set_points(points: AffineSet, symbols: tuple[int, ...] = ()) -> np.ndarray:
    """All points of the set in lexicographic order, as an (n, dims) int64 array.

    Raises ValueError where the set is unbounded, has more than `MAX_POINTS` candidates, or a constant that
    would leave the range of the integers that it is computed in.
    """
    for constraint in points.constraints:
        if (constant := _largest(constraint.lhs, constraint.rhs)) > MAX_CONSTANT:
            raise ValueError(f"a constant of the set, {constant}, is beyond every memory")
    if points.num_dims == 0:
        return np.zeros((1 if bool(contains(points, [], symbols)) else 0, 0), dtype=np.int64)
    box = set_box(points, symbols)
    bounds = box or bounding_box(points, symbols)
    if bounds is None:
        raise ValueError("the set is not bounded")
    size = 1
    for extent in bounds.shape:
        size *= extent
    if size > MAX_POINTS:
        raise ValueError(f"the set has too many candidate points ({size})")
    grids = np.meshgrid(
        *(np.arange(b, h, dtype=np.int64) for b, h in zip(bounds.lo, bounds.hi, strict=True)), indexing="ij"
    )
    flat = np.stack([g.ravel() for g in grids], axis=1)
    if box is None and size:
        flat = flat[np.broadcast_to(contains(points, list(flat.T), symbols), (size,))]
    return flat


def _largest(*exprs: AffineExpr) -> int:
    found = 0
    for expr in exprs:
        if isinstance(expr, AffineConstantExpr):
            found = max(found, abs(expr.value))
        elif isinstance(expr, AffineBinaryOpExpr):
            found = max(found, _largest(expr.lhs, expr.rhs))
    return found


def order_points(points: np.ndarray, order: AffineMap) -> np.ndarray:
    """`points` sorted by the image of `order`, rightmost result fastest (RFC 0682's meaning of an order
    map).
    """
    if order == AffineMap.identity(order.num_dims):
        return points
    keys = [np.broadcast_to(evaluate(e, list(points.T)), (len(points),)) for e in order.results]
    return points[np.lexsort(tuple(reversed(keys)))] if keys else points


def permutation(order: AffineMap) -> tuple[int, ...] | None:
    """`p` such that result i of the map is `d_p[i]` and every dim occurs once; None for any other map."""
    axes = [e.position for e in order.results if isinstance(e, AffineDimExpr)]
    return (
        tuple(axes)
        if sorted(axes) == list(range(order.num_dims)) == list(range(len(order.results)))
        else None
    )


_PRECEDENCE = {AffineBinaryOpKind.Add: 1}


def format_expr(
    expr: AffineExpr,
    dim: Callable[[int], str] = "d{}".format,
    symbol: Callable[[int], str] = "s{}".format,
) -> str:
    """`expr` the way MLIR writes it (`-d0 + 63`, `d0 * 2 - s0`), with parentheses only where needed."""
    return _format(expr, dim, symbol, 0)


def _format(expr: AffineExpr, dim: Callable[[int], str], symbol: Callable[[int], str], level: int) -> str:
    match expr:
        case AffineConstantExpr():
            return str(expr.value)
        case AffineDimExpr():
            return dim(expr.position)
        case AffineSymExpr():
            return symbol(expr.position)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            left = _format(lhs, dim, symbol, 1)
            sign, rest = _negated(rhs)
            right = _format(rest, dim, symbol, 2 if sign == "-" or _is_add(rest) else 1)
            text = f"{left} {sign} {right}"
            return f"({text})" if level > 1 else text
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=-1)):
            text = f"-{_format(lhs, dim, symbol, 3)}"
            return f"({text})" if level > 1 else text
        case AffineBinaryOpExpr(kind, lhs, rhs):
            text = f"{_format(lhs, dim, symbol, 2)} {kind.get_token()} {_format(rhs, dim, symbol, 3)}"
            return f"({text})" if level > 2 else text
    raise TypeError(f"not an affine expression: {expr!r}")


def _is_add(expr: AffineExpr) -> bool:
    return isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Add


def _negated(expr: AffineExpr) -> tuple[str, AffineExpr]:
    match expr:
        case AffineConstantExpr() if expr.value < 0:
            return "-", AffineExpr.constant(-expr.value)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, AffineConstantExpr(value=value)) if value < 0:
            return "-", lhs if value == -1 else lhs * -value
    return "+", expr


def format_map(value: AffineMap) -> str:
    """`(d0, d1) -> (d1, d0)`."""
    return f"{_space(value.num_dims, value.num_symbols)} -> ({', '.join(map(format_expr, value.results))})"


def format_set(value: AffineSet) -> str:
    """`(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)`."""
    constraints = ", ".join(
        f"{format_expr(c.lhs)} {c.kind.value} {format_expr(c.rhs)}" for c in value.constraints
    )
    return f"{_space(value.num_dims, value.num_symbols)} : ({constraints})"


def _space(dims: int, symbols: int) -> str:
    head = f"({', '.join(f'd{i}' for i in range(dims))})"
    return f"{head}[{', '.join(f's{i}' for i in range(symbols))}]" if symbols else head
