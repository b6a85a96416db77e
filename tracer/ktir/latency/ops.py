"""What one execution of an operation costs, by unit: elements, operations and bytes, from its
static shapes.

`mode="ktir_cpu"` counts as the public simulator does. It differs from `strict` in four ways:

* `linalg.batch_matmul`: it takes the extents of the batch, M and K for M, K and N, so that the rest is lost.
* `linalg.generic`: it counts the operation itself once per result element beside its body, and where the body
  reduces, the combiner a second time for the fold. A body that has run over the iteration space is done.
* integers: it charges nothing for an integer operation on a single element, tile or not, and an element for
  every scalar `arith.select`, of addresses too. Strict tells tiles from scalars, which are addresses.
* collectives: see `latency`.

Both count a floating-point scalar as one element, a reduction as one application of its body per element
(a tree of n - 1, and one with the initial value), and an operation in a body over the axes that its operands
depend on: what depends on `linalg.index 0` alone is computed once a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.dialect.ktdp import CONTRACTIONS, ELEMENTWISE, InterTileReduceOp
from tracer.ktir.simulator.compiler import Unsupported
from tracer.ktir.simulator.emit_generic import iteration_extents
from tracer.ktir.simulator.liveness import tile_bytes

TRANSCENDENTAL = {
    f"math.{name}"
    for name in (
        "exp", "exp2", "expm1", "sqrt", "rsqrt", "log", "log2", "log10", "log1p", "tanh", "sin", "cos",
        "tan", "erf", "erfc", "sincos",
        "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2", "cbrt", "powf",
    )
} | {f"linalg.{name}" for name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "powf")}  # fmt: skip

_FREE_ARITH = {
    f"arith.{name}"
    for name in (
        "constant", "extf", "truncf", "extsi", "extui", "trunci", "sitofp", "uitofp", "fptosi",
        "fptoui", "bitcast",
        "index_cast", "index_castui", "convertf",
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

    def __add__(self, other: Cost) -> Cost:
        """Both, one after the other."""
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Cost)))

    def __mul__(self, runs: int) -> Cost:
        """So many executions."""
        return Cost(*(getattr(self, f.name) * runs for f in fields(Cost)))

    @property
    def flops(self) -> int:
        """Operations, an element each on the vector unit."""
        return self.simd + self.transcendental + self.systolic


def cost_of(op: Operation, mode: str = "strict") -> Cost:
    """Cost of one execution; nothing for views, casts, constants, reshapes, fills and addresses.

    Raises Unsupported for an operation that costs something and has extents known at run time only.
    """
    public = mode == "ktir_cpu"
    if op.name in _MATMULS:
        return Cost(systolic=2 * (_misread(op) if public else _iterations(_MATMULS[op.name], op)))
    if isinstance(op, linalg.GenericOp):
        return _generic(op, public)
    if op.name == "linalg.reduce":
        return _reduction(op, public)
    if op.name == "linalg.map":
        return _body(op.regions[0].block, _shape(op.operands[0]), public)
    if op.name in ("tensor.generate", "tensor.pad"):
        return _body(op.regions[0].block, _shape(op.results[0]), public)
    if isinstance(op, InterTileReduceOp):
        fold = sum(cost_of(inner, mode).flops for inner in op.body.block.ops)
        _shape(op.identity)
        return Cost(ring_bytes=tile_bytes(op.identity), fold=fold)
    if not _counted(op):
        return Cost()
    tiles = [v for v in (*op.results, *op.operands) if isinstance(v.type, TensorType)]
    return _elementwise(op, _product(_shape(tiles[0])) if tiles else None, public)


def _generic(op: linalg.GenericOp, public: bool) -> Cost:
    block, extents = op.body.block, iteration_extents(op)
    cost = _body(block, tuple(extents), public)
    if not public:
        return cost
    cost += Cost(simd=sum(_product(_shape(result)) for result in op.results))
    axes = [i for i, kind in enumerate(op.iterator_types) if kind.data.value == "reduction"]
    combiner = block.last_op.operands[0].owner if block.last_op and axes else None
    if isinstance(combiner, Operation):
        for elements in _folds(extents, axes):
            cost += _elementwise(combiner, elements, public)
    return cost


def _reduction(op: Operation, public: bool) -> Cost:
    block, shape = op.regions[0].block, _shape(op.operands[0])
    if not public:
        return _body(block, shape, public)
    axes = [int(axis) for axis in op.properties["dimensions"].get_values()]  # type: ignore[attr-defined]
    cost = Cost()
    for elements in _folds(shape, axes):
        cost += _body(block, (elements,), public)
    return cost


def _folds(shape: Sequence[int], axes: Sequence[int]) -> Iterator[int]:
    """Elements of each application of a combiner: halves, last axis first, then the initial value."""
    left = list(shape)
    for axis in sorted(axes, reverse=True):
        while left[axis] > 1:
            half = left[axis] // 2
            yield _product([*left[:axis], half, *left[axis + 1 :]])
            left[axis] -= half
    yield _product(left)


def _counted(op: Operation) -> bool:
    return op.name in _NAMED or (op.name.startswith(("arith.", "math.")) and op.name not in _FREE_ARITH)


def _elementwise(op: Operation, elements: int | None, public: bool) -> Cost:
    """Cost over a tile of so many elements; None: over scalars."""
    if not _counted(op):
        return Cost()
    if public:
        if (elements or 1) == 1 and op.name.startswith("arith.") and op.name.endswith("i"):
            return Cost()
    elif elements is None and not any(isinstance(v.type, AnyFloat) for v in (*op.operands, *op.results)):
        return Cost()
    count = 1 if elements is None else elements
    return Cost(transcendental=count) if op.name in TRANSCENDENTAL else Cost(simd=count)


def _body(block: Block, iteration: tuple[int, ...], public: bool) -> Cost:
    """Cost of a region over an iteration space; each operation over the axes that its operands depend on."""
    shapes: dict[SSAValue, tuple[int, ...]] = dict.fromkeys(block.args, iteration)
    cost = Cost()
    for op in block.ops:
        if op.name == "linalg.index":
            axis = op.properties["dim"].value.data
            shape = tuple(n if i == axis else 1 for i, n in enumerate(iteration))
        else:
            known = [shapes[v] for v in op.operands if v in shapes]
            shape = tuple(max(extents) for extents in zip(*known, strict=True))
        if shape:
            shapes.update(dict.fromkeys(op.results, shape))
        cost += _elementwise(op, _product(shape) if shape else None, public)
    return cost


def _shape(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tile. Raises Unsupported where one is known at run time only."""
    assert isinstance(value.type, TensorType)
    if DYNAMIC_INDEX in value.type.get_shape():
        raise Unsupported("the cost of tiles follows from extents, one of which is known at run time only")
    return tuple(value.type.get_shape())


def _misread(op: Operation) -> int:
    """Iterations by the first two extents of the left operand and the second of the right."""
    (m, k, *_), (_, n, *_) = (_shape(value) for value in op.operands[:2])
    return m * n * k


def _product(values: Sequence[int]) -> int:
    total = 1
    for value in values:
        total *= value
    return total


def _iterations(letters: tuple[str, str, str], op: Operation) -> int:
    extents: dict[str, int] = {}
    for spelled, value in zip(letters, op.operands, strict=True):
        extents.update(zip(spelled, _shape(value), strict=True))
    return _product(list(extents.values()))
