"""Ops of `math` and `tensor` with a syntax of their own that xDSL lacks.

`ClampFOp(value, low, high)`, `SinCosOp(value)` with two results, and `GatherOp` and `ScatterOp`, which take
whole slices of a tensor from, or put them to, the coordinates along some axes that a tensor of indices holds.
"""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseArrayBase,
    FunctionType,
    IndexType,
    IntegerType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.subscripts import ssa_name


def _floats(op: IRDLOperation) -> None:
    kinds = {v.type for v in (*op.operands, *op.results)}
    kind = op.operands[0].type
    if len(kinds) > 1:
        raise VerifyException(f"takes and gives one type, not {', '.join(sorted(map(str, kinds)))}")
    if not isinstance(kind.element_type if isinstance(kind, TensorType) else kind, AnyFloat):
        raise VerifyException(f"takes floats, not {kind}")


def _end(parser: Parser) -> tuple[dict[str, Attribute], Attribute]:
    """`fastmath<...>`, which changes no value here, attributes and the type."""
    if parser.parse_optional_keyword("fastmath"):
        parser.parse_punctuation("<")
        parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
        parser.parse_punctuation(">")
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    return attributes, parser.parse_type()


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """`math.clampf %x to [%low, %high]`: maximum(minimum(x, high), low), NaN where any of them is."""

    name = "math.clampf"
    value = operand_def()
    low = operand_def()
    high = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _floats(self)

    @classmethod
    def parse(cls, parser: Parser) -> ClampFOp:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        parser.parse_punctuation("[")
        low = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        high = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
        attributes, type_ = _end(parser)
        operands = [parser.resolve_operand(v, type_) for v in (value, low, high)]
        return cls.build(operands=operands, result_types=[type_], attributes=attributes)

    def print(self, printer: Printer) -> None:
        value, low, high = (ssa_name(printer, v) for v in self.operands)
        printer.print_string(f" {value} to [{low}, {high}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


@irdl_op_definition
class SinCosOp(IRDLOperation):
    """`%sin, %cos = math.sincos %x`."""

    name = "math.sincos"
    value = operand_def()
    sin = result_def()
    cos = result_def()
    traits = traits_def(Pure())

    def verify_(self) -> None:
        _floats(self)

    @classmethod
    def parse(cls, parser: Parser) -> SinCosOp:
        value = parser.parse_unresolved_operand()
        attributes, type_ = _end(parser)
        operand = parser.resolve_operand(value, type_)
        return cls.build(operands=[operand], result_types=[type_, type_], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.value)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)


def _verify_slices(
    whole: TensorType, slices: TensorType, indices: Attribute, dims: Sequence[int], what: str
) -> None:
    """`slices` are those of `whole` at the coordinates, with or without the axes in `dims`."""
    assert isinstance(indices, TensorType)
    if not isinstance(indices.element_type, IntegerType | IndexType):
        raise VerifyException(f"its indices must be integers, not {indices}")
    extents, *lead = whole.get_shape(), *indices.get_shape()
    if not dims or any(b <= a for a, b in pairwise(dims)):
        raise VerifyException(f"{what} must be axes in order, not {list(dims)}")
    if wrong := [d for d in dims if not 0 <= d < len(extents)]:
        raise VerifyException(f"{what} names axis {wrong[0]} of {whole}")
    if not lead or lead[-1] != len(dims):
        raise VerifyException(
            f"the last axis of {indices} must have {len(dims)} elements, one for each of {what}"
        )
    if slices.element_type != whole.element_type:
        raise VerifyException(f"{slices} and {whole} differ in element type")
    kept = [*lead[:-1], *(1 if a in dims else n for a, n in enumerate(extents))]
    short = [*lead[:-1], *(n for a, n in enumerate(extents) if a not in dims)]
    if list(slices.get_shape()) not in (kept, short):
        wanted = " or ".join(
            "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in s) for s in (kept, short)
        )
        raise VerifyException(f"the slices must have shape {wanted}, not {slices}")


