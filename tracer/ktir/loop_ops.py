"""`scf.forall`, which xDSL does not have: a loop nest without order and without results."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.subscripts import ssa_name

Bounds = Sequence["int | SSAValue"]


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """Ends the body of `scf.forall`; without shared outputs it holds nothing."""

    name = "scf.forall.in_parallel"
    traits = traits_def(IsTerminator())


@irdl_op_definition
class ForallOp(IRDLOperation):
    """`scf.forall (%i, %j) in (%n, 4) {...}` or `(%i) = (0) to (%n) step (2)`.

    `ForallOp(lower, upper, step, body)`; bounds are ints or index values.
    """

    name = "scf.forall"
    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    step = var_operand_def(IndexType)
    static_lower = prop_def(DenseArrayBase.constr(i64))
    static_upper = prop_def(DenseArrayBase.constr(i64))
    static_step = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, lower: Bounds, upper: Bounds, step: Bounds, body: Region):
        parts = [_split(b) for b in (lower, upper, step)]
        super().__init__(
            operands=[dynamic for _, dynamic in parts],
            properties={
                f"static_{name}": DenseArrayBase.from_list(i64, static)
                for name, (static, _) in zip(("lower", "upper", "step"), parts, strict=True)
            },
            regions=[body],
        )

    def bounds(self) -> list[tuple[Bounds, ...]]:
        """`(lower, upper, step)` for every loop, ints or values."""
        columns = [
            _join(static.get_values(), dynamic)
            for static, dynamic in (
                (self.static_lower, self.lower),
                (self.static_upper, self.upper),
                (self.static_step, self.step),
            )
        ]
        return list(zip(*columns, strict=True))

    def verify_(self) -> None:
        if len(self.body.block.args) != len(self.static_upper):
            raise VerifyException("scf.forall has one index argument for each loop")
        if not len(self.static_lower) == len(self.static_upper) == len(self.static_step):
            raise VerifyException("the bounds of scf.forall differ in number")

    @classmethod
    def parse(cls, parser: Parser) -> ForallOp:
        args = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        if parser.parse_optional_punctuation("="):
            lower = _parse_bounds(parser)
            parser.parse_keyword("to")
            upper = _parse_bounds(parser)
            parser.parse_keyword("step")
            step = _parse_bounds(parser)
        else:
            parser.parse_keyword("in")
            upper = _parse_bounds(parser)
            lower, step = [0] * len(upper), [1] * len(upper)
        if parser.parse_optional_keyword("shared_outs"):
            parser.raise_error("shared_outs of scf.forall is not supported")
        body = parser.parse_region([a.resolve(IndexType()) for a in args])
        if not body.blocks:
            body.add_block(Block(arg_types=[IndexType()] * len(args)))
        last = body.block.last_op
        if not isinstance(last, InParallelOp):
            body.block.add_op(InParallelOp())
        op = cls(lower, upper, step, body)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        names = ", ".join(ssa_name(printer, a) for a in self.body.block.args)
        columns = list(zip(*self.bounds(), strict=True))
        lower, upper, step = (
            ", ".join(str(b) if isinstance(b, int) else ssa_name(printer, b) for b in column)
            for column in columns
        )
        if set(columns[0]) == {0} and set(columns[2]) == {1}:
            printer.print_string(f" ({names}) in ({upper}) ")
        else:
            printer.print_string(f" ({names}) = ({lower}) to ({upper}) step ({step}) ")
        printer.print_region(self.body, print_entry_block_args=False, print_block_terminators=False)
        printer.print_op_attributes(self.attributes)


def _split(bounds: Bounds) -> tuple[list[int], list[SSAValue]]:
    static = [b if isinstance(b, int) else DYNAMIC_INDEX for b in bounds]
    return static, [b for b in bounds if not isinstance(b, int)]


def _join(static: Sequence[int], dynamic: Sequence[SSAValue]) -> list[int | SSAValue]:
    values = iter(dynamic)
    return [next(values, s) if s == DYNAMIC_INDEX else s for s in static]


def _parse_bounds(parser: Parser) -> list[int | SSAValue]:
    def item() -> int | SSAValue:
        operand = parser.parse_optional_unresolved_operand()
        if operand is not None:
            return parser.resolve_operand(operand, IndexType())
        return parser.parse_integer(allow_boolean=False)

    return parser.parse_comma_separated_list(parser.Delimiter.PAREN, item)


SCF_OPS = [ForallOp, InParallelOp]
