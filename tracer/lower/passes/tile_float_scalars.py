"""Floating-point scalars are computed as tiles of one element.

A core has no scalar floating-point unit to speak of, and the public simulator computes scalar arithmetic in
half precision whatever its type says; a tile keeps the precision of its type everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Operation, SSAValue

from tracer.lower.build import only_element
from tracer.lower.edit import Emitter, retype, shape_of, splat_value, with_shape
from tracer.lower.manager import Job


@dataclass(frozen=True)
class TileFloatScalars:
    """`arith` and `math` on floating-point scalars becomes the same on `tensor<1x...>`."""

    name: ClassVar[str] = "tile-float-scalars"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in list(module.walk()):
            if _is_float_arithmetic(op):
                emitter = Emitter(op)
                tiled = op.clone()
                for position, operand in enumerate(op.operands):
                    tiled.operands[position] = _tile(emitter, operand)
                retype(tiled.results[0], with_shape(op.results[0].type, [1]))
                emitter.replace([only_element(emitter, emitter.emit(tiled))])


def _is_float_arithmetic(op: Operation) -> bool:
    return (
        op.name.startswith(("arith.", "math."))
        and not isinstance(op, arith.ConstantOp)
        and all(isinstance(value.type, AnyFloat) for value in (*op.operands, *op.results))
        and not _in_combiner(op)
    )


def _in_combiner(op: Operation) -> bool:
    """Whether an op combines two elements inside a `linalg` op."""
    parent = op.parent_op()
    return parent is not None and parent.name.startswith("linalg.")


def _tile(emitter: Emitter, scalar: SSAValue) -> SSAValue:
    kind = with_shape(scalar.type, [1])
    constant = splat_value(scalar)
    if constant is not None:
        return emitter.splat(constant, kind)
    if isinstance(scalar.owner, tensor.ExtractOp) and shape_of(scalar.owner.tensor) == (1,):
        return scalar.owner.tensor
    return emitter.emit(tensor.SplatOp(scalar, [], kind))
