"""Local simplifications of the structured IR; none changes a value that memory sees.

Inductor widens every half-precision load and narrows at the store. Pure data movement needs neither,
and a contraction reads its operands in the dtype they lie in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from tracer.rewrite.errors import AliasedAccess
from tracer.rewrite.fold import cast_constant
from tracer.rewrite.ir import Compute, Const, Kernel, Load, Operand, Statement, Store
from tracer.rewrite.nan import lose_nan

# Every value of the key is a value of each listed dtype, so widening and narrowing back is the identity.
WIDENS: dict[str, tuple[str, ...]] = {
    "float16": ("float32", "float64"),
    "bfloat16": ("float32", "float64"),
    "float32": ("float64",),
    "float8e4nv": ("float16", "bfloat16", "float32", "float64"),
    "float8e5": ("float16", "bfloat16", "float32", "float64"),
    "int1": ("int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    "int8": ("int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    "uint8": ("int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    "int16": ("int32", "int64", "float32", "float64"),
    "int32": ("int64", "float64"),
}


# The argument that leaves the other as it is, infinities and NaN included.
_UNITS: dict[str, float] = {"mul": 1, "maximum": float("-inf"), "minimum": float("inf")}


def check_aliases(kernel: Kernel, buffers: dict[str, str]) -> None:
    """A buffer that is read and written must be so at the same element: tiles run in any order.

    `buffers` maps each pointer parameter to its buffer. Raises AliasedAccess.
    """
    stores = [s for s in kernel.body if isinstance(s, Store)]
    for load in kernel.body:
        if isinstance(load, Load):
            for store in stores:
                if buffers[load.param] == buffers[store.param] and load.index != store.index:
                    raise AliasedAccess(param=load.param, line=load.line)


def simplify(kernel: Kernel, memory: dict[str, str]) -> Kernel:
    """Cast chains shortened, repeated work shared, stored values forwarded, dead statements dropped,
    extremes in the kind that Triton has a word for.

    `memory` maps each pointer parameter to the Triton dtype of its elements. Raises AliasedAccess.
    """
    body = _forward_stores(kernel)
    body = _explicit_store_casts(body, memory)
    body = _drop_units(_shorten_casts(body))
    body = lose_nan(drop_dead(_share_loads(body)))
    return kernel.with_body(tuple(_restore_names(body)))


def substitute(statement: Statement, names: dict[str, Operand]) -> Statement:
    """`statement` with value names replaced (in index expressions too, where the new one is a name)."""

    def value(operand: Operand) -> Operand:
        return names.get(operand, operand) if isinstance(operand, str) else operand

    def index(expression: sympy.Expr) -> sympy.Expr:
        symbols = {
            symbol: sympy.Symbol(new, integer=True) if isinstance(new, str) else sympy.Integer(int(new.value))
            for symbol in expression.free_symbols
            if (new := names.get(symbol.name)) is not None
        }
        return expression.xreplace(symbols) if symbols else expression

    changes: dict[str, object] = {}
    for field in ("index", "args", "value", "mask"):
        current = getattr(statement, field, None)
        if field == "index" and current is not None:
            changes[field] = index(current)
        elif field == "args" and current is not None:
            changes[field] = tuple(value(a) for a in current)
        elif current is not None:
            changes[field] = value(current)
    return replace(statement, **changes)  # type: ignore[arg-type]


def _forward_stores(kernel: Kernel) -> list[Statement]:
    """A load of what this kernel stored at the same element is the stored value."""
    stored: dict[str, Store] = {}
    names: dict[str, Operand] = {}
    body: list[Statement] = []
    for statement in kernel.body:
        current = substitute(statement, names)
        if isinstance(current, Store):
            stored[current.param] = current
        if isinstance(current, Load) and (earlier := stored.get(current.param)):
            if earlier.index != current.index:
                raise AliasedAccess(param=current.param, line=current.line)
            names[current.name] = earlier.value
            continue
        body.append(current)
    return body


def _explicit_store_casts(body: list[Statement], memory: dict[str, str]) -> list[Statement]:
    result: list[Statement] = []
    dtypes = {s.name: s.dtype for s in body if not isinstance(s, Store)}
    for statement in body:
        if isinstance(statement, Store):
            wanted = memory[statement.param]
            if isinstance(statement.value, Const):
                statement = replace(statement, value=cast_constant(statement.value, wanted))
            elif dtypes[statement.value] != wanted:
                cast = Compute(
                    f"{statement.value}_{wanted}", "cast", (statement.value,), wanted, statement.line
                )
                if all(s.name != cast.name for s in result):
                    result.append(cast)
                statement = replace(statement, value=cast.name)
        result.append(statement)
    return result


def _shorten_casts(body: list[Statement]) -> list[Statement]:
    defined: dict[str, Statement] = {}
    names: dict[str, Operand] = {}
    result: list[Statement] = []
    for statement in body:
        current = substitute(statement, names)
        if isinstance(current, Compute) and current.op == "cast" and isinstance(current.args[0], str):
            source = defined[current.args[0]]
            if isinstance(source, Compute) and source.op == "cast" and isinstance(source.args[0], str):
                inner = defined[source.args[0]]
                if source.dtype in WIDENS.get(inner.dtype, ()):  # type: ignore[union-attr]
                    current = replace(current, args=source.args)
                    source = inner
            if source.dtype == current.dtype:  # type: ignore[union-attr]
                names[current.name] = source.name
                continue
        result.append(current)
        if current.name:
            defined[current.name] = current
    return result


def _drop_units(body: list[Statement]) -> list[Statement]:
    """`1 * x` is `x`, whatever x is; so is `max(x, -inf)`. Of booleans, `x != 0` is `x`, `x == 0` is `~x`."""
    names: dict[str, Operand] = {}
    dtypes = {s.name: s.dtype for s in body if not isinstance(s, Store)}
    result: list[Statement] = []
    for statement in body:
        current = substitute(statement, names)
        if isinstance(current, Compute) and current.op in _UNITS:
            unit = _UNITS[current.op]
            ones = [arg for arg in current.args if isinstance(arg, Const) and arg.value == unit]
            others = [arg for arg in current.args if isinstance(arg, str) and dtypes[arg] == current.dtype]
            if ones and others:
                names[current.name] = others[0]
                continue
        match current:
            case Compute(op="ne" | "eq" as op, args=(str(value), Const(value=0))) if dtypes[value] == "int1":
                if op == "ne":
                    names[current.name] = value
                    continue
                current = replace(current, op="not", args=(value,))
        result.append(current)
    return result


def _restore_names(body: list[Statement]) -> list[Statement]:
    """`tmp0_raw` (a load whose widening is gone) is `tmp0` again where that name is free."""
    defined = {s.name for s in body}
    names: dict[str, Operand] = {
        name: clean
        for name in defined
        if name.endswith("_raw") and (clean := name.removesuffix("_raw")) not in defined
    }
    return [replace(substitute(s, names), name=names.get(s.name, s.name)) for s in body]  # type: ignore[arg-type]


def _share_loads(body: list[Statement]) -> list[Statement]:
    """Two loads of one element of memory that this kernel does not write in between are one load."""
    seen: dict[tuple[object, ...], str] = {}
    names: dict[str, Operand] = {}
    result: list[Statement] = []
    for statement in body:
        current = substitute(statement, names)
        if isinstance(current, Load | Compute):
            key = (
                type(current),
                *(
                    getattr(current, f, None)
                    for f in ("param", "index", "mask", "other", "op", "args", "dtype")
                ),
            )
            if (first := seen.get(key)) is not None:
                names[current.name] = first
                continue
            seen[key] = current.name
        result.append(current)
    return result


def drop_dead(body: Sequence[Statement]) -> list[Statement]:
    """The statements that some store needs."""
    live: set[str] = set()
    result: list[Statement] = []
    for statement in reversed(body):
        if isinstance(statement, Store) or statement.name in live:
            live |= {operand for operand in statement.operands if isinstance(operand, str)}
            result.append(statement)
    return result[::-1]
