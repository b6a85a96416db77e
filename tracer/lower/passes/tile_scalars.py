"""Scalars that depend on data are computed as tiles of one element, and spread from there.

A core has no scalar floating-point unit to speak of, and the public simulator computes scalar arithmetic in
half precision and spreads integers as i32 whatever their types say; a tile keeps its type everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from tracer.lower.build import broadcast, only_element, reshaped
from tracer.lower.edit import Emitter, operations, retype, shape_of, splat_value, with_shape
from tracer.lower.manager import Job


@dataclass(frozen=True)
class TileScalars:
    """`arith` and `math` on such scalars becomes the same on `tensor<1x...>`; `index` stays scalar."""

    name: ClassVar[str] = "tile-scalars"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            if isinstance(op, tensor.SplatOp) and isinstance(op.input.owner, tensor.ExtractOp):
                _spread(op, op.input.owner)
            elif _is_scalar_arithmetic(op):
                emitter = Emitter(op)
                tiled = op.clone()
                for position, operand in enumerate(op.operands):
                    tiled.operands[position] = _tile(emitter, operand)
                retype(tiled.results[0], with_shape(op.results[0].type, [1]))
                emitter.replace([only_element(emitter, emitter.emit(tiled))])


def _is_scalar_arithmetic(op: Operation) -> bool:
    if not op.name.startswith(("arith.", "math.")) or isinstance(op, arith.ConstantOp):
        return False
    values = (*op.operands, *op.results)
    if not all(isinstance(value.type, AnyFloat | IntegerType) for value in values) or _in_combiner(op):
        return False
    # Integers that come from tile numbers alone are cheaper as scalars.
    return isinstance(op.results[0].type, AnyFloat) or any(
        isinstance(o.owner, tensor.ExtractOp) for o in op.operands
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
    if isinstance(scalar.owner, tensor.ExtractOp) and _single(scalar.owner):
        return reshaped(emitter, scalar.owner.tensor, [1])
    return emitter.emit(tensor.SplatOp(scalar, [], kind))


def _single(extract: tensor.ExtractOp) -> bool:
    return all(extent == 1 for extent in shape_of(extract.tensor))


def _spread(op: tensor.SplatOp, extract: tensor.ExtractOp) -> None:
    """A tile of one element grows to the splat's shape without leaving the tiles."""
    if not _single(extract):
        return
    emitter = Emitter(op)
    shape = shape_of(op.result)
    tile = reshaped(emitter, extract.tensor, [1] * len(shape))
    emitter.replace([broadcast(emitter, tile, shape)])
