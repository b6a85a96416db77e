"""Which values a function adds up: every term, the sums it enters, and the loads it is made of.

A sum is a value that additions lead to and no addition leads on from: through `outs` of a contraction,
`addf`, the carried value of a loop, the branches of a condition. One that every core adds its part to ends
where the parts meet. What is not told from the text alone (what
depends on a loop's counter or on another carried value) is no term, so that a claim about one holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from tracer.ktir.coverage.formulas import RESHAPES, Dims, Reader, Source, Undecided, rank, reshaped
from tracer.ktir.dialect import ktdp
from tracer.ktir.dialect.extra_ops import CONTRACTIONS
from tracer.ktir.dialect.region_ops import BRANCHES
from tracer.ktir.simulator.reductions import combiner_name

_ADDS = {"arith.addf", "arith.addi", "linalg.add"}
_CASTS = {"arith.extf", "arith.truncf", "arith.extsi", "arith.extui", "tensor.cast"}


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

    @property
    def collective(self) -> ktdp.InterTileReduceOp | None:
        """Where the parts of several cores meet in the sum."""
        return _collective(self.sum)


def _collective(total: SSAValue) -> ktdp.InterTileReduceOp | None:
    return total.owner if isinstance(total.owner, ktdp.InterTileReduceOp) else None


def block_of(value: SSAValue) -> Block:
    """The block that a value belongs to."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent_block()
    assert block is not None
    return block


def terms(function: func.FuncOp) -> tuple[Term, ...]:
    """The terms that one sum may take more than once: those in a loop, and contractions that are alike or
    that several cores make.

    Tiles that are added outside loops are not, since `x + x` may be meant. Sums of booleans have no terms:
    their addition is another. What the function calls has sums of its own, new ones with every call, and none
    of several cores, since a core may come there more than once.
    """
    own = tuple(_terms(function))
    found = own + tuple(t for f in _called(function) for t in _terms(f) if t.collective is None)
    alike = Counter((t.sum, t.formula) for t in found if t.op.name not in _ADDS)
    return tuple(t for t in found if alike[t.sum, t.formula] > 1 or _repeats(t))


def _called(function: func.FuncOp) -> list[func.FuncOp]:
    """The functions that a function calls, and those that they call."""
    module = function.parent_op()
    named = {f.sym_name.data: f for f in (module.walk() if module else ()) if isinstance(f, func.FuncOp)}
    found, todo = {function}, [function]
    while todo:
        for op in todo.pop().walk():
            called = named.get(op.callee.string_value()) if isinstance(op, func.CallOp) else None
            if called is not None and called not in found:
                found.add(called)
                todo.append(called)
    return [f for f in named.values() if f in found and f is not function]


def _repeats(term: Term) -> bool:
    on_cores = term.collective is not None and term.op.name not in _ADDS
    return on_cores or term.op.parent_block() is not block_of(term.sum)


def _terms(function: func.FuncOp) -> Iterator[Term]:
    formulas: dict[Hashable, int] = {}
    for op in function.walk():
        parent = op.parent_op()
        nested = parent is not None and parent.name.startswith(("scf.", "ktdp.inter_tile_produce"))
        if parent is not function and not nested:
            continue
        met = isinstance(op, ktdp.InterTileProduceOp)
        for operands, out, reduced in _contributions(op) if met else additions(op):
            for total, summed in _partial(op) if met else _sums(op.results[0], out):
                reader = Reader(block_of(total), formulas, cores=_collective(total) is not None)
                if any(inner.name == "linalg.index" for inner in op.walk()):
                    reader.pinned |= reduced | summed
                try:
                    parts = tuple(reader.read(value, dims) for value, dims in operands)
                    body = reader.region(op) if op.regions else op.name
                except Undecided:
                    continue
                if reader.sources:
                    formula = formulas.setdefault((body, parts), len(formulas))
                    free = tuple(sorted((reduced | summed) - reader.pinned))
                    yield Term(op, total, formula, tuple(reader.sources), free)


def _contributions(op: Operation) -> Iterator[tuple[list[tuple[SSAValue, Dims]], Dims, set[int]]]:
    """What a core contributes to a collective as it is, as `additions` gives it: a sum has its own terms."""
    end = op.regions[0].block.last_op
    if isinstance(end, ktdp.YieldPartialOp):
        owner = end.value.owner
        if isinstance(owner, Operation) and not _is_sum(owner) and not owner.name.startswith("scf."):
            loops: Dims = tuple(range(rank(end.value)))
            yield [(end.value, loops)], loops, set()


def _partial(op: Operation) -> Iterator[tuple[SSAValue, set[int]]]:
    """The sums that a contribution enters as it is."""
    end, here = op.regions[0].block.last_op, op.parent_block()
    assert isinstance(end, ktdp.YieldPartialOp)
    assert here is not None
    for total, _ in _met(end, here, tuple(range(rank(end.value)))):
        yield total, set()


def additions(op: Operation) -> Iterator[tuple[list[tuple[SSAValue, Dims]], Dims, set[int]]]:
    """For every term that an op adds: its operands, the result's axes as loops, the loops summed."""
    if not _is_sum(op):
        return
    if op.name in _ADDS:
        loops: Dims = tuple(range(rank(op.results[0])))
        for value in op.operands[:2]:
            owner = value.owner
            if (
                isinstance(owner, Operation)
                and not _is_sum(owner)
                and not isinstance(owner, (scf.ForOp, scf.WhileOp, *BRANCHES))
            ):
                yield [(value, loops)], loops, set()
    elif op.name in CONTRACTIONS:
        a, b, c = CONTRACTIONS[op.name]
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
        kept = tuple(a for a in range(rank(op.operands[0])) if a not in dims)
        yield [(op.operands[0], tuple(range(rank(op.operands[0]))))], kept, dims


