"""KTIR text to xDSL IR: xDSL's parser, plus source locations, full SSA names and the spellings in use
elsewhere.
"""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    Attribute,
    DenseArrayBase,
    FileLineColLoc,
    IndexType,
    IntAttr,
    ModuleOp,
    StringAttr,
    i1,
    i32,
    i64,
)
from xdsl.dialects.linalg.ops import NamedOperation
from xdsl.dialects.linalg.ops import YieldOp as LinalgYieldOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Span

from tracer.ktir.dialect.extra_ops import (
    BroadcastOp,
    MapOp,
    ReduceManyOp,
    ReduceOp,
    TransposeOp,
    parse_assignments,
    parse_result_types,
    parse_typed_operands,
)
from tracer.ktir.dialect.named_ops import parse_named, refuse_maps
from tracer.ktir.text.literals import LiteralParser

_GENERIC_FORM = re.compile(r"(?:%[^=\n]*=\s*)?\"")
_NAME_START = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"


class KtirParser(LiteralParser):
    """An xDSL parser that stamps every operation with its place in the file."""

    def __init__(self, ctx: Context, text: str, filename: str):
        super().__init__(ctx, text, filename)
        self.filename = filename
        self._starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
        # Where the operations being read began, outermost first; an error leaves them there.
        self.open: list[int] = []
        self.too_large = []
        # Where each value is bound last, and where one is used first that is not bound there.
        self.bound: dict[str, int] = {}
        self.unbound: dict[str, int] = {}

    def place(self, position: int) -> tuple[int, int]:
        """Line and column, from 1, of a character position."""
        line = bisect_right(self._starts, position)
        return line, position - self._starts[line - 1] + 1

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        # A module that nobody wrote begins where its first operation does: what is in it has a place.
        if not isinstance(module.location, FileLineColLoc):
            first = module.body.block.first_op
            module.location = first.location if first is not None else self._location(0)
        return module

    def _location(self, position: int) -> FileLineColLoc:
        line, column = self.place(position)
        return FileLineColLoc(StringAttr(self.filename), IntAttr(line), IntAttr(column))

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        self.open.append(start)
        op = super().parse_operation()
        self.open.pop()
        if not isinstance(op.location, FileLineColLoc):
            op.location = self._location(start)
        return op

    def parse_integer(self, *args: Any, **options: Any) -> int:
        position = self.pos
        value = super().parse_integer(*args, **options)
        if value == DYNAMIC_INDEX and not self._in_generic_form():
            # xDSL keeps the extents that are values under this number; only its generic form writes it.
            self.raise_error(f"the integer {value} is out of range", position, self.pos)
        return value

    def parse_comma_separated_list(self, delimiter: Any, parse: Any, context_msg: str = "") -> list[Any]:
        # MLIR puts several result types in parentheses, xDSL's linalg.generic reads them bare.
        bare = delimiter is self.Delimiter.NONE and parse == self.parse_attribute
        if bare and self._current_token.text == "(" and self._in_generic():
            delimiter, parse = self.Delimiter.PAREN, self.parse_type
        return super().parse_comma_separated_list(delimiter, parse, context_msg)

    def _in_generic_form(self) -> bool:
        text = self.lexer.input.content[self.open[-1] :] if self.open else ""
        return _GENERIC_FORM.match(text) is not None

    def _in_generic(self) -> bool:
        line = self.lexer.input.content[self.open[-1] :].partition("\n")[0] if self.open else ""
        return "linalg.generic" in line

    def _get_op_by_name(self, name: str) -> type[Operation]:
        op_type = super()._get_op_by_name(name)
        if self._current_token.text == "(":
            return op_type
        refuse_maps(self, name)
        # The caller asks the class to parse itself; a stand-in takes more spellings than xDSL.
        if name in _SYNTAX:
            return _stand_in(op_type, _SYNTAX[name])
        if issubclass(op_type, NamedOperation):
            return _stand_in(op_type, partial(parse_named, op_type))
        return op_type

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        op = super()._parse_generic_operation(op_type)
        return _reduced_at_once(op) if isinstance(op, ReduceOp) and len(op.operands) > 2 else op

    def resolve_operand(self, operand: UnresolvedOperand, type: Any) -> SSAValue[Any]:  # noqa: A002 - xDSL's
        if operand.operand_name not in self.ssa_values:
            self.unbound.setdefault(operand.operand_name, operand.span.start)
        return super().resolve_operand(operand, type)

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        self.bound[name] = span.start
        self.unbound.pop(name, None)
        # xDSL drops a trailing `_<number>` from name hints; KTIR keeps names whole.
        if name[0] in _NAME_START and name.replace("_", "a").isalnum() and name.isascii():
            for i, value in enumerate(values):
                value._name = name if len(values) == 1 else f"{name}_{i}"


