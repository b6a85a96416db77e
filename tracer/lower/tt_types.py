"""Types of the `tt` dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tt.ptr<f16>`."""

    name = "tt.ptr"
    pointee: Attribute = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read what follows the type\'s name."""
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            if parser.parse_optional_punctuation(","):
                parser.parse_integer()
        return (pointee,)

    def print_parameters(self, printer: Printer) -> None:
        """Write what follows the type\'s name."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """`!tt.tensordesc<tensor<8x64xf16>>`: the block that one load or store moves."""

    name = "tt.tensordesc"
    block: Attribute = param_def()

    @property
    def shape(self) -> tuple[int, ...]:
        """Block extents."""
        assert isinstance(self.block, TensorType)
        return tuple(self.block.get_shape())

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Read what follows the type\'s name."""
        with parser.in_angle_brackets():
            block = parser.parse_type()
            if parser.parse_optional_punctuation(","):
                parser.parse_attribute()
        return (block,)

    def print_parameters(self, printer: Printer) -> None:
        """Write what follows the type\'s name."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.block)
