"""Ops of `math` and `tensor` on single values that xDSL lacks, and `tensor.pad` with MLIR's own rules.

`ErfcOp(x)`, the tests `IsFiniteOp`, `IsInfOp`, `IsNaNOp` and `IsNormalOp` of a float (results are i1),
`BitcastOp(tensor, type)` for elements of one width.
"""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from typing import ClassVar

from xdsl.dialects import math, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    FixedBitwidthType,
    IndexType,
    IntegerType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure, SameOperandsAndResultType, SingleBlockImplicitTerminator
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.subscripts import ssa_name


@irdl_op_definition
class ErfcOp(math.FloatingPointLikeUnaryMathOperation):
    """`math.erfc`: one minus the error function, without the loss of digits."""

    name = "math.erfc"
    traits = traits_def(Pure(), SameOperandsAndResultType())


class FloatTestOp(IRDLOperation):
    """A question about each element of a float; the answers are i1."""

    operand = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation):
        value = SSAValue.get(operand)
        super().__init__(operands=[value], result_types=[_answers(value.type)])

    def verify_(self) -> None:
        type_ = self.operand.type
        if not isinstance(type_.element_type if isinstance(type_, TensorType) else type_, AnyFloat):
            raise VerifyException(f"takes floats, not {type_}")
        if self.result.type != _answers(type_):
            raise VerifyException(f"gives {_answers(type_)} for {type_}, not {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> FloatTestOp:
        operand = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath"):
            parser.parse_punctuation("<")
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
            parser.parse_punctuation(">")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls.build(
            operands=[parser.resolve_operand(operand, type_)],
            result_types=[_answers(type_)],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.operand)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)


def _answers(type_: Attribute) -> Attribute:
    answer = IntegerType(1)
    return TensorType(answer, type_.get_shape()) if isinstance(type_, TensorType) else answer


@irdl_op_definition
class IsFiniteOp(FloatTestOp):
    """`math.isfinite`: neither infinite nor NaN."""

    name = "math.isfinite"


@irdl_op_definition
class IsInfOp(FloatTestOp):
    """`math.isinf`: infinite, of either sign."""

    name = "math.isinf"


@irdl_op_definition
class IsNaNOp(FloatTestOp):
    """`math.isnan`."""

    name = "math.isnan"


@irdl_op_definition
class IsNormalOp(FloatTestOp):
    """`math.isnormal`: neither zero, subnormal, infinite nor NaN."""

    name = "math.isnormal"


@irdl_op_definition
class BitcastOp(IRDLOperation):
    """`tensor.bitcast`: the same bits as elements of another type of the same width."""

    name = "tensor.bitcast"
    source = operand_def(TensorType)
    dest = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format: ClassVar[str] = "$source attr-dict `:` type($source) `to` type($dest)"

    def __init__(self, source: SSAValue | Operation, dest: TensorType):
        super().__init__(operands=[source], result_types=[dest])

    def verify_(self) -> None:
        source, dest = self.source.type, self.dest.type
        assert isinstance(source, TensorType)
        assert isinstance(dest, TensorType)
        if source.get_shape() != dest.get_shape():
            raise VerifyException(f"{source} and {dest} differ in shape")
        held, wanted = source.element_type, dest.element_type
        if not isinstance(held, FixedBitwidthType) or not isinstance(wanted, FixedBitwidthType):
            raise VerifyException(f"{source} or {dest} has elements of no fixed width")
        if held.bitwidth != wanted.bitwidth:
            raise VerifyException(f"elements of {source} and {dest} differ in width")


@irdl_op_definition
class PadOp(IRDLOperation):
    """`tensor.pad`: a tensor in the midst of elements that a region yields for their indices.

    xDSL's own wants as many paddings that are values as the result has dynamic extents; MLIR compares
    extents.
    """

    name = "tensor.pad"
    source = operand_def(TensorType)
    low = var_operand_def(IndexType)
    high = var_operand_def(IndexType)
    static_low = prop_def(DenseArrayBase.constr(i64))
    static_high = prop_def(DenseArrayBase.constr(i64))
    nofold = opt_prop_def(UnitAttr)
    region = region_def("single_block")
    result = result_def(TensorType)
    traits = traits_def(Pure(), SingleBlockImplicitTerminator(tensor.YieldOp))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    custom_directives = (DynamicIndexList,)
    assembly_format: ClassVar[str] = (
        "$source (`nofold` $nofold^)? `low` `` custom<DynamicIndexList>($low, $static_low) "
        "`high` `` custom<DynamicIndexList>($high, $static_high) $region attr-dict "
        "`:` type($source) `to` type($result)"
    )

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        assert isinstance(source, TensorType)
        assert isinstance(result, TensorType)
        if source.element_type != result.element_type:
            raise VerifyException(f"{source} and {result} differ in element type")
        extents, wanted = source.get_shape(), result.get_shape()
        sides = [(self.static_low, self.low, "low"), (self.static_high, self.high, "high")]
        known: list[tuple[int, ...]] = []
        for static, values, name in sides:
            known.append(tuple(int(n) for n in static.get_values()))
            if len(known[-1]) != len(extents):
                raise VerifyException(f"{len(known[-1])} {name} paddings of {source}")
            if known[-1].count(DYNAMIC_INDEX) != len(values):
                raise VerifyException(f"{len(values)} values for the {name} paddings {list(known[-1])}")
            if negative := [n for n in known[-1] if n < 0 and n != DYNAMIC_INDEX]:
                raise VerifyException(f"the {name} padding {negative[0]} is negative")
        if len(wanted) != len(extents):
            raise VerifyException(f"{source} and {result} differ in rank")
        for axis, (low, extent, high, total) in enumerate(
            zip(known[0], extents, known[1], wanted, strict=True)
        ):
            if DYNAMIC_INDEX not in (low, extent, high, total) and low + extent + high != total:
                text = f"{low} + {extent} + {high} elements of axis {axis}, where {result} has {total}"
                raise VerifyException(text)


MATH_OPS = [ErfcOp, IsFiniteOp, IsInfOp, IsNaNOp, IsNormalOp]
TENSOR_OPS = [BitcastOp, PadOp]
