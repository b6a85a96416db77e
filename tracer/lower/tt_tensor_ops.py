"""Operations of the `tt` dialect on tensors, in the syntax that Triton prints."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, Pure


class _CastOp(IRDLOperation):
    """One operand, one result, `%x {attributes} : T -> U`; words after the operand are attributes."""

    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    WORDS: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the form after the operation\'s name."""
        source = parser.parse_unresolved_operand()
        attributes: dict[str, Attribute] = {}
        while True:
            parser.parse_optional_punctuation(",")
            word = next((w for w in cls.WORDS if parser.parse_optional_keyword(w)), None)
            if word is None:
                break
            value = parser.parse_identifier() if parser.parse_optional_punctuation("=") else ""
            attributes[word] = StringAttr(value)
        attributes |= parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.build(
            operands=[parser.resolve_operand(source, kind)], result_types=[result], attributes=attributes
        )


@irdl_op_definition
class SplatOp(_CastOp):
    """`tt.splat`."""

    name = "tt.splat"


@irdl_op_definition
class ExpandDimsOp(_CastOp):
    """`tt.expand_dims {axis}`."""

    name = "tt.expand_dims"


@irdl_op_definition
class BroadcastOp(_CastOp):
    """`tt.broadcast`: unit dims grow; rank stays."""

    name = "tt.broadcast"


@irdl_op_definition
class ReshapeOp(_CastOp):
    """`tt.reshape`."""

    name = "tt.reshape"
    WORDS: ClassVar[tuple[str, ...]] = ("allow_reorder", "efficient_layout")


@irdl_op_definition
class TransOp(_CastOp):
    """`tt.trans {order}`: result dim i is source dim order[i]."""

    name = "tt.trans"


@irdl_op_definition
class BitcastOp(_CastOp):
    """`tt.bitcast`."""

    name = "tt.bitcast"


@irdl_op_definition
class FpToFpOp(_CastOp):
    """`tt.fp_to_fp`."""

    name = "tt.fp_to_fp"
    WORDS: ClassVar[tuple[str, ...]] = ("rounding",)


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    """`tt.unsplat`: the only element of a tensor."""

    name = "tt.unsplat"
    source = operand_def(TensorType)
    result = result_def(AnyAttr())
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> UnsplatOp:
        """Read the form after the operation\'s name."""
        source = parser.parse_unresolved_operand()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        assert isinstance(kind, TensorType)
        return cls.build(operands=[parser.resolve_operand(source, kind)], result_types=[kind.element_type])


class _SameTypeOp(IRDLOperation):
    """`%a, %b, word = value : T`: operands and result have one type."""

    sources = var_operand_def()
    result = result_def(AnyAttr())
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the form after the operation\'s name."""
        operands = [parser.parse_unresolved_operand()]
        attributes: dict[str, Attribute] = {}
        while parser.parse_optional_punctuation(","):
            operand = parser.parse_optional_unresolved_operand()
            if operand is not None:
                operands.append(operand)
                continue
            word = parser.parse_identifier()
            parser.parse_punctuation("=")
            attributes[word] = StringAttr(parser.parse_identifier())
        attributes |= parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        values = [parser.resolve_operand(o, kind) for o in operands]
        return cls.build(operands=[values], result_types=[kind], attributes=attributes)


@irdl_op_definition
class ClampFOp(_SameTypeOp):
    """`tt.clampf %x, %min, %max, propagateNan = none|all`."""

    name = "tt.clampf"


@irdl_op_definition
class PreciseDivFOp(_SameTypeOp):
    """`tt.precise_divf`."""

    name = "tt.precise_divf"


@irdl_op_definition
class PreciseSqrtOp(_SameTypeOp):
    """`tt.precise_sqrt`."""

    name = "tt.precise_sqrt"


@irdl_op_definition
class MulhiUIOp(_SameTypeOp):
    """`tt.mulhiui`: upper half of the unsigned product."""

    name = "tt.mulhiui"


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """`tt.make_range {start, end}`."""

    name = "tt.make_range"
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class DotOp(IRDLOperation):
    """`tt.dot %a, %b, %c : A * B -> C`: c + a b, rank 2 or 3."""

    name = "tt.dot"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> DotOp:
        """Read the form after the operation\'s name."""
        names = []
        for _ in range(3):
            names.append(parser.parse_unresolved_operand())
            parser.parse_optional_punctuation(",")
        if parser.parse_optional_keyword("inputPrecision"):
            parser.parse_punctuation("=")
            parser.parse_identifier()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        a = parser.parse_type()
        parser.parse_punctuation("*")
        b = parser.parse_type()
        parser.parse_punctuation("->")
        c = parser.parse_type()
        operands: list[SSAValue] = [
            parser.resolve_operand(n, t) for n, t in zip(names, (a, b, c), strict=True)
        ]
        return cls.build(operands=operands, result_types=[c])


@irdl_op_definition
class JoinOp(IRDLOperation):
    """`tt.join`: two tensors side by side in a new last dim of extent 2."""

    name = "tt.join"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> JoinOp:
        """Read the form after the operation\'s name."""
        lhs = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        rhs = parser.parse_unresolved_operand()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operands = [parser.resolve_operand(lhs, kind), parser.resolve_operand(rhs, kind)]
        return cls.build(operands=operands, result_types=[result])


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """`tt.extern_elementwise {symbol}`: a device library function, elementwise."""

    name = "tt.extern_elementwise"
    sources = var_operand_def()
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$sources attr-dict `:` functional-type($sources, $result)"


class _CombinerReturnOp(IRDLOperation):
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$arguments attr-dict `:` type($arguments)"


@irdl_op_definition
class ReduceReturnOp(_CombinerReturnOp):
    """Terminator of a reduction's combiner."""

    name = "tt.reduce.return"


@irdl_op_definition
class ScanReturnOp(_CombinerReturnOp):
    """Terminator of a scan's combiner."""

    name = "tt.scan.return"


class _AxisOp(IRDLOperation):
    sources = var_operand_def(TensorType)
    res = var_result_def()
    axis = prop_def(Attribute)
    combiner = region_def("single_block")
    traits = traits_def(Pure())


@irdl_op_definition
class ReduceOp(_AxisOp):
    """`tt.reduce`: each result drops `axis` of its source (a scalar if nothing is left)."""

    name = "tt.reduce"


@irdl_op_definition
class ScanOp(_AxisOp):
    """`tt.scan`: inclusive prefix combination along `axis`."""

    name = "tt.scan"
    reverse = prop_def(Attribute)
