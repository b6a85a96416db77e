"""Reads of what `tensor.empty` holds, where only a place for a result is meant: directly, and through the
values that loops begin with, that branches yield and that loops hand on.

Only what a run reads if it comes there at all is reported: what a loop reads in its first iteration whenever
it reads it in any, and what no `arith.select` may drop afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.linalg.ops import GenericOp, ReduceOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tracer.ktir.diagnostics import Diagnostic, at, location
from tracer.ktir.dialect import ktdp
from tracer.ktir.dialect.arith_ops import SelectOp
from tracer.ktir.dialect.region_ops import BRANCHES
from tracer.ktir.slices import ends, sources

_LOOPS = (scf.ForOp, scf.WhileOp)


@dataclass(frozen=True)
class Begin:
    """Where a value without defined elements comes from."""

    empty: EmptyOp
    by: tuple[Operation, ...] = ()
    """Loops in whose first iteration alone it is undefined, and branches that may yield another."""


Known = dict[SSAValue, Begin | None]
"""What was found out about values, so that each is followed once."""


def undefined_reads(op: Operation, known: Known) -> Iterable[Diagnostic]:
    """Warnings KT204, at most one for an operation."""
    for value in _read(op):
        begin = _begin(value, known)
        if begin is None or not _happens(op, begin.by):
            continue
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        text = f"{name} comes from tensor.empty in line {location(begin.empty)[1]}"
        if begin.by:
            text += f" through {', '.join(f'{o.name} in line {location(o)[1]}' for o in begin.by)}"
        yield at(op, "KT204", f"{text}: its elements are undefined until something fills them", "warning")
        return


def _read(op: Operation) -> Sequence[SSAValue]:
    if isinstance(op, GenericOp):
        # A body that chooses may read an element and not use it.
        chooses = any(isinstance(o, SelectOp) or o.name.startswith("scf.") for o in op.body.walk())
        pairs = zip(op.operands, op.body.block.args, strict=True)
        return [] if chooses else [value for value, argument in pairs if argument.uses]
    computes = op.name.startswith(("arith.", "math.")) or op.name in ktdp.CONTRACTIONS
    if computes or isinstance(op, ReduceOp | ktdp.ReduceManyOp):
        return op.operands
    if isinstance(op, ktdp.StoreOp):
        return (op.data,)
    return op.inputs if isinstance(op, ktdp.NamedLinalgOp) else ()


def _begin(value: SSAValue, known: Known) -> Begin | None:
    if value not in known:
        known[value] = _followed(value, known)
    return known[value]


def _followed(value: SSAValue, known: Known) -> Begin | None:
    owner = value.owner
    if isinstance(owner, EmptyOp):
        return Begin(owner)
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        if isinstance(loop, scf.WhileOp) and value.owner is loop.after_region.block:
            return _begin(ends(loop.before_region)[1 + value.index], known)
        first = _initial(value)
        begin = _begin(first, known) if first is not None else None
        return Begin(begin.empty, (*begin.by, loop)) if begin and loop is not None else None
    assert isinstance(value, OpResult)
    if isinstance(owner, scf.ForOp):
        handed_on = owner.body.block.args[1 + value.index]
        same = ends(owner.body)[value.index] is handed_on
        return _begin(owner.iter_args[value.index], known) if same else None
    if not isinstance(owner, BRANCHES):
        return None
    yielded = [_begin(ends(region)[value.index], known) for region in owner.regions if region.blocks]
    found = [begin for begin in yielded if begin is not None]
    if not found:
        return None
    begin = min(found, key=lambda b: len(b.by))
    always = len(found) == len(yielded) and not any(b.by for b in found)
    return begin if always or len(yielded) == 1 else Begin(begin.empty, (*begin.by, owner))


def _initial(argument: BlockArgument) -> SSAValue | None:
    loop = argument.owner.parent_op()
    if isinstance(loop, scf.ForOp) and argument.index:
        return loop.iter_args[argument.index - 1]
    return loop.arguments[argument.index] if isinstance(loop, scf.WhileOp) else None


def _happens(op: Operation, by: Sequence[Operation]) -> bool:
    """Whether a read of what came this way is one, if it is reached at all, and counts."""
    loops = [o for o in by if isinstance(o, _LOOPS)]
    branches = [o for o in by if not isinstance(o, _LOOPS)]
    for loop in loops:
        controls = [c for parent, inner in _around(op, loop) for c in _controls(parent, inner)]
        controls += [branch.operands[0] for branch in branches]
        if any(_varies(c, loop) for c in controls):
            return False
    for branch in branches:
        if _constant(branch.operands[0]) is not None:
            return False
        if not all(_always(parent) for parent, _ in _around(op, branch.parent_op())):
            return False
    return not by or not any(branches or any(_varies(s.cond, n) for n in loops) for s in _selects(op, by))


def _around(op: Operation, outermost: Operation | None) -> Iterator[tuple[Operation, Operation]]:
    """The operations around `op` inside of `outermost`, each with the operation in it that leads to `op`."""
    inner, parent = op, op.parent_op()
    while parent is not None and parent is not outermost:
        yield parent, inner
        inner, parent = parent, parent.parent_op()


def _controls(op: Operation, inner: Operation) -> Sequence[SSAValue]:
    """What decides whether `op` comes to `inner`, an operation in one of its regions."""
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step)
    if isinstance(op, scf.WhileOp):
        return ends(op.before_region)[:1] if inner.parent_region() is op.after_region else ()
    return op.operands


def _always(op: Operation) -> bool:
    if isinstance(op, scf.ForOp):
        lower, upper = _constant(op.lb), _constant(op.ub)
        return lower is not None and upper is not None and lower < upper
    return isinstance(op, scf.ExecuteRegionOp)


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _varies(value: SSAValue, loop: Operation) -> bool:
    """Whether an iteration of `loop` may see another value than the one before it."""
    todo, passed = [value], set[SSAValue]()
    while todo:
        current = todo.pop()
        if current in passed:
            continue
        passed.add(current)
        inside = current.owner.parent_op() is loop if isinstance(current, BlockArgument) else False
        if inside or isinstance(current.owner, ktdp.LoadOp):
            return True
        todo += sources(current)
    return False


def _selects(op: Operation, by: Sequence[Operation]) -> Iterator[SelectOp]:
    """Selections that what `op` computes comes to, before a loop in `by` goes on."""
    todo, passed = [op], set[Operation]()
    while todo:
        current = todo.pop()
        if current in passed or current in by:
            continue
        passed.add(current)
        if isinstance(current, SelectOp):
            yield current
        parent = current.parent_op()
        if isinstance(current, scf.YieldOp) and parent is not None:
            todo.append(parent)
        todo += [use.operation for result in current.results for use in result.uses]
