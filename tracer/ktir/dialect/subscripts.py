"""Affine subscripts over SSA values (`[%row + %i * 2, %c0]`): parsing and printing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr, AffineMap
from xdsl.parser import Parser
from xdsl.parser.core import UnresolvedOperand
from xdsl.printer import Printer

from tracer.ktir.affine import format_expr

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "floordiv": 2, "ceildiv": 2, "mod": 2}
_MAX_DEPTH = 64


class Operands:
    """SSA names met in subscripts, each numbered once, in order of appearance."""

    def __init__(self, locals_: Sequence[str] = ()):
        self.locals = list(locals_)
        self.names: list[tuple[str, int]] = []
        self.values: list[SSAValue] = []

    def number(self, parser: Parser, operand: UnresolvedOperand) -> AffineExpr:
        """The expression for one SSA name: a symbol for a local variable, a dimension for an operand."""
        if operand.operand_name in self.locals and not operand.index:
            return AffineExpr.symbol(self.locals.index(operand.operand_name))
        key = (operand.operand_name, operand.index)
        if key not in self.names:
            self.names.append(key)
            self.values.append(parser.resolve_operand(operand, IndexType()))
        return AffineExpr.dimension(self.names.index(key))


def parse_expr(parser: Parser, operands: Operands, level: int = 1, depth: int = 0) -> AffineExpr:
    """An affine expression whose variables are SSA names. Raises ParseError."""
    left = _primary(parser, operands, depth)
    while True:
        for token, precedence in _PRECEDENCE.items():
            if precedence >= level and _accept(parser, token):
                right = parse_expr(parser, operands, precedence + 1, depth + 1)
                left = _combine(parser, token, left, right)
                break
        else:
            return left


def _accept(parser: Parser, token: str) -> bool:
    if token.isalpha():
        return parser.parse_optional_keyword(token) is not None
    return parser.parse_optional_punctuation(token) is not None  # type: ignore[arg-type]


def _primary(parser: Parser, operands: Operands, depth: int) -> AffineExpr:  # noqa: RET503
    if depth > _MAX_DEPTH:
        parser.raise_error("the subscript is nested too deeply")
    if parser.parse_optional_punctuation("("):
        inner = parse_expr(parser, operands, 1, depth + 1)
        parser.parse_punctuation(")")
        return inner
    if parser.parse_optional_punctuation("-"):
        return -_primary(parser, operands, depth + 1)
    if (operand := parser.parse_optional_unresolved_operand()) is not None:
        return operands.number(parser, operand)
    if (number := parser.parse_optional_integer(allow_boolean=False, allow_negative=False)) is not None:
        return AffineExpr.constant(number)
    parser.raise_error("expected an SSA value, an integer or a parenthesised expression in the subscript")


def _combine(parser: Parser, token: str, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    if token == "+":
        return left + right
    if token == "-":
        return left - right
    if token == "*":
        if not isinstance(left, AffineConstantExpr) and not isinstance(right, AffineConstantExpr):
            parser.raise_error("the product of two variables is not affine")
        return right * left if isinstance(left, AffineConstantExpr) else left * right
    if not isinstance(right, AffineConstantExpr) or right.value <= 0:
        parser.raise_error(f"the right-hand side of {token} must be a positive integer")
    return {"floordiv": left.__floordiv__, "ceildiv": left.ceil_div, "mod": left.__mod__}[token](right)


def parse_subscripts(parser: Parser) -> tuple[AffineMap, list[SSAValue]]:
    """`[expr, expr, ...]` -> a map over the distinct SSA values, and those values."""
    operands = Operands()
    results = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_expr(parser, operands), " in subscripts"
    )
    return AffineMap(len(operands.values), 0, tuple(results)), operands.values


def print_subscripts(printer: Printer, results: Sequence[AffineExpr], names: Sequence[str]) -> None:
    """`%i + 4, %c0`: expressions over dimensions whose SSA names are `names`."""
    name: Callable[[int], str] = lambda position: names[position]  # noqa: E731
    printer.print_string(", ".join(format_expr(e, name) for e in results))


def ssa_name(printer: Printer, value: SSAValue) -> str:
    """The name that `printer` gives `value`, with its `%`, without printing it."""
    stream, printer.stream = printer.stream, StringIO()
    line, column = printer._current_line, printer._current_column
    try:
        return "%" + printer.print_ssa_value(value)
    finally:
        printer.stream, printer._current_line, printer._current_column = stream, line, column
