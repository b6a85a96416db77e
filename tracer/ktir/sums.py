"""Which values a function adds up: every term, the sums it enters, and the loads it is made of.

A sum is a value that additions lead to and no addition leads on from: through `outs` of a contraction,
`addf`, the carried value of a loop, the branches of a condition. What is not told from the text alone (what
depends on a loop's counter or on another carried value) is no term, so that a claim about one holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerType, TensorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tracer.ktir import dialect as ktdp
from tracer.ktir.affine import permutation
from tracer.ktir.extra_ops import CONTRACTIONS
from tracer.ktir.simulator.reductions import combiner_name

Dims = tuple[int | None, ...]
"""For every axis of a tile the loop of the term that runs along it."""

_MATMULS = {"linalg.matmul": ("mk", "kn", "mn"), **CONTRACTIONS}
_ADDS = {"arith.addf", "arith.addi", "linalg.add"}
_CASTS = {"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "tensor.cast"}
_RESHAPES = {"tensor.expand_shape", "tensor.collapse_shape", "tensor.reshape"}
_OPAQUE = ("arith.", "math.", "linalg.", "tensor.", "ktdp.get_compute_tile_id")


@dataclass(frozen=True)
class Source:
    """A load, and for every axis of its view the loop that runs along it."""

    load: ktdp.LoadOp
    axes: Dims


@dataclass(frozen=True)
class Term:
    """What `op` adds to `sum` each time it runs.

    `formula` is equal for terms of equal arithmetic on their sources. `summed` are the loops that the sum
    runs over, of those along which the sources' tiles may move freely; along all others they must not.
    """

    op: Operation
    sum: SSAValue
    formula: int
    sources: tuple[Source, ...]
    summed: tuple[int, ...]


def block_of(value: SSAValue) -> Block:
    """The block that a value belongs to."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    assert block is not None
    return block


def terms(function: func.FuncOp) -> tuple[Term, ...]:
    """The terms that one sum may take more than once: those in a loop, and contractions that are alike.

    Tiles that are added outside loops are not, since `x + x` may be meant. Sums of booleans have no terms:
    their addition is another.
    """
    found = tuple(_terms(function))
    alike = Counter((t.sum, t.formula) for t in found if t.op.name not in _ADDS)
    return tuple(
        t for t in found if alike[t.sum, t.formula] > 1 or t.op.parent_block() is not block_of(t.sum)
    )


def _terms(function: func.FuncOp) -> Iterator[Term]:
    formulas: dict[Hashable, int] = {}
    for op in function.walk():
        parent = op.parent_op()
        if parent is not function and not (parent is not None and parent.name.startswith("scf.")):
            continue
        for operands, out, reduced in _additions(op):
            for total, summed in _sums(op.results[0], out):
                reader = _Reader(block_of(total), formulas)
                if any(inner.name == "linalg.index" for inner in op.walk()):
                    reader.pinned |= reduced | summed
                try:
                    parts = tuple(reader.read(value, dims) for value, dims in operands)
                    body = reader.region(op) if op.regions else op.name
                except _Undecided:
                    continue
                if reader.sources:
                    formula = formulas.setdefault((body, parts), len(formulas))
                    free = tuple(sorted((reduced | summed) - reader.pinned))
                    yield Term(op, total, formula, tuple(reader.sources), free)


def _additions(op: Operation) -> Iterator[tuple[list[tuple[SSAValue, Dims]], Dims, set[int]]]:
    """For every term that an op adds: its operands, the result's axes as loops, the loops summed."""
    if not _is_sum(op):
        return
    if op.name in _ADDS:
        rank = _rank(op.results[0])
        loops: Dims = tuple(range(rank))
        for value in op.operands[:2]:
            owner = value.owner
            if (
                isinstance(owner, Operation)
                and not _is_sum(owner)
                and not isinstance(owner, scf.ForOp | scf.IfOp)
            ):
                yield [(value, loops)], loops, set()
    elif op.name in _MATMULS:
        a, b, c = _MATMULS[op.name]
        names = sorted({*a, *b})
        x, y, z = (tuple(names.index(n) for n in letters) for letters in (a, b, c))
        yield [(op.operands[0], x), (op.operands[1], y)], z, {*x, *y} - {*z}
    elif isinstance(op, GenericOp):
        maps = [m.data for m in op.indexing_maps]
        ins = [(v, _plain(m)) for v, m in zip(op.inputs, maps, strict=False)]
        out = _plain(maps[-1])
        if None not in out and all(None not in dims for _, dims in ins):
            yield ins, out, set(range(maps[-1].num_dims)) - {d for d in out if d is not None}
    else:
        dims = _reduced_axes(op)
        kept = tuple(a for a in range(_rank(op.operands[0])) if a not in dims)
        yield [(op.operands[0], tuple(range(_rank(op.operands[0]))))], kept, dims


