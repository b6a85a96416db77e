"""What values are made of: formulas over loads, as numbers that are equal for equal arithmetic."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tracer.ktir.affine import permutation
from tracer.ktir.dialect import ktdp
from tracer.ktir.dialect.extra_ops import CONTRACTIONS

Dims = tuple[int | None, ...]
"""For every axis of a tile the loop of the term that runs along it."""

RESHAPES = {"tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape"}
_OPAQUE = ("arith.", "math.", "linalg.", "tensor.", "ktdp.get_compute_tile_id")


@dataclass(frozen=True)
class Source:
    """A load, and for every axis of its view the loop that runs along it."""

    load: ktdp.LoadOp
    axes: Dims


class Undecided(Exception):
    """The value is not the same function of loads every time."""


class Reader:
    """Formulas of values as numbers, equal for equal arithmetic, seen from one block that runs once; with
    `cores`, once on each of several cores.
    """

    def __init__(self, root: Block, formulas: dict[Hashable, int], *, cores: bool = False):
        self.root = root
        self.cores = cores
        self.formulas = formulas
        self.sources: list[Source] = []
        self.pinned: set[int] = set()
        self._known: dict[tuple[SSAValue, Dims], int] = {}

    def read(self, value: SSAValue, dims: Dims) -> int:
        """The formula of a value. Raises Undecided."""
        if (value, dims) not in self._known:
            formula = self._formula(value, dims)
            self._known[value, dims] = self.formulas.setdefault(formula, len(self.formulas))
        return self._known[value, dims]

    def _formula(self, value: SSAValue, dims: Dims) -> Hashable:
        owner = value.owner
        if isinstance(owner, Block):
            if owner is not self.root and within(owner, self.root):
                raise Undecided
            return self._whole(value, dims)
        assert isinstance(value, OpResult)
        if isinstance(owner, arith.ConstantOp):
            held = owner.value
            if isinstance(held, DenseIntOrFPElementsAttr) and len(held) and held.is_splat():
                return "splat", held.get_values()[0], held.get_element_type()
            return self._whole(held, dims)
        if isinstance(owner, ktdp.LoadOp):
            return self._load(owner, dims)
        name = owner.name
        if name in RESHAPES or name == "tensor.cast":
            shorter = reshaped(value, dims, owner.operands[0])
            if shorter is not None:
                return self.read(owner.operands[0], shorter)
        elif name == "tensor.splat":
            return self.read(owner.operands[0], ())
        elif name == "linalg.transpose":
            order = owner.properties["permutation"].get_values()  # type: ignore[attr-defined]
            return self.read(owner.operands[0], tuple(dims[list(order).index(a)] for a in range(len(dims))))
        elif name == "linalg.broadcast":
            added = owner.properties["dimensions"].get_values()  # type: ignore[attr-defined]
            left = tuple(d for a, d in enumerate(dims) if a not in added)
            return self.read(owner.operands[0], left)
        elif _elementwise(owner):
            operands = owner.operands[:-1] if name.startswith("linalg.") else owner.operands
            parts = (self.read(v, dims if rank(v) else ()) for v in operands)
            return name, _attributes(owner), _element(value), tuple(parts)
        return self._opaque(owner, value.index, dims)

    def _whole(self, what: Hashable, dims: Sequence[int | None]) -> Hashable:
        """Something that does not move: where its elements differ, positions count."""
        self.pinned |= {d for d in dims if d is not None}
        return "whole", what

    def _opaque(self, op: Operation, result: int, dims: Dims) -> Hashable:
        if not op.name.startswith(_OPAQUE) or (self.cores and isinstance(op, ktdp.GetComputeTileIdOp)):
            raise Undecided
        self._whole(op, dims)
        parts = tuple(self.read(v, (None,) * rank(v)) for v in op.operands)
        return op.name, _attributes(op), str(op.results[result].type), result, self.region(op), parts

    def _load(self, load: ktdp.LoadOp, dims: Dims) -> Hashable:
        tile = load.tile.owner
        if not isinstance(tile, ktdp.ConstructAccessTileOp) or isinstance(tile.base.type, TensorType):
            raise Undecided
        order = permutation(tile.access_tile_order.data)
        if order is None:
            raise Undecided
        axes: list[int | None] = [None] * len(order)
        for position, axis in enumerate(order):
            axes[axis] = dims[position]
        source = Source(load, tuple(axes))
        if source not in self.sources:
            self.sources.append(source)
        return "load", self.sources.index(source)

    def region(self, op: Operation) -> Hashable:
        """The arithmetic in an op's regions, values from outside included."""
        numbers: dict[SSAValue, int] = {}
        lines: list[Hashable] = [op.name]
        for inner in (o for r in op.regions for o in r.walk()):
            for block in (b for r in inner.parent_op().regions for b in r.blocks):  # type: ignore[union-attr]
                for argument in block.args:
                    numbers.setdefault(argument, len(numbers))
            operands = tuple(
                ("inner", numbers[v]) if v in numbers else self.read(v, (None,) * rank(v))
                for v in inner.operands
            )
            for result in inner.results:
                numbers.setdefault(result, len(numbers))
            lines.append(
                (inner.name, _attributes(inner), operands, tuple(str(r.type) for r in inner.results))
            )
        return tuple(lines)


def _elementwise(op: Operation) -> bool:
    """Whether element i of the result is made of elements i of the operands."""
    if op.name.startswith(("arith.", "math.")):
        return True
    named = op.name.startswith("linalg.") and not op.regions
    ranks = {rank(v) for v in op.operands}
    return named and op.name not in CONTRACTIONS and op.name != "linalg.fill" and len(ranks) == 1


def _element(value: SSAValue) -> str:
    return str(value.type.element_type if isinstance(value.type, TensorType) else value.type)


def _attributes(op: Operation) -> Hashable:
    return tuple(sorted((k, str(v)) for k, v in {**op.properties, **op.attributes}.items()))


def rank(value: SSAValue) -> int:
    """Number of axes of a tile; 0 for a scalar."""
    return value.type.get_num_dims() if isinstance(value.type, TensorType) else 0


def within(block: Block, outer: Block) -> bool:
    """Whether a block is `outer` or in a region of its operations."""
    current: Block | None = block
    while current is not None and current is not outer:
        parent = current.parent_op()
        current = parent.parent_block() if parent is not None else None
    return current is outer


def reshaped(value: SSAValue, dims: Dims, result: SSAValue) -> Dims | None:
    """Loops along the axes of a reshape that adds and drops extents of one; None for any other."""
    assert isinstance(value.type, TensorType)
    assert isinstance(result.type, TensorType)
    old = [(n, d) for n, d in zip(value.type.get_shape(), dims, strict=True) if n != 1]
    new = [n for n in result.type.get_shape() if n != 1]
    # Where several extents are not known, equal types may still hold the elements in another order.
    if [n for n, _ in old] != new or new.count(DYNAMIC_INDEX) > 1:
        return None
    left = iter(d for _, d in old)
    return tuple(next(left) if n != 1 else None for n in result.type.get_shape())