def _stand_in(op_type: type[Operation], syntax: Callable[[Parser], Operation]) -> type[Operation]:
    return type(
        op_type.__name__,
        (),
        {"parse": staticmethod(syntax), "dialect_name": op_type.dialect_name, "name": op_type.name},
    )


def _integers(parser: Parser, keyword: str) -> list[int]:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def _one(parser: Parser, keyword: str) -> SSAValue:
    values = parse_typed_operands(parser, keyword)
    if len(values) != 1:
        parser.raise_error(f"expected one operand in {keyword}()")
    return values[0]


def _broadcast(parser: Parser) -> Operation:
    value, init = _one(parser, "ins"), _one(parser, "outs")
    dims = _integers(parser, "dimensions")
    parse_result_types(parser)
    return BroadcastOp(value, init, DenseArrayBase.from_list(i64, dims))


def _transpose(parser: Parser) -> Operation:
    value, init = _one(parser, "ins"), _one(parser, "outs")
    permutation = _integers(parser, "permutation")
    parse_result_types(parser)
    return TransposeOp(value, init, DenseArrayBase.from_list(i64, permutation))


def _combiner_name(parser: Parser) -> Span | None:
    """Where the short form `linalg.reduce { arith.addf } ins(...)` names its payload op."""
    if not parser.parse_optional_punctuation("{"):
        return None
    start = parser._current_token.span.start
    name = Span(start, start + len(parser.parse_identifier()), parser.lexer.input)
    parser.parse_optional_attr_dict()
    parser.parse_punctuation("}")
    return name


