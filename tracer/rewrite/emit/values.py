"""Text of computed values: elementwise ops, indices, reductions, scans."""

from __future__ import annotations

import math

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.emit.memory import load_text
from tracer.rewrite.emit.tiles import Tiles, identity_of, literal
from tracer.rewrite.functions import OPS, REDUCTIONS, SCANS
from tracer.rewrite.ir import Compute, Const, FloorDiv, Index, Load, Modulo, Operand, Reduce, Scan
from tracer.rewrite.signature import size_name
from tracer.rewrite.types import BYTES, is_float


def compute_text(tiles: Tiles, statement: Compute) -> str:
    """An elementwise op, its operands widened to the result's tile."""
    if statement.op == "cast":
        source = statement.args[0]
        assert isinstance(source, str)
        load = tiles.defined[source]
        text = load_text(tiles, load) if isinstance(load, Load) and tiles.inlined_load(source) else source
        return f"{text}.to(tl.{statement.dtype})"
    want = tiles.tile_of(statement.name)
    args = [tiles.text(arg, want) for arg in statement.args]
    first = statement.args[0]
    if statement.dtype == "float64" and OPS[statement.op].text.startswith(("tl.", "libdevice.")):
        # An operator gives a literal the dtype of its other operand, a function takes it as float32.
        args = [
            f"tl.full([], {text}, tl.float64)" if isinstance(arg, Const) and is_float(arg.dtype) else text
            for arg, text in zip(statement.args, args, strict=True)
        ]
    elif isinstance(first, Const) and all(isinstance(arg, Const) for arg in statement.args):
        args[0] = f"tl.full([], {args[0]}, tl.{first.dtype})"
    if statement.op == "div" and (extent := _mean_extent(tiles, statement)):
        args[1] = extent
    return OPS[statement.op].text.format(*args)


def _mean_extent(tiles: Tiles, statement: Compute) -> str | None:
    """A sum divided by the number of its terms (of a variance: one less) divides by the runtime extents."""
    source, divisor = statement.args
    if isinstance(source, str) and isinstance(divisor, Const):
        origin = tiles.defined[source]
        terms = math.prod(a.extent for a in tiles.reduced)
        if isinstance(origin, Reduce) and origin.kind == "sum":
            count = " * ".join(size_name(a) for a in tiles.reduced)
            if divisor.value == terms:
                return count if count.isidentifier() else f"({count})"
            if divisor.value == terms - 1 and _squares_deviation(tiles, origin.args[0]):
                return f"({count} - 1)"
    return None


def _squares_deviation(tiles: Tiles, operand: Operand) -> bool:
    """Whether a value is the square of a difference: a variance, divided by one less than its terms."""
    match tiles.defined.get(operand) if isinstance(operand, str) else None:
        case Compute(op="mul", args=(str(one), str(other))) if one == other:
            match tiles.defined[one]:
                case Compute(op="sub"):
                    return True
    return False


def reduce_text(tiles: Tiles, reduction: Reduce) -> str:
    """A reduction of the tile at hand over all reduced axes, in the reduction's dtype."""
    text = _reduced(tiles, reduction)
    # Triton's own reductions widen what has less than 32 bits before they reduce it.
    widened = BYTES[reduction.dtype] < BYTES["int32"] and reduction.dtype != "int1"
    widened = widened and not REDUCTIONS[reduction.kind].helper
    return f"{text}.to(tl.{reduction.dtype})" if widened else text


