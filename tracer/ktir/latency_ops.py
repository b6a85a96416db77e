"""What one execution of an operation costs, by unit: elements, operations and bytes, from its
static shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation

from tracer.ktir.dialect import CONTRACTIONS, ELEMENTWISE, InterTileReduceOp
from tracer.ktir.simulator.liveness import tile_bytes

TRANSCENDENTAL = {
    f"math.{name}"
    for name in (
        "exp", "exp2", "expm1", "sqrt", "rsqrt", "log", "log2", "log10", "log1p", "tanh", "sin", "cos",
        "tan", "erf",
        "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "cbrt", "powf",
    )
} | {f"linalg.{name}" for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "powf")}  # fmt: skip

_FREE_ARITH = {
    f"arith.{name}"
    for name in (
        "constant", "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi",
        "fptoui", "bitcast",
        "index_cast", "index_castui",
    )
}  # fmt: skip

_NAMED = {f"linalg.{name}" for name in ("add", "sub", "mul", "max", "min", "select")} | set(ELEMENTWISE)

_MATMULS = {"linalg.matmul": ("mk", "kn", "mn"), **CONTRACTIONS}


@dataclass(frozen=True)
class Cost:
    """Elements on the vector unit, plain and transcendental; operations on the systolic unit; bytes of a
    partial that goes around the ring once per partner, and vector elements of folding one."""

    simd: int = 0
    transcendental: int = 0
    systolic: int = 0
    ring_bytes: int = 0
    fold: int = 0

    @property
    def flops(self) -> int:
        """Operations, an element each on the vector unit."""
        return self.simd + self.transcendental + self.systolic


def cost_of(op: Operation) -> Cost:
    """Cost of one execution; nothing for views, casts, constants, reshapes, fills and scalars."""
    if op.name in _MATMULS:
        return Cost(systolic=2 * _iterations(_MATMULS[op.name], op))
    if isinstance(op, linalg.GenericOp):
        from tracer.ktir.simulator.emit_linalg import iteration_extents

        return _body(op.body.block, _product(iteration_extents(op)))
    if op.name in ("linalg.reduce", "linalg.map"):
        return _body(op.regions[0].block, _elements(op.operands[0].type))
    if op.name == "tensor.generate":
        return _body(op.regions[0].block, _elements(op.results[0].type))
    if isinstance(op, InterTileReduceOp):
        fold = sum(cost_of(inner).flops for inner in op.body.block.ops)
        return Cost(ring_bytes=tile_bytes(op.identity), fold=fold)
    return _elementwise(op, max((_elements(r.type) for r in op.results), default=0))


def _elementwise(op: Operation, elements: int) -> Cost:
    if op.name in TRANSCENDENTAL:
        return Cost(transcendental=elements)
    counted = op.name in _NAMED or (op.name.startswith(("arith.", "math.")) and op.name not in _FREE_ARITH)
    return Cost(simd=elements) if counted else Cost()


def _body(block: Block, elements: int) -> Cost:
    costs = [_elementwise(op, elements) for op in block.ops]
    return Cost(simd=sum(c.simd for c in costs), transcendental=sum(c.transcendental for c in costs))


def _elements(type_: Attribute) -> int:
    if not isinstance(type_, TensorType) or DYNAMIC_INDEX in type_.get_shape():
        return 0
    return _product(type_.get_shape())


def _product(values: Sequence[int]) -> int:
    total = 1
    for value in values:
        total *= value
    return total


def _iterations(letters: tuple[str, str, str], op: Operation) -> int:
    extents: dict[str, int] = {}
    for spelled, value in zip(letters, op.operands, strict=True):
        extents.update(zip(spelled, value.type.get_shape(), strict=True))  # type: ignore[attr-defined]
    return _product(list(extents.values()))