def _plain(map_: AffineMap) -> Dims:
    return tuple(e.position if isinstance(e, AffineDimExpr) else None for e in map_.results)


def _rank(value: SSAValue) -> int:
    return value.type.get_num_dims() if isinstance(value.type, TensorType) else 0


def _reduced_axes(op: Operation) -> set[int]:
    return {int(d) for d in op.properties["dimensions"].get_values()}  # type: ignore[attr-defined]


def _is_sum(op: Operation) -> bool:
    """Whether the result is a plain sum of something and of terms."""
    if len(op.results) != 1:
        return False
    kind = op.results[0].type
    kind = kind.element_type if isinstance(kind, TensorType) else kind
    if isinstance(kind, IntegerType) and kind.width.data == 1:
        return False
    if op.name == "linalg.reduce":
        return len(op.operands) == 2 and combiner_name(op.regions[0].block) in _ADDS
    return op.name in _ADDS or op.name in _MATMULS or (isinstance(op, GenericOp) and _folds_by_adding(op))


def _folds_by_adding(op: GenericOp) -> bool:
    """Whether a generic yields its output plus a term that the output does not enter."""
    block, end = op.body.block, op.body.block.last_op
    if len(op.outputs) != 1 or end is None or end.prev_op is None:
        return False
    last, so_far = end.prev_op, block.args[-1]
    uses = [use.operation for use in so_far.uses]
    return last.name in _ADDS and list(end.operands) == list(last.results) and uses == [last]


def _sums(value: SSAValue, dims: Dims) -> list[tuple[SSAValue, set[int]]]:
    """The sums that a value enters, each with the loops that are summed over on the way to it."""
    todo: list[tuple[SSAValue, Dims, frozenset[int]]] = [(value, dims, frozenset())]
    seen, ends = {value}, []
    while todo:
        current, axes, summed = todo.pop()
        further = list(_onward(current, axes))
        if not further:
            ends.append((current, set(summed)))
        for following, left in further:
            if following not in seen:
                seen.add(following)
                gone = {d for d in axes if d is not None} - set(left)
                todo.append((following, left, summed | gone))
    return ends


def _onward(value: SSAValue, dims: Dims, inside: scf.ForOp | None = None) -> Iterator[tuple[SSAValue, Dims]]:
    """The values that are `value` and terms besides, no further than the end of the body of `inside`."""
    for use in value.uses:
        op, index = use.operation, use.index
        if isinstance(op, scf.ForOp):
            if index >= 3 and _accumulates(op, index - 3):
                yield op.results[index - 3], dims
        elif isinstance(op, scf.YieldOp):
            parent = op.parent_op()
            counts = isinstance(parent, scf.ForOp) and parent is not inside and _accumulates(parent, index)
            if parent is not None and (counts or isinstance(parent, scf.IfOp)):
                yield parent.results[index], dims
        elif op.name in _CASTS:
            yield op.results[0], dims
        elif op.name in _RESHAPES and index == 0:
            if (axes := _reshaped(value, dims, op.results[0])) is not None:
                yield op.results[0], axes
        elif _is_sum(op):
            last = index == len(op.operands) - 1
            if op.name.startswith("arith.") or last != (op.name == "linalg.add"):
                yield op.results[0], dims
            elif op.name == "linalg.reduce":
                gone = _reduced_axes(op)
                yield op.results[0], tuple(d for a, d in enumerate(dims) if a not in gone)


def _accumulates(loop: scf.ForOp, lane: int) -> bool:
    """Whether every iteration yields what it got in that lane, and terms besides.

    No axis is lost on the way: nothing that is followed would bring one back.
    """
    end = loop.body.block.last_op
    assert end is not None
    carried, target = loop.body.block.args[1 + lane], end.operands[lane]
    todo: list[SSAValue] = [carried]
    seen: set[SSAValue] = {carried}
    while todo:
        current = todo.pop()
        if current is target:
            return current is not carried
        for following, _ in _onward(current, (None,) * _rank(current), loop):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return False


