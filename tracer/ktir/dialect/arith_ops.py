"""`arith` operations whose condition or result may be a tensor of i1, which xDSL's own do not allow."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from types import UnionType
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, TensorType, i1, i64
from xdsl.ir import Attribute, SSAValue
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
from xdsl.utils.exceptions import VerifyException


class _CompareOp(IRDLOperation):
    """`arith.cmpX predicate, %a, %b : T`: i1, or a tensor of i1 of the operands' shape."""

    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    predicate = prop_def(IntegerAttr)
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    PREDICATES: ClassVar[tuple[str, ...]] = ()
    KINDS: ClassVar[tuple[type | UnionType, ...]] = ()
    OTHER: ClassVar[str] = ""

    def __init__(self, lhs: SSAValue, rhs: SSAValue, predicate: str):
        code = IntegerAttr(self.PREDICATES.index(predicate), i64)
        super().__init__(
            operands=[lhs, rhs], result_types=[_truth_type(lhs.type)], properties={"predicate": code}
        )

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"compares {self.lhs.type} with {self.rhs.type}")
        base = self.lhs.type.element_type if isinstance(self.lhs.type, TensorType) else self.lhs.type
        if not isinstance(base, self.KINDS):
            raise VerifyException(f"does not compare {self.lhs.type}; did you mean {self.OTHER}?")
        if self.result.type != _truth_type(self.lhs.type):
            raise VerifyException(f"the result of comparing {self.lhs.type} is {_truth_type(self.lhs.type)}")
        if not 0 <= self.predicate.value.data < len(self.PREDICATES):
            raise VerifyException(f"unknown predicate {self.predicate.value.data}")

    @property
    def word(self) -> str:
        """The predicate as it is spelled."""
        return self.PREDICATES[self.predicate.value.data]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        place = parser.pos
        predicate = parser.parse_identifier()
        if predicate not in cls.PREDICATES:
            parser.raise_error(f"unknown predicate {predicate}", place, parser.pos)
        parser.parse_punctuation(",")
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        if parser.parse_optional_keyword("fastmath"):
            parser.parse_punctuation("<")
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_identifier)
            parser.parse_punctuation(">")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        code = IntegerAttr(cls.PREDICATES.index(predicate), i64)
        return cls.build(
            operands=[parser.resolve_operand(lhs, kind), parser.resolve_operand(rhs, kind)],
            result_types=[_truth_type(kind)],
            properties={"predicate": code},
            attributes=attributes,
        )

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
    KINDS: ClassVar[tuple[type | UnionType, ...]] = (IntegerType, IndexType)
    OTHER: ClassVar[str] = "arith.cmpf"
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
    KINDS: ClassVar[tuple[type | UnionType, ...]] = (AnyFloat,)
    OTHER: ClassVar[str] = "arith.cmpi"
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

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException("both values and the result of arith.select have one type")
        condition = self.cond.type
        if condition != i1 and condition != _truth_type(self.result.type):
            raise VerifyException(f"a condition {condition} cannot select {self.result.type}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        names = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            names.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        cond: Attribute = IntegerType(1)
        if parser.parse_optional_punctuation(","):
            cond, kind = kind, parser.parse_type()
        operands = [parser.resolve_operand(n, t) for n, t in zip(names, (cond, kind, kind), strict=True)]
        return cls.build(operands=operands, result_types=[kind], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(" : ")
        if isinstance(self.cond.type, TensorType):
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)


def _width(type_: Attribute) -> int:
    if isinstance(type_, IntegerType):
        return int(type_.width.data)
    return int(type_.bitwidth) if isinstance(type_, AnyFloat) else 0


# Type classes of source and result, and how the width of the result compares with the source's.
_INTEGER, _FLOAT, _INDEX = (IntegerType,), (AnyFloat,), (IntegerType, IndexType)
_HELD = (IntegerType, AnyFloat)
_CAST_RULES: dict[str, tuple[tuple[Any, Any], str]] = {
    "extsi": ((_INTEGER, _INTEGER), "wider"),
    "extui": ((_INTEGER, _INTEGER), "wider"),
    "trunci": ((_INTEGER, _INTEGER), "narrower"),
    "sitofp": ((_INTEGER, _FLOAT), ""),
    "uitofp": ((_INTEGER, _FLOAT), ""),
    "fptosi": ((_FLOAT, _INTEGER), ""),
    "fptoui": ((_FLOAT, _INTEGER), ""),
    "bitcast": ((_HELD, _HELD), "equal"),
    "extf": ((_FLOAT, _FLOAT), "wider"),
    "truncf": ((_FLOAT, _FLOAT), "narrower"),
    "index_cast": ((_INDEX, _INDEX), ""),
    "index_castui": ((_INDEX, _INDEX), ""),
}


class CastOp(IRDLOperation):
    """`arith.X %x : T to U`, elementwise."""

    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, kind: Attribute):
        super().__init__(operands=[source], result_types=[kind])

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        shapes = [t.get_shape() if isinstance(t, TensorType) else None for t in (source, result)]
        if shapes[0] != shapes[1]:
            raise VerifyException(f"{source} and {result} differ in shape")
        (takes, gives), width = _CAST_RULES[self.name.removeprefix("arith.")]
        bases = [t.element_type if isinstance(t, TensorType) else t for t in (source, result)]
        for type_, base, kind, side in ((source, bases[0], takes, "from"), (result, bases[1], gives, "to")):
            if not isinstance(base, kind):
                raise VerifyException(f"cannot cast {side} {type_}")
        if takes is _INDEX and sum(isinstance(base, IndexType) for base in bases) != 1:
            raise VerifyException(f"{source} to {result}: one of them must be index")
        grown = _width(bases[1]) - _width(bases[0])
        if width == "equal" and grown:
            raise VerifyException(f"{source} and {result} differ in width")
        if (width == "wider" and grown <= 0) or (width == "narrower" and grown >= 0):
            grows = width == "wider"
            hint = "widens; did you mean arith.trunc" if grows else "narrows; did you mean arith.ext"
            letter = "f" if self.name.endswith("f") else ("i" if grows else "si")
            raise VerifyException(f"{source} to {result}: the cast {hint}{letter}?")


def _cast(name: str) -> type[CastOp]:
    return irdl_op_definition(
        type(
            f"{name.title()}Op",
            (CastOp,),
            {"name": f"arith.{name}", "__module__": __name__, "__doc__": f"`arith.{name}`."},
        )
    )


CASTS: dict[str, type[CastOp]] = {f"arith.{name}": _cast(name) for name in _CAST_RULES}
IndexCastUIOp: Any = CASTS["arith.index_castui"]

OPS = (CmpiOp, CmpfOp, SelectOp, *CASTS.values())
