"""`arith` operations whose condition or result may be a tensor of i1, which xDSL's own do not allow."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure


class _CompareOp(IRDLOperation):
    """`arith.cmpX predicate, %a, %b : T`: i1, or a tensor of i1 of the operands' shape."""

    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    predicate = prop_def(IntegerAttr)
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    PREDICATES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: str):
        code = IntegerAttr(self.PREDICATES.index(predicate), i64)
        super().__init__(
            operands=[lhs, rhs], result_types=[_truth_type(lhs.type)], properties={"predicate": code}
        )

    @property
    def word(self) -> str:
        """The predicate as it is spelled."""
        return self.PREDICATES[self.predicate.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        predicate = parser.parse_identifier()
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath"):
            parser.parse_attribute()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        operands = [parser.resolve_operand(lhs, kind), parser.resolve_operand(rhs, kind)]
        return cls(*operands, predicate)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.word}, ")
        printer.print_ssa_value(self.lhs)
        printer.print_string(", ")
        printer.print_ssa_value(self.rhs)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


def _truth_type(kind: Attribute) -> Attribute:
    return TensorType(i1, kind.get_shape()) if isinstance(kind, TensorType) else i1


@irdl_op_definition
class CmpiOp(_CompareOp):
    """`arith.cmpi`."""

    name = "arith.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = (
        "eq",
        "ne",
        "slt",
        "sle",
        "sgt",
        "sge",
        "ult",
        "ule",
        "ugt",
        "uge",
    )


@irdl_op_definition
class CmpfOp(_CompareOp):
    """`arith.cmpf`."""

    name = "arith.cmpf"
    PREDICATES: ClassVar[tuple[str, ...]] = (
        "false",
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
        "true",
    )


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`arith.select` whose condition may be a tensor of i1."""

    name = "arith.select"
    cond = operand_def(AnyAttr())
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    @classmethod
    def parse(cls, parser: Parser) -> SelectOp:
        names = []
        for _ in range(3):
            names.append(parser.parse_unresolved_operand())
            parser.parse_optional_punctuation(",")
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        cond: Attribute = IntegerType(1)
        if parser.parse_optional_punctuation(","):
            cond, kind = kind, parser.parse_type()
        operands = [parser.resolve_operand(n, t) for n, t in zip(names, (cond, kind, kind), strict=True)]
        return cls(*operands)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        if isinstance(self.cond.type, TensorType):
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)


class CastOp(IRDLOperation):
    """`arith.X %x : T to U`, elementwise."""

    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, kind: Attribute):
        super().__init__(operands=[source], result_types=[kind])


def _cast(name: str) -> type[CastOp]:
    return irdl_op_definition(
        type(
            f"{name.title()}Op",
            (CastOp,),
            {"name": f"arith.{name}", "__module__": __name__, "__doc__": f"`arith.{name}`."},
        )
    )


CASTS: dict[str, type[CastOp]] = {
    f"arith.{name}": _cast(name)
    for name in (
        "extsi",
        "extui",
        "trunci",
        "sitofp",
        "uitofp",
        "fptosi",
        "fptoui",
        "bitcast",
        "extf",
        "truncf",
        "index_cast",
    )
}

OPS = (CmpiOp, CmpfOp, SelectOp, *CASTS.values())
