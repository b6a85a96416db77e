"""Operations of the `tt` dialect on functions, programs and memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
)
from xdsl.ir import SSAValue
from xdsl.irdl import (
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


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`tt.return`."""

    name = "tt.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())


@irdl_op_definition
class MakeTensorDescriptorOp(IRDLOperation):
    """`tt.make_tensor_descriptor`: a view; extents and strides in elements."""

    name = "tt.make_tensor_descriptor"
    base = operand_def(PointerType)
    numbers = var_operand_def(IntegerType)
    descriptor = result_def(DescriptorType)
    traits = traits_def(Pure())

    @property
    def sizes(self) -> Sequence[SSAValue]:
        """The extents, outermost first."""
        return self.numbers[: len(self.numbers) // 2]

    @property
    def strides(self) -> Sequence[SSAValue]:
        """As many strides."""
        return self.numbers[len(self.numbers) // 2 :]


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """`tt.descriptor_load`: elements outside the view read as zero. Leading unit dims may be dropped."""

    name = "tt.descriptor_load"
    descriptor = operand_def(DescriptorType)
    indices = var_operand_def()
    result = result_def(TensorType)
    lanes = opt_attr_def(ArrayAttr)


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """`tt.descriptor_store`: elements outside the view are dropped. Operands in the order of the text."""

    name = "tt.descriptor_store"
    descriptor = operand_def(DescriptorType)
    indices = var_operand_def()
    source = operand_def(TensorType)
    lanes = opt_attr_def(ArrayAttr)


class _ProgramOp(IRDLOperation):
    axis = prop_def(StringAttr)
    result = result_def(IntegerType)
    traits = traits_def(Pure())


@irdl_op_definition
class GetProgramIdOp(_ProgramOp):
    """`tt.get_program_id`."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_ProgramOp):
    """`tt.get_num_programs`."""

    name = "tt.get_num_programs"
