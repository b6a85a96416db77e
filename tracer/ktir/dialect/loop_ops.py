"""Loop nests without order: `scf.forall`, which xDSL does not have, and the text of `scf.parallel`."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, TensorType, i64
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_region_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.extra_ops import parse_assignments, parse_result_types
from tracer.ktir.dialect.subscripts import ssa_name

Bounds = Sequence["int | SSAValue"]


@irdl_op_definition
class ParallelInsertSliceOp(IRDLOperation):
    """`tensor.parallel_insert_slice %tile into %out[%i] [4] [1] : T into U`, in `scf.forall.in_parallel`:
    what one iteration contributes to a shared output.
    """

    name = "tensor.parallel_insert_slice"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_offsets = prop_def(DenseArrayBase.constr(i64))
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$source `into` $dest ``"
        "custom<DynamicIndexList>($offsets, $static_offsets)"
        "custom<DynamicIndexList>($sizes, $static_sizes)"
        "custom<DynamicIndexList>($strides, $static_strides)"
        "attr-dict `:` type($source) `into` type($dest)"
    )
    custom_directives = (DynamicIndexList,)

    def verify_(self) -> None:
        loop = self.parent_op()
        loop = loop.parent_op() if isinstance(loop, InParallelOp) else None
        if not isinstance(loop, ForallOp) or self.dest not in loop.shared:
            raise VerifyException("inserts into a shared output of the scf.forall around it only")
        assert isinstance(self.dest.type, TensorType)
        rank = len(self.dest.type.get_shape())
        if not rank == len(self.static_offsets) == len(self.static_sizes) == len(self.static_strides):
            raise VerifyException(f"a slice of {self.dest.type} has {rank} offsets, sizes and strides")


@irdl_op_definition
class InParallelOp(IRDLOperation):
    """Ends the body of `scf.forall`; holds the insertions into its shared outputs, where it has any."""

    name = "scf.forall.in_parallel"
    body = opt_region_def("single_block")
    traits = traits_def(IsTerminator(), NoTerminator())

    def __init__(self, body: Region | None = None):
        super().__init__(regions=[body])

    def verify_(self) -> None:
        for op in self.insertions:
            if not isinstance(op, ParallelInsertSliceOp):
                raise VerifyException(
                    f"scf.forall.in_parallel holds tensor.parallel_insert_slice, not {op.name}"
                )

    @property
    def insertions(self) -> list[Operation]:
        """The operations inside."""
        return list(self.body.block.ops) if self.body is not None and self.body.blocks else []

    @classmethod
    def parse(cls, parser: Parser) -> InParallelOp:
        body = parser.parse_region()
        return cls(body if body.blocks else None)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.body if self.body is not None else Region(Block()))


@irdl_op_definition
class ForallOp(IRDLOperation):
    """`scf.forall (%i, %j) in (%n, 4) {...}` or `(%i) = (0) to (%n) step (2)`.

    `ForallOp(lower, upper, step, body, outputs=())`; bounds are ints or index values. The body has one index
    argument for each loop, then one tensor for each of `outputs`, which it reads as they were before the
    loop; what `scf.forall.in_parallel` inserts makes the results.
    """

    name = "scf.forall"
    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    step = var_operand_def(IndexType)
    outputs = var_operand_def(TensorType)
    res = var_result_def(TensorType)
    static_lower = prop_def(DenseArrayBase.constr(i64))
    static_upper = prop_def(DenseArrayBase.constr(i64))
    static_step = prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, lower: Bounds, upper: Bounds, step: Bounds, body: Region, outputs: Sequence[SSAValue] = ()
    ):
        parts = [_split(b) for b in (lower, upper, step)]
        super().__init__(
            operands=[*(dynamic for _, dynamic in parts), outputs],
            result_types=[[o.type for o in outputs]],
            properties={
                f"static_{name}": DenseArrayBase.from_list(i64, static)
                for name, (static, _) in zip(("lower", "upper", "step"), parts, strict=True)
            },
            regions=[body],
        )

    @property
    def indices(self) -> Sequence[SSAValue]:
        """The index arguments of the body."""
        return self.body.block.args[: len(self.static_upper)]

    @property
    def shared(self) -> Sequence[SSAValue]:
        """The arguments of the body that stand for `outputs`."""
        return self.body.block.args[len(self.static_upper) :]

    def bounds(self) -> list[tuple[int | SSAValue, ...]]:
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
        types = [*([IndexType()] * len(self.static_upper)), *(o.type for o in self.outputs)]
        if [a.type for a in self.body.block.args] != types:
            raise VerifyException("scf.forall has one index argument for each loop, then its shared outputs")
        if [r.type for r in self.res] != [o.type for o in self.outputs]:
            raise VerifyException("the results of scf.forall have the types of its shared outputs")
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
        place = parser.pos
        names, inits = parse_assignments(parser) if parser.parse_optional_keyword("shared_outs") else ([], [])
        types = parse_result_types(parser)
        if len(types) != len(inits):
            parser.raise_error(f"{len(inits)} shared_outs but {len(types)} result types", place, parser.pos)
        outputs = list(parser.resolve_operands(inits, types, place))
        shared = [n.resolve(t) for n, t in zip(names, types, strict=True)]
        body = parser.parse_region([*(a.resolve(IndexType()) for a in args), *shared])
        if not body.blocks:
            body.add_block(Block(arg_types=[IndexType()] * len(args)))
        last = body.block.last_op
        if not isinstance(last, InParallelOp):
            body.block.add_op(InParallelOp())
        op = cls(lower, upper, step, body, outputs)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        names = ", ".join(ssa_name(printer, a) for a in self.indices)
        columns = [[bounds[k] for bounds in self.bounds()] for k in range(3)]
        lower, upper, step = (
            ", ".join(str(b) if isinstance(b, int) else ssa_name(printer, b) for b in column)
            for column in columns
        )
        if set(columns[0]) <= {0} and set(columns[2]) <= {1}:
            printer.print_string(f" ({names}) in ({upper}) ")
        else:
            printer.print_string(f" ({names}) = ({lower}) to ({upper}) step ({step}) ")
        if self.outputs:
            pairs = zip(self.shared, self.outputs, strict=True)
            outs = ", ".join(f"{ssa_name(printer, a)} = {ssa_name(printer, o)}" for a, o in pairs)
            printer.print_string(f"shared_outs({outs}) -> (")
            printer.print_list(self.res.types, printer.print_attribute)
            printer.print_string(") ")
        printer.print_region(
            self.body, print_entry_block_args=False, print_block_terminators=bool(self.outputs)
        )
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


class ParallelOp(scf.ParallelOp):
    """`scf.parallel (%i) = (%a) to (%b) step (%c) init (%x) -> f32 {... scf.reduce(%v : f32) {...} }`."""

    name = "scf.parallel"

    @classmethod
    def parse(cls, parser: Parser) -> ParallelOp:
        args = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        columns = []
        for word in ("=", "to", "step"):
            if word == "=":
                parser.parse_punctuation("=")
            else:
                parser.parse_keyword(word)
            columns.append(
                parser.parse_comma_separated_list(
                    parser.Delimiter.PAREN, lambda: parser.parse_operand(IndexType())
                )
            )
        inits, place = [], parser.pos
        if parser.parse_optional_keyword("init"):
            inits = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        types = parse_result_types(parser)
        if len(types) != len(inits):
            parser.raise_error(f"{len(inits)} init values but {len(types)} result types", place, parser.pos)
        values = parser.resolve_operands(inits, types, place)
        body = parser.parse_region([a.resolve(IndexType()) for a in args])
        if not body.blocks:
            body.add_block(Block(arg_types=[IndexType()] * len(args)))
        if not isinstance(body.block.last_op, scf.ReduceOp):
            body.block.add_op(scf.ReduceOp())
        op = cls(columns[0], columns[1], columns[2], body, values)
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def print(self, printer: Printer) -> None:
        def names(values: Sequence[SSAValue]) -> str:
            return f"({', '.join(ssa_name(printer, v) for v in values)})"

        printer.print_string(f" {names(self.body.block.args)} = {names(self.lowerBound)}")
        printer.print_string(f" to {names(self.upperBound)} step {names(self.step)} ")
        if self.initVals:
            printer.print_string(f"init {names(self.initVals)} -> (")
            printer.print_list(self.res.types, printer.print_attribute)
            printer.print_string(") ")
        printer.print_region(
            self.body, print_entry_block_args=False, print_block_terminators=bool(self.initVals)
        )
        printer.print_op_attributes(self.attributes)


SCF_OPS = [ForallOp, InParallelOp, ParallelOp]