def _parse_dims(parser: Parser, keyword: str) -> tuple[DenseArrayBase, UnitAttr | None]:
    parser.parse_keyword(keyword)
    parser.parse_punctuation("(")
    dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    parser.parse_punctuation(")")
    unique = UnitAttr() if parser.parse_optional_keyword("unique") else None
    return DenseArrayBase.from_list(i64, dims), unique


def _signature(parser: Parser, count: int) -> tuple[dict[str, Attribute], FunctionType]:
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    place = parser.pos
    type_ = parser.parse_type()
    if not isinstance(type_, FunctionType) or len(type_.inputs) != count or len(type_.outputs) != 1:
        parser.raise_error(f"the types of {count} operands and of one result are needed here", place)
    return attributes, type_


def _print_end(printer: Printer, op: GatherOp | ScatterOp, keyword: str, dims: Sequence[int]) -> None:
    printer.print_string(f" {keyword}([{', '.join(str(d) for d in dims)}])")
    printer.print_string(" unique" if op.unique is not None else "")
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(FunctionType.from_lists(op.operand_types, op.result_types))


@irdl_op_definition
class GatherOp(IRDLOperation):
    """`tensor.gather %source[%indices] gather_dims([1])`: for every row of indices the slice there."""

    name = "tensor.gather"
    source = operand_def(TensorType)
    indices = operand_def(TensorType)
    gather_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        whole, slices = self.source.type, self.result.type
        assert isinstance(whole, TensorType)
        assert isinstance(slices, TensorType)
        dims = self.gather_dims.get_values()
        _verify_slices(whole, slices, self.indices.type, dims, "gather_dims")

    @classmethod
    def parse(cls, parser: Parser) -> GatherOp:
        source = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        indices = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
        dims, unique = _parse_dims(parser, "gather_dims")
        attributes, type_ = _signature(parser, 2)
        return cls.build(
            operands=[
                parser.resolve_operand(*each) for each in zip((source, indices), type_.inputs, strict=True)
            ],
            result_types=list(type_.outputs),
            properties={"gather_dims": dims, "unique": unique},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.source)}[{ssa_name(printer, self.indices)}]")
        _print_end(printer, self, "gather_dims", self.gather_dims.get_values())


@irdl_op_definition
class ScatterOp(IRDLOperation):
    """`tensor.scatter %source into %dest[%indices] scatter_dims([1]) unique`: `dest` with the slices of
    `source` at the indices, which must differ.
    """

    name = "tensor.scatter"
    source = operand_def(TensorType)
    dest = operand_def(TensorType)
    indices = operand_def(TensorType)
    scatter_dims = prop_def(DenseArrayBase.constr(i64))
    unique = opt_prop_def(UnitAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    def verify_(self) -> None:
        whole, slices = self.dest.type, self.source.type
        assert isinstance(whole, TensorType)
        assert isinstance(slices, TensorType)
        if self.unique is None:
            raise VerifyException("its coordinates must differ; say so: unique")
        if self.result.type != whole:
            raise VerifyException(f"gives {whole}, not {self.result.type}")
        dims = self.scatter_dims.get_values()
        _verify_slices(whole, slices, self.indices.type, dims, "scatter_dims")

    @classmethod
    def parse(cls, parser: Parser) -> ScatterOp:
        source = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        dest = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        indices = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
        dims, unique = _parse_dims(parser, "scatter_dims")
        attributes, type_ = _signature(parser, 3)
        values = (source, dest, indices)
        return cls.build(
            operands=[parser.resolve_operand(*each) for each in zip(values, type_.inputs, strict=True)],
            result_types=list(type_.outputs),
            properties={"scatter_dims": dims, "unique": unique},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        source, dest, indices = (ssa_name(printer, v) for v in self.operands)
        printer.print_string(f" {source} into {dest}[{indices}]")
        _print_end(printer, self, "scatter_dims", self.scatter_dims.get_values())


MATH_OPS = [ClampFOp, SinCosOp]
TENSOR_OPS = [GatherOp, ScatterOp]
