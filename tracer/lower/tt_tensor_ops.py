"""Operations of the `tt` dialect on tensors."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute
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
from xdsl.traits import IsTerminator, Pure


class _CastOp(IRDLOperation):
    """One operand, one result."""

    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())


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
    """`tt.fp_to_fp`, which may say its `rounding`."""

    name = "tt.fp_to_fp"


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    """`tt.unsplat`: the only element of a tensor."""

    name = "tt.unsplat"
    source = operand_def(TensorType)
    result = result_def(AnyAttr())
    traits = traits_def(Pure())


class _SameTypeOp(IRDLOperation):
    """Operands and result have one type."""

    sources = var_operand_def()
    result = result_def(AnyAttr())
    traits = traits_def(Pure())


@irdl_op_definition
class ClampFOp(_SameTypeOp):
    """`tt.clampf %x, %min, %max`, where `propagateNan` is `none` or `all`."""

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
    """`tt.make_range {start, end}`: start, start + 1, ... end - 1."""

    name = "tt.make_range"
    result = result_def(TensorType)
    traits = traits_def(Pure())


@irdl_op_definition
class DotOp(IRDLOperation):
    """`tt.dot %a, %b, %c : A * B -> C`: c + a b, rank 2 or 3."""

    name = "tt.dot"
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())


@irdl_op_definition
class JoinOp(IRDLOperation):
    """`tt.join`: two tensors side by side in a new last dim of extent 2."""

    name = "tt.join"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    result = result_def(TensorType)
    traits = traits_def(Pure())


@irdl_op_definition
class ExternElementwiseOp(IRDLOperation):
    """`tt.extern_elementwise {symbol}`: a device library function, elementwise."""

    name = "tt.extern_elementwise"
    sources = var_operand_def()
    result = result_def(AnyAttr())
    traits = traits_def(Pure())


class _CombinerReturnOp(IRDLOperation):
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())


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