def _plain(map_: AffineMap) -> Dims:
    return tuple(e.position if isinstance(e, AffineDimExpr) else None for e in map_.results)


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
    return op.name in _ADDS or op.name in CONTRACTIONS or (isinstance(op, GenericOp) and _folds_by_adding(op))


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
        further = list(_onward(current, axes)) if _collective(current) is None else []
        if not further:
            ends.append((current, set(summed)))
        for following, left in further:
            if following not in seen:
                seen.add(following)
                gone = {d for d in axes if d is not None} - set(left)
                todo.append((following, left, summed | gone))
    return ends


def _onward(value: SSAValue, dims: Dims) -> Iterator[tuple[SSAValue, Dims]]:
    """The values that are `value` and terms besides, wherever `value` comes to be."""
    here = block_of(value)
    for use in value.uses:
        op, index = use.operation, use.index
        if isinstance(op, ktdp.YieldPartialOp):
            yield from _met(op, here, dims)
        elif op.parent_block() is not here:
            # What is made outside of a branch or a loop does not enter what is in it each time.
            continue
        elif isinstance(op, scf.ForOp | scf.WhileOp):
            lane = index - 3 if isinstance(op, scf.ForOp) else index
            if lane >= 0 and (total := _accumulated(op, lane)) is not None:
                yield total, dims
        elif isinstance(op, scf.YieldOp):
            if (total := _yielded(op.parent_op(), index)) is not None:
                yield total, dims
        elif op.name in _CASTS:
            yield op.results[0], dims
        elif op.name in RESHAPES and index == 0:
            if (axes := reshaped(value, dims, op.results[0])) is not None:
                yield op.results[0], axes
        elif _is_sum(op):
            if index in _addends(op):
                yield op.results[0], dims
            elif op.name == "linalg.reduce":
                gone = _reduced_axes(op)
                yield op.results[0], tuple(d for a, d in enumerate(dims) if a not in gone)


def _yielded(parent: Operation | None, lane: int) -> SSAValue | None:
    """The result that what the end of a region yields enters."""
    if isinstance(parent, BRANCHES):
        return parent.results[lane]
    return _accumulated(parent, lane) if isinstance(parent, scf.ForOp | scf.WhileOp) else None


def _addends(op: Operation) -> tuple[int, ...]:
    """The operands of a sum that enter it as they are: both of an addition, the output of anything else."""
    return (0, 1) if op.name in _ADDS else (len(op.operands) - 1,)


def _met(end: ktdp.YieldPartialOp, here: Block, dims: Dims) -> Iterator[tuple[SSAValue, Dims]]:
    """The sums that a core's part enters, of collectives that every core comes to once."""
    produce = end.parent_op()
    assert isinstance(produce, ktdp.InterTileProduceOp)
    outside = produce.parent_block()
    if here not in (outside, end.parent_block()):
        return
    for use in produce.future.uses:
        op = use.operation
        if (
            isinstance(op, ktdp.InterTileReduceOp)
            and op.producer_dependency_per_consumer is None
            and op.parent_block() is outside
            and isinstance(op.parent_op(), func.FuncOp)
            and _adds_up(op.body.block)
            and (axes := reshaped(end.value, dims, op.result)) is not None
        ):
            yield op.result, axes


def _adds_up(block: Block) -> bool:
    """Whether the body of a collective adds its two arguments, into an empty tile where the op wants one."""
    made = [op for op in block.ops if op.name != "tensor.empty"]
    return (
        len(made) == 2
        and made[0].name in _ADDS
        and set(made[0].operands[:2]) == set(block.args)
        and list(made[1].operands) == list(made[0].results)
    )


def _accumulated(loop: scf.ForOp | scf.WhileOp, lane: int) -> SSAValue | None:
    """The result of a loop in a lane whose every iteration yields what it got there, and terms besides."""
    if isinstance(loop, scf.ForOp):
        body, result = loop.body.block, lane
        carried = body.args[1 + lane]
    else:
        passed = loop.before_region.block.last_op
        body = loop.after_region.block
        assert passed is not None
        handed = [v is loop.before_region.block.args[lane] for v in passed.operands[1:]]
        if True not in handed:
            return None
        result = handed.index(True)
        carried = body.args[result]
    end = body.last_op
    assert end is not None
    grows = end.operands[lane] is not carried and _contains(end.operands[lane], carried)
    return loop.results[result] if grows else None


def _contains(value: SSAValue, carried: SSAValue, known: dict[SSAValue, bool] | None = None) -> bool:
    """Whether a value is `carried` and terms besides, with all its axes, whichever branches are taken."""
    known = {carried: True} if known is None else known
    if value not in known:
        known[value] = isinstance(value, OpResult) and any(
            all(_contains(v, carried, known) for v in each) for each in _parts(value)
        )
    return known[value]


def _parts(value: OpResult) -> Iterator[tuple[SSAValue, ...]]:
    """Values that a value is, and terms besides: any of the tuples, all of its members."""
    op = value.owner
    if isinstance(op, BRANCHES):
        ends = [region.block.last_op for region in op.regions]
        yield tuple(end.operands[value.index] for end in ends if end is not None)
    elif isinstance(op, scf.ForOp | scf.WhileOp):
        for lane, init in enumerate(op.iter_args if isinstance(op, scf.ForOp) else op.arguments):
            if _accumulated(op, lane) is value:
                yield (init,)
    elif op.name in _CASTS:
        yield (op.operands[0],)
    elif op.name in RESHAPES:
        if reshaped(op.operands[0], (None,) * rank(op.operands[0]), value) is not None:
            yield (op.operands[0],)
    elif _is_sum(op):
        for index in _addends(op):
            yield (op.operands[index],)