def _within(block: Block, outer: Block) -> bool:
    current: Block | None = block
    while current is not None and current is not outer:
        parent = current.parent_op()
        current = parent.parent_block() if parent is not None else None
    return current is outer


def _reshaped(value: SSAValue, dims: Dims, result: SSAValue) -> Dims | None:
    """Loops along the axes of a reshape that adds and drops extents of one; None for any other."""
    assert isinstance(value.type, TensorType)
    assert isinstance(result.type, TensorType)
    old = [(n, d) for n, d in zip(value.type.get_shape(), dims, strict=True) if n != 1]
    new = [n for n in result.type.get_shape() if n != 1]
    if [n for n, _ in old] != new:
        return None
    left = iter(d for _, d in old)
    return tuple(next(left) if n != 1 else None for n in result.type.get_shape())


class _Undecided(Exception):
    """The value is not the same function of loads every time."""


class _Reader:
    """Formulas of values as numbers, equal for equal arithmetic, seen from one block that runs once."""

    def __init__(self, root: Block, formulas: dict[Hashable, int]):
        self.root = root
        self.formulas = formulas
        self.sources: list[Source] = []
        self.pinned: set[int] = set()
        self._known: dict[tuple[SSAValue, Dims], int] = {}

    def read(self, value: SSAValue, dims: Dims) -> int:
        """The formula of a value. Raises _Undecided."""
        if (value, dims) not in self._known:
            formula = self._formula(value, dims)
            self._known[value, dims] = self.formulas.setdefault(formula, len(self.formulas))
        return self._known[value, dims]

    def _formula(self, value: SSAValue, dims: Dims) -> Hashable:
        owner = value.owner
        if isinstance(owner, Block):
            if owner is not self.root and _within(owner, self.root):
                raise _Undecided
            return self._whole(value, dims)
        assert isinstance(value, OpResult)
        if isinstance(owner, arith.ConstantOp):
            held = owner.value
            if isinstance(held, DenseIntOrFPElementsAttr) and held.is_splat():
                return "splat", held.get_values()[0], held.get_element_type()
            return self._whole(held, dims)
        if isinstance(owner, ktdp.LoadOp):
            return self._load(owner, dims)
        name = owner.name
        if name in _RESHAPES or name == "tensor.cast":
            shorter = _reshaped(value, dims, owner.operands[0])
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
            parts = (self.read(v, dims if _rank(v) else ()) for v in operands)
            return name, _attributes(owner), _element(value), tuple(parts)
        return self._opaque(owner, value.index, dims)

    def _whole(self, what: Hashable, dims: Sequence[int | None]) -> Hashable:
        """Something that does not move: where its elements differ, positions count."""
        self.pinned |= {d for d in dims if d is not None}
        return "whole", what

    def _opaque(self, op: Operation, result: int, dims: Dims) -> Hashable:
        if not op.name.startswith(_OPAQUE):
            raise _Undecided
        self._whole(op, dims)
        parts = tuple(self.read(v, (None,) * _rank(v)) for v in op.operands)
        return op.name, _attributes(op), str(op.results[result].type), result, self.region(op), parts

    def _load(self, load: ktdp.LoadOp, dims: Dims) -> Hashable:
        tile = load.tile.owner
        if not isinstance(tile, ktdp.ConstructAccessTileOp) or isinstance(tile.base.type, TensorType):
            raise _Undecided
        order = permutation(tile.access_tile_order.data)
        if order is None:
            raise _Undecided
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
                ("inner", numbers[v]) if v in numbers else self.read(v, (None,) * _rank(v))
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
    ranks = {_rank(v) for v in op.operands}
    return named and op.name not in _MATMULS and op.name != "linalg.fill" and len(ranks) == 1


def _element(value: SSAValue) -> str:
    return str(value.type.element_type if isinstance(value.type, TensorType) else value.type)


def _attributes(op: Operation) -> Hashable:
    return tuple(sorted((k, str(v)) for k, v in {**op.properties, **op.attributes}.items()))
