"""Loads and stores of the `ktdp` dialect."""

# ruff: noqa: D102 - parse, print and verify_ are what xDSL asks for
from __future__ import annotations

from xdsl.dialects.builtin import Attribute, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.dialect.attributes import AccessTileType
from tracer.ktir.dialect.memory_ops import parse_type_or_short
from tracer.ktir.dialect.subscripts import ssa_name


@irdl_op_definition
class LoadOp(IRDLOperation):
    """`LoadOp(tile, result_type)`: the elements of an access tile, in its order."""

    name = "ktdp.load"
    tile = operand_def(AccessTileType)
    result = result_def(TensorType)

    def __init__(self, tile: SSAValue | Operation, result_type: TensorType):
        super().__init__(operands=[tile], result_types=[result_type])

    def verify_(self) -> None:
        _same_shape(self.tile.type, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LoadOp:
        tile = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        tile_type = parse_type_or_short(parser)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operand = parser.resolve_operand(tile, tile_type)
        return cls.build(operands=[operand], result_types=[result], attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.tile)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.tile.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """`StoreOp(data, tile)`: write a tensor to the elements of an access tile, in its order."""

    name = "ktdp.store"
    data = operand_def(TensorType)
    tile = operand_def(AccessTileType)

    def __init__(self, data: SSAValue | Operation, tile: SSAValue | Operation):
        super().__init__(operands=[data, tile])

    def verify_(self) -> None:
        _same_shape(self.tile.type, self.data.type)

    @classmethod
    def parse(cls, parser: Parser) -> StoreOp:
        data = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        tile = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        data_type = parser.parse_type()
        parser.parse_punctuation(",")
        tile_type = parse_type_or_short(parser)
        return cls.build(
            operands=[parser.resolve_operand(data, data_type), parser.resolve_operand(tile, tile_type)],
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {ssa_name(printer, self.data)}, {ssa_name(printer, self.tile)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.data.type)
        printer.print_string(", ")
        printer.print_attribute(self.tile.type)


def _same_shape(tile: Attribute, tensor: Attribute) -> None:
    assert isinstance(tile, AccessTileType)
    assert isinstance(tensor, TensorType)
    if tile.get_shape() != tuple(tensor.get_shape()):
        raise VerifyException(f"access tile {tile} and tensor {tensor} differ in shape")
