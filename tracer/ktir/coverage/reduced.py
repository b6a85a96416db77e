"""Which loads one reduced value takes: what enters it in loops, beside them and on several branches, apart
from what enters another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect import ktdp
from tracer.ktir.dialect.extra_ops import CONTRACTIONS
from tracer.ktir.slices import sources

_SCALES = ("arith.mulf", "arith.divf", "arith.muli", "linalg.mul", "linalg.div")
_SHIFTS = ("arith.subf", "arith.subi", "linalg.sub")
_WIDENS = ("linalg.broadcast", "tensor.splat", "linalg.fill")
_SAME = ("arith.extf", "arith.truncf", "tensor.cast", "tensor.expand_shape", "tensor.collapse_shape")


def reduced_operands(op: Operation) -> Sequence[SSAValue]:
    """The operands whose elements `op` combines along some of its loops; none where it combines nothing."""
    if isinstance(op, GenericOp):
        loops = set(range(op.indexing_maps.data[-1].data.num_dims))
        kept = [m.data.used_dims() for m in op.indexing_maps.data[len(op.inputs) :]]
        return list(op.inputs) if any(loops - set(used) for used in kept) else []
    if op.name in CONTRACTIONS:
        return list(op.operands)[:2]
    if op.name == "linalg.reduce":
        return list(op.operands)[: len(op.operands) // 2]
    return []


class _Sets:
    """Values that are parts of one another, joined into sets."""

    def __init__(self) -> None:
        self._above: dict[SSAValue, SSAValue] = {}

    def of(self, value: SSAValue) -> SSAValue:
        while (above := self._above.get(value, value)) is not value:
            value = above
        return value

    def join(self, one: SSAValue, other: SSAValue) -> None:
        first, second = self.of(one), self.of(other)
        if first is not second:
            self._above[first] = second


def companions(function: func.FuncOp) -> list[tuple[ktdp.LoadOp, ...]]:
    """The loads of a function, those together whose elements meet in one reduced value.

    What scales a value, or is taken from it, does not enter it: the sum of squares that a row is divided by
    is another reduction than the one over what is left, and so are two products that are multiplied.
    """
    loads = [op for op in function.walk() if isinstance(op, ktdp.LoadOp)]
    carried = _reached(loads)
    sets = _Sets()
    for op in function.walk():
        for result in op.results:
            if result in carried:
                for part in _parts(op, result, carried):
                    sets.join(result, part)
        for argument in (a for region in op.regions for block in region.blocks for a in block.args):
            if argument in carried and op.name.startswith("scf."):
                for part in sources(argument):
                    if part in carried:
                        sets.join(argument, part)
    found: dict[SSAValue, list[ktdp.LoadOp]] = defaultdict(list)
    for load in loads:
        found[sets.of(load.results[0])].append(load)
    return [tuple(group) for group in found.values()]


def _reached(loads: Sequence[ktdp.LoadOp]) -> set[SSAValue]:
    """Values that are computed from loads."""
    todo: list[SSAValue] = [r for load in loads for r in load.results]
    found = set(todo)
    while todo:
        for use in todo.pop().uses:
            for value in _onward(use.operation, use.index):
                if value not in found:
                    found.add(value)
                    todo.append(value)
    return found


def _onward(op: Operation, index: int) -> Iterator[SSAValue]:
    yield from op.results
    parent = op.parent_op()
    if isinstance(op, scf.ForOp) and index >= 3:
        yield op.body.block.args[index - 2]
    elif isinstance(op, scf.YieldOp) and isinstance(parent, scf.ForOp):
        yield parent.results[index]
        yield parent.body.block.args[1 + index]
    elif not op.results and parent is not None and op.next_op is None:
        yield from parent.results
        yield from (a for r in parent.regions for b in r.blocks for a in b.args)


def _parts(op: Operation, result: SSAValue, carried: set[SSAValue]) -> Iterator[SSAValue]:
    """The values that a result is made of, and not merely scaled or shifted by."""
    inputs = reduced_operands(op)
    if inputs:
        yield from (v for v in op.operands if v in carried and v not in inputs)
        for value in inputs:
            yield from _taken(value, carried)
    elif op.name in _SHIFTS:
        yield from (v for v in op.operands[:1] if v in carried)
    elif op.name in _SCALES:
        whole = [v for v in op.operands[:2] if v in carried and not _widened(v)]
        yield from whole[:1] if len(set(whole)) == 1 else ()
    elif not isinstance(op, ktdp.LoadOp):
        yield from (v for v in sources(result) if v in carried)


def _taken(value: SSAValue, carried: set[SSAValue]) -> Iterator[SSAValue]:
    """An operand of a reduction, and the loads behind it that no other reduction took first."""
    todo, passed = [value], set[SSAValue]()
    while todo:
        current = todo.pop()
        if current in passed or current not in carried:
            continue
        passed.add(current)
        owner = current.owner
        if isinstance(owner, ktdp.LoadOp):
            yield current
        elif (
            isinstance(owner, Operation) and not owner.name.startswith("scf.") and not reduced_operands(owner)
        ):
            todo += [v for v in owner.operands if isinstance(v.type, TensorType)]
    if value in carried:
        yield value


def _widened(value: SSAValue) -> bool:
    """Whether a tile repeats one of fewer axes."""
    owner = value.owner
    while isinstance(owner, Operation) and owner.name in _SAME:
        value = owner.operands[0]
        owner = value.owner
    return isinstance(owner, Operation) and owner.name in _WIDENS
