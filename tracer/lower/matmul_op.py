"""`linalg.matmul` whose accumulator may be wider than its operands, which xDSL's own cannot build."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from tracer.ktir.extra_ops import NamedLinalgOp
from tracer.lower.edit import shape_of


@irdl_op_definition
class MatmulOp(NamedLinalgOp):
    """`linalg.matmul ins(%a, %b) outs(%c)`: c + a b in the element type of c."""

    name = "linalg.matmul"

    def verify_shapes(self) -> None:
        """M x K, K x N and M x N."""
        (m, k), (k2, n) = shape_of(self.inputs[0]), shape_of(self.inputs[1])
        if k != k2 or shape_of(self.outputs[0]) != (m, n):
            raise VerifyException("the extents of a matmul do not fit")