def _reduced(tiles: Tiles, reduction: Reduce) -> str:
    """The reduction itself; padding that matters is masked."""
    arg = reduction.args[0]
    axes = tiles.varies[arg] if isinstance(arg, str) else frozenset()
    have = tiles.tile(axes | set(tiles.reduced))
    text = tiles.text(arg, have)
    rule = REDUCTIONS[reduction.kind]
    if not have:  # one element: Triton reduces no scalars
        return rule.leave.format(rule.enter.format(text))
    dtype = tiles.dtype(arg)
    if isinstance(arg, Const):
        text = f"tl.full({tiles.shape(have)}, {text}, tl.{dtype})"
    elif not set(tiles.reduced) <= axes:
        text = f"tl.broadcast_to({text}, {tiles.shape(have)})"
    unsafe = tiles.unsafe(reduction)
    if unsafe:
        masks = " & ".join(tiles.widen(f"{a.name}_mask", (a,), have) for a in unsafe)
        text = f"tl.where({masks}, {text}, {literal(identity_of(rule.identity, dtype))})"
    if rule.helper:
        tiles.helpers.add(rule.helper)
    text = rule.enter.format(text)
    if not tiles.tile_of(reduction.name) and rule.flat:
        return rule.leave.format(rule.flat.format(text))
    for axis in reversed(tiles.reduced):
        text = rule.text.format(text, axis=have.index(axis))
    if not tiles.tile_of(reduction.name) and len(have) > len(tiles.reduced):
        text = f"tl.sum({text})"
    return rule.leave.format(text)


def scan_text(tiles: Tiles, scan: Scan) -> str:
    """An inclusive scan along the one reduced axis."""
    source, axis = scan.args[0], tiles.reduced[0]
    assert isinstance(source, str)
    have = tiles.tile(tiles.varies[source] | {axis})
    text = tiles.text(source, have)
    if axis not in tiles.varies[source]:
        text = f"tl.broadcast_to({text}, {tiles.shape(have)})"
    return SCANS[scan.kind].format(text, axis=have.index(axis))


def index_text(tiles: Tiles, statement: Index) -> str:
    """An index expression as a value."""
    want = tiles.tile_of(statement.name)
    text = _expression(tiles, statement.index, want)
    if not want and (statement.dtype != "int32" or _cast_later(tiles, statement.name)):
        # Triton's interpreter counts loops in Python integers, which have no `.to`.
        return f"tl.full([], {text}, tl.{statement.dtype})"
    if statement.dtype == "int32":
        return text
    return f"{text}.to(tl.{statement.dtype})" if text.isidentifier() else f"({text}).to(tl.{statement.dtype})"


def _cast_later(tiles: Tiles, name: str) -> bool:
    """Whether a scalar, or a scalar computed from it, is cast."""
    return any(
        user.op == "cast" or (not tiles.tile_of(user.name) and _cast_later(tiles, user.name))
        for user in tiles.users[name]
        if isinstance(user, Compute)
    )


def _expression(tiles: Tiles, expression: sympy.Expr, want: tuple[Axis, ...]) -> str:
    if expression.is_Integer:
        return str(int(expression))
    if expression.is_Symbol:
        axis = next((a for a in tiles.axes if a.symbol == expression), None)
        if axis is None and expression.name not in tiles.defined:
            return str(expression.name)  # a runtime parameter, see `extents`
        if axis is None:
            text = tiles.text(expression.name, want)
            return f"{text}.to(tl.int32)" if tiles.dtype(expression.name) == "int1" else text
        if tiles.blocks[axis] == 1:
            return axis.name
        return tiles.widen(f"{axis.name}_index", (axis,), want)
    if isinstance(expression, FloorDiv | Modulo):
        left, right = (_expression(tiles, arg, want) for arg in expression.args)
        sign = "//" if isinstance(expression, FloorDiv) else "%"
        return f"{left if left.isidentifier() else f'({left})'} {sign} {right}"
    if expression.is_Mul:
        factor, rest = expression.as_coeff_Mul()
        inner = " * ".join(_factor(tiles, part, want) for part in sympy.Mul.make_args(rest))
        return {1: "", -1: "-"}.get(int(factor), f"{int(factor)} * ") + inner
    # Rising terms first, so that a falling index reads `9 - x0`.
    terms = sorted(
        sympy.Add.make_args(expression),
        key=lambda t: (bool(t.as_coeff_Mul()[0] < 0), bool(t.is_Integer), str(t)),
    )
    parts = [_expression(tiles, term, want) for term in terms]
    return " + ".join(parts).replace("+ -", "- ")


def _factor(tiles: Tiles, expression: sympy.Expr, want: tuple[Axis, ...]) -> str:
    text = _expression(tiles, expression, want)
    return text if expression.is_Symbol else f"({text})"
