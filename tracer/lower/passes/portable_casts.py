"""Casts spelled so that every known simulator gives them the type that they declare.

The public simulator ignores the target of most casts of tiles: extensions give i64, truncations i32,
integers become f16 (signed) or f32 (unsigned). The forms written here mean the same in MLIR and come out
right there as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    Float32Type,
    IntegerType,
    ModuleOp,
    TensorType,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg_ops
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from tracer.ktir.dialect.arith_ops import CASTS, CastOp
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.build import cast, empty
from tracer.lower.edit import Emitter, element_type, operations, shape_of, with_shape
from tracer.lower.manager import Job


@dataclass(frozen=True)
class PortableCasts:
    """`narrow_fptosi`: float to i64 goes through i32, which is exact only below 2^31 in magnitude."""

    narrow_fptosi: bool = False
    name: ClassVar[str] = "portable-casts"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        scalars = Scalars(job.grid)
        for op in operations(module):
            if isinstance(op, tensor.SplatOp):
                _splat(op, scalars)
            if isinstance(op, CastOp) and isinstance(op.result.type, TensorType):
                self._rewrite(op)

    def _rewrite(self, op: CastOp) -> None:
        source, target = element_type(op.source.type), element_type(op.result.type)
        emitter = Emitter(op)
        match op.name:
            case "arith.sitofp":
                emitter.replace([_elementwise(emitter, op, target)])
            case "arith.uitofp" if _is_small(source) and target != Float32Type():
                _through(emitter, op, Float32Type(), "truncf" if _bits(target) < 32 else "extf")
            case "arith.extsi" | "arith.extui" if target == i32:
                _through(emitter, op, i64, "trunci")
            case "arith.fptosi" if self.narrow_fptosi and target == i64:
                _through(emitter, op, i32, "extsi")


def _splat(op: tensor.SplatOp, scalars: Scalars) -> None:
    """A coordinate spreads as i32 and is extended then: the public simulator splats integers as i32."""
    owner = op.input.owner
    if not isinstance(owner, CastOp) or owner.name != "arith.index_cast" or op.input.type != i64:
        return
    bounds = scalars.bounds(owner.source, op)
    if bounds is None or not -(2**31) <= bounds[0] <= bounds[1] < 2**31:
        return
    emitter = Emitter(op)
    narrow = emitter.emit(CASTS["arith.index_cast"](owner.source, i32))
    spread = emitter.emit(tensor.SplatOp(narrow, [], with_shape(i32, shape_of(op.result))))
    emitter.replace([cast(emitter, "extsi", spread, i64)])


def _is_small(kind: Attribute) -> bool:
    """Whether every value is exact in both f32 and f16."""
    return isinstance(kind, IntegerType) and kind.width.data <= 8


def _bits(kind: Attribute) -> int:
    assert isinstance(kind, AnyFloat)
    return kind.bitwidth


def _through(emitter: Emitter, op: CastOp, middle: Attribute, second: str) -> None:
    first = cast(emitter, op.name.removeprefix("arith."), op.source, middle)
    emitter.replace([cast(emitter, second, first, element_type(op.result.type))])


def _elementwise(emitter: Emitter, op: CastOp, target: Attribute) -> SSAValue:
    """The cast inside `linalg.generic`, where its type is that of one element."""
    block = Block(arg_types=[element_type(op.source.type), target])
    block.args[0].name_hint, block.args[1].name_hint = "element", "out"
    inner = CASTS[op.name](block.args[0], target)
    inner.result.name_hint = "converted"
    block.add_ops([inner, linalg_ops.YieldOp(inner.result)])
    rank = len(shape_of(op.result))
    identity = AffineMapAttr(AffineMap.identity(rank))
    init = empty(emitter, op.result.type)
    return emitter.emit(
        linalg_ops.GenericOp(
            [op.source],
            [init],
            Region(block),
            [identity, identity],
            [IteratorTypeAttr.parallel()] * rank,
            [op.result.type],
        )
    )