def _payload(parser: Parser, place: Span, types: Sequence[Attribute]) -> Region:
    """The region that the short form stands for: the op named there on all block arguments, yielded."""
    name = place.text
    op_type = parser.ctx.get_optional_op(name)
    if op_type is None:
        parser.raise_error(f"operation {name} is not registered", place)
    block = Block(arg_types=types)
    names = ("in", "out") if len(types) == 2 else tuple(f"in{i}" for i in range(len(types)))
    for arg, hint in zip(block.args, names, strict=True):
        arg._name = hint
    try:
        op = _combined(op_type, block)
    except (VerifyException, ValueError, TypeError) as error:
        said = str(error).partition("\n")[0]
        if not said.endswith("does not verify:"):
            parser.raise_error(f"{name} cannot combine {', '.join(map(str, types))}: {said}", place)
        known = [k for k in parser.ctx.loaded_ops if k.dialect_name() == op_type.dialect_name()]
        near = get_close_matches(name, [k.name for k in known if _combines(k, block)], 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        parser.raise_error(f"{name} cannot combine {', '.join(map(str, types))}{hint}", place)
    block.add_ops([op, LinalgYieldOp(*op.results)])
    return Region(block)


def _combined(op_type: type[Operation], block: Block) -> Operation:
    """The op on the arguments of `block`, with a result of the type of the first; raises as xDSL does."""
    op = op_type.create(operands=list(block.args), result_types=[block.args[0].type])
    op.verify()
    return op


def _combines(op_type: type[Operation], block: Block) -> bool:
    try:
        _combined(op_type, block)
    except (VerifyException, ValueError, TypeError, LookupError, AttributeError):
        return False
    return True


def _element(value: SSAValue) -> Attribute:
    return value.type.element_type if hasattr(value.type, "element_type") else value.type


def _reduce(parser: Parser) -> Operation:
    name = _combiner_name(parser)
    inputs, inits = parse_typed_operands(parser, "ins"), parse_typed_operands(parser, "outs")
    dims = _integers(parser, "dimensions")
    parse_result_types(parser)
    if name is not None:
        if len(inputs) != 1 or len(inits) != 1:
            parser.raise_error("the short form of linalg.reduce takes one input")
        region = _payload(parser, name, [_element(inputs[0]), _element(inits[0])])
    else:
        args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        region = parser.parse_region(args)
    if len(inputs) == 1 and len(inits) == 1:
        return ReduceOp(inputs[0], inits[0], DenseArrayBase.from_list(i64, dims), region)
    return ReduceManyOp(inputs, inits, dims, region)


def _reduced_at_once(op: ReduceOp) -> Operation:
    """Generic form of several inputs: as many inits follow them, and MLIR writes no sizes of segments."""
    operands, half = list(op.operands), len(op.operands) // 2
    op.operands = []
    sizes = DenseArrayBase.from_list(i32, [half, len(operands) - half])
    return ReduceManyOp.create(
        operands=operands,
        result_types=op.result_types,
        properties={"operandSegmentSizes": sizes} | op.properties,
        attributes=op.attributes,
        location=op.location,
        regions=[op.detach_region(region) for region in list(op.regions)],
    )


def _map(parser: Parser) -> Operation:
    name = _combiner_name(parser)
    # Without inputs every element is what the region yields.
    inputs = [] if parser._current_token.text == "outs" else parse_typed_operands(parser, "ins")
    init = _one(parser, "outs")
    if name is not None:
        return MapOp(inputs, init, _payload(parser, name, [_element(v) for v in inputs]))
    args = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
    return MapOp(inputs, init, parser.parse_region(args))


def _terminated(region: Region, terminator: Callable[[], Operation]) -> Region:
    """`region` with a block, and with an implicit terminator where it has none."""
    if region.blocks.last is None:
        region.add_block(Block())
    block = region.blocks.last
    assert block is not None
    if block.last_op is None or not block.last_op.has_trait(IsTerminator):
        block.add_op(terminator())
    return region


def _for(parser: Parser) -> Operation:
    induction = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    lower = parser.parse_unresolved_operand()
    parser.parse_keyword("to")
    upper = parser.parse_unresolved_operand()
    parser.parse_keyword("step")
    step = parser.parse_unresolved_operand()
    pos = parser.pos
    carried = parser.parse_optional_keyword("iter_args") is not None
    names, inits = parse_assignments(parser) if carried else ([], [])
    types = parse_result_types(parser) if carried else []
    index_type = parser.parse_type() if parser.parse_optional_punctuation(":") else IndexType()
    if len(types) != len(names):
        parser.raise_error(
            f"scf.for has {len(names)} iter_args but {len(types)} result types", pos, parser.pos
        )
    bounds = [parser.resolve_operand(v, index_type) for v in (lower, upper, step)]
    values = parser.resolve_operands(inits, types, pos)
    args = [induction.resolve(index_type), *(n.resolve(t) for n, t in zip(names, types, strict=True))]
    body = _terminated(parser.parse_region(args), ScfYieldOp) if not types else parser.parse_region(args)
    op = ForOp(bounds[0], bounds[1], bounds[2], values, body)
    op.attributes |= parser.parse_optional_attr_dict()
    return op


def _if(parser: Parser) -> Operation:
    condition = parser.parse_operand(i1)
    types = parse_result_types(parser)
    then = _terminated(parser.parse_region(), ScfYieldOp)
    orelse = Region()
    if parser.parse_optional_keyword("else"):
        orelse = _terminated(parser.parse_region(), ScfYieldOp)
    elif types:
        parser.raise_error("scf.if with results needs an else region")
    return IfOp(condition, types, then, orelse, parser.parse_optional_attr_dict())


_SYNTAX: dict[str, Callable[[Parser], Operation]] = {
    "linalg.broadcast": _broadcast,
    "linalg.transpose": _transpose,
    "linalg.reduce": _reduce,
    "linalg.map": _map,
    "scf.for": _for,
    "scf.if": _if,
}

__all__ = ["BlockArgument", "KtirParser", "ParseError"]
