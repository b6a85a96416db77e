"""Operations of the `tt` dialect on functions, programs and memory, in the syntax that Triton prints."""

from __future__ import annotations

from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure

from tracer.lower.tt_types import DescriptorType, PointerType


@irdl_op_definition
class FuncOp(IRDLOperation):
    """`tt.func`."""

    name = "tt.func"
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        """Read the form after the operation\'s name."""
        parser.parse_optional_visibility_keyword()
        name = parser.parse_symbol_name().data
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: cls._argument(parser))
        if parser.parse_optional_punctuation("->"):
            parser.raise_error("a kernel returns nothing")
        parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(arguments)
        return cls.build(
            properties={
                "sym_name": StringAttr(name),
                "function_type": FunctionType.from_lists([a.type for a in arguments], []),
            },
            regions=[region],
        )

    @staticmethod
    def _argument(parser: Parser) -> Parser.Argument:
        argument = parser.parse_argument()
        parser.parse_optional_attr_dict()
        parser.parse_optional_location()
        return argument


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`tt.return`."""

    name = "tt.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"


@irdl_op_definition
class MakeTensorDescriptorOp(IRDLOperation):
    """`tt.make_tensor_descriptor`: a view; extents and strides in elements."""

    name = "tt.make_tensor_descriptor"
    base = operand_def(PointerType)
    sizes = var_operand_def(IntegerType)
    strides = var_operand_def(IntegerType)
    descriptor = result_def(DescriptorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> MakeTensorDescriptorOp:
        """Read the form after the operation\'s name."""
        base = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        sizes = _scalars(parser, i32)
        parser.parse_punctuation(",")
        strides = _scalars(parser, i64)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        with parser.in_angle_brackets():
            pointer = parser.resolve_operand(base, PointerType(parser.parse_type()))
        parser.parse_punctuation(",")
        with parser.in_angle_brackets():
            block = parser.parse_type()
            if parser.parse_optional_punctuation(","):
                parser.parse_attribute()
        return cls.build(
            operands=[pointer, sizes, strides], result_types=[DescriptorType(block)], attributes=attributes
        )


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """`tt.descriptor_load`: elements outside the view read as zero. Leading unit dims may be dropped."""

    name = "tt.descriptor_load"
    descriptor = operand_def(DescriptorType)
    indices = var_operand_def()
    result = result_def(TensorType)
    lanes = opt_attr_def(ArrayAttr)

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:
        """Read the form after the operation\'s name."""
        descriptor = parser.parse_unresolved_operand()
        indices = _scalars(parser, i32)
        _skip_hints(parser)
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.build(operands=[parser.resolve_operand(descriptor, kind), indices], result_types=[result])


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """`tt.descriptor_store`: elements outside the view are dropped."""

    name = "tt.descriptor_store"
    descriptor = operand_def(DescriptorType)
    source = operand_def(TensorType)
    indices = var_operand_def()
    lanes = opt_attr_def(ArrayAttr)

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorStoreOp:
        """Read the form after the operation\'s name."""
        descriptor = parser.parse_unresolved_operand()
        indices = _scalars(parser, i32)
        parser.parse_punctuation(",")
        source = parser.parse_unresolved_operand()
        _skip_hints(parser)
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        parser.parse_punctuation(",")
        tensor = parser.parse_type()
        values = [parser.resolve_operand(descriptor, kind), parser.resolve_operand(source, tensor)]
        return cls.build(operands=[*values, indices])


def _scalars(parser: Parser, kind: Attribute) -> list[SSAValue]:
    """`[%a, %b]`: Triton gives extents and offsets as i32, strides as i64."""
    names = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)
    return [parser.resolve_operand(name, kind) for name in names]


def _skip_hints(parser: Parser) -> None:
    """Cache hints (`cacheModifier = ca`, `evictionPolicy = evict_first`) say nothing here."""
    while parser.parse_optional_keyword("cacheModifier") or parser.parse_optional_keyword("evictionPolicy"):
        parser.parse_punctuation("=")
        parser.parse_identifier()


class _ProgramOp(IRDLOperation):
    axis = prop_def(StringAttr)
    result = result_def(IntegerType)
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Read the form after the operation\'s name."""
        axis = parser.parse_identifier()
        parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.build(result_types=[parser.parse_type()], properties={"axis": StringAttr(axis)})


@irdl_op_definition
class GetProgramIdOp(_ProgramOp):
    """`tt.get_program_id`."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_ProgramOp):
    """`tt.get_num_programs`."""

    name = "tt.get_num_programs"
