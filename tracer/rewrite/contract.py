"""Sums of products become contractions.

`sum over r of a[.., r] * b[.., r]`, where neither factor runs over all the parallel axes of the other, is
a matrix product: the factors are then multiplied tile by tile on the systolic array, instead of forming
every product in the scratchpad.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Compute, Index, Kernel, Load, Operand, Reduce, Scan, Statement, Store
from tracer.rewrite.simplify import WIDENS


def axes_of(kernel: Kernel, axes: tuple[Axis, ...]) -> dict[str, frozenset[Axis]]:
    """For every value, the axes along which it varies."""
    by_name = {axis.name: axis for axis in axes}
    reduced = frozenset(axis for axis in axes if axis.reduced)
    found: dict[str, frozenset[Axis]] = {}
    for statement in kernel.body:
        varies: set[Axis] = set()
        for operand in statement.operands:
            if isinstance(operand, str):
                varies |= found[operand]
        if isinstance(statement, Load | Index | Store):
            varies |= {by_name[s.name] for s in statement.index.free_symbols if s.name in by_name}
        if isinstance(statement, Reduce):
            varies -= reduced
        if isinstance(statement, Scan):
            varies |= reduced
        if statement.name:
            found[statement.name] = frozenset(varies)
    return found


@dataclass(frozen=True)
class Contraction:
    """Roles of the axes of one `dot`: `a[batch, m, k] * b[batch, k, n]`."""

    batch: tuple[Axis, ...]
    m: tuple[Axis, ...]
    n: tuple[Axis, ...]
    k: tuple[Axis, ...]


def contraction(statement: Reduce, varies: dict[str, frozenset[Axis]], axes: tuple[Axis, ...]) -> Contraction:
    """Roles of the axes of a `dot` statement, each in axis order."""
    a, b = (varies[arg] if isinstance(arg, str) else frozenset() for arg in statement.args)

    def pick(chosen: frozenset[Axis]) -> tuple[Axis, ...]:
        return tuple(axis for axis in axes if axis in chosen)

    reduced = frozenset(axis for axis in axes if axis.reduced)
    return Contraction(pick((a & b) - reduced), pick(a - b - reduced), pick(b - a - reduced), pick(reduced))


def form_contractions(kernel: Kernel, axes: tuple[Axis, ...]) -> Kernel:
    """Rewrite every sum of products into a `dot` where its axes allow one.

    A `dot` needs every reduced axis in both factors and at least one axis that only one factor has.
    A `dot` that Inductor formed although its axes do not allow one becomes a sum of products.
    """
    varies = axes_of(kernel, axes)
    defined = {s.name: s for s in kernel.body if s.name}
    reduced = frozenset(axis for axis in axes if axis.reduced)
    body: list[Statement] = []
    for statement in kernel.body:
        if isinstance(statement, Reduce) and statement.kind == "sum" and isinstance(statement.args[0], str):
            product = defined[statement.args[0]]
            if isinstance(product, Compute) and product.op == "mul" and product.dtype == "float32":
                factors = tuple(_narrow(arg, defined) for arg in product.args)
                if _contracts(factors, varies, reduced) and _one_dtype(factors, defined):
                    statement = replace(statement, kind="dot", args=factors)
        elif _is_dot(statement) and not _contracts(statement.args, varies, reduced):
            body += _products(statement, defined)
            statement = replace(statement, kind="sum", args=(f"{statement.name}_product",))
        body.append(statement)
    return kernel.with_body(tuple(body))


def _is_dot(statement: Statement) -> TypeGuard[Reduce]:
    return isinstance(statement, Reduce) and statement.kind == "dot"


def _narrow(operand: Operand, defined: dict[str, Statement]) -> Operand:
    """The operand before a widening cast: its products are exact in float32 either way."""
    if isinstance(operand, str):
        source = defined[operand]
        if isinstance(source, Compute) and source.op == "cast" and isinstance(source.args[0], str):
            inner = defined[source.args[0]]
            if inner.dtype in ("float16", "bfloat16") and source.dtype in WIDENS[inner.dtype]:  # type: ignore[union-attr]
                return source.args[0]
    return operand


def _one_dtype(factors: tuple[Operand, ...], defined: dict[str, Statement]) -> bool:
    dtypes = {defined[f].dtype for f in factors if isinstance(f, str)}  # type: ignore[union-attr]
    return len(dtypes) == 1


def _contracts(
    factors: tuple[Operand, ...], varies: dict[str, frozenset[Axis]], reduced: frozenset[Axis]
) -> bool:
    if not all(isinstance(factor, str) for factor in factors):
        return False
    a, b = (varies[str(factor)] for factor in factors)
    return reduced <= a and reduced <= b and a != b


def _products(statement: Reduce, defined: dict[str, Statement]) -> list[Statement]:
    wide: list[Statement] = []
    args: list[Operand] = []
    for arg in statement.args:
        if isinstance(arg, str) and defined[arg].dtype != statement.dtype:  # type: ignore[union-attr]
            wide.append(Compute(f"{arg}_{statement.dtype}", "cast", (arg,), statement.dtype, statement.line))
            arg = wide[-1].name
        args.append(arg)
    unique = list({s.name: s for s in wide}.values())
    return [
        *unique,
        Compute(f"{statement.name}_product", "mul", tuple(args), statement.dtype, statement.line),
    ]
