"""One copy of a body for every combination of whole and ragged dimensions, each under its condition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from tracer.ktir.dialect.arith_ops import CmpiOp
from tracer.lower.analysis.accesses import Edge, block_shape, distinct, extents, inexact, lane_codes
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import Emitter, clone_ops, erase, is_pure, operations
from tracer.lower.manager import Job

_MAX_CASES = 16


@dataclass(frozen=True)
class _Group:
    """Neighbouring values of one offset whose lanes are equal. None: no bound on that side is needed."""

    low: int
    high: int
    at_least: int | None
    below: int | None


def write_cases(block: Block, found: Sequence[Edge], scalars: Scalars, job: Job) -> None:
    """Replace the parts of `block` that hold ragged accesses by guarded copies, one per case that occurs.

    Raises InexactTileError when there are too many.
    """
    front = _front(block)
    for cluster in _clusters(block, front):
        inside = set(cluster)
        own = [edge for edge in found if _ancestor_in(edge.access, block) in inside]
        if own:
            _guard(block, cluster, front, own, scalars, job)


def _guard(
    block: Block,
    cluster: list[Operation],
    front: set[Operation],
    found: Sequence[Edge],
    scalars: Scalars,
    job: Job,
) -> None:
    offsets = distinct([edge.offset for edge in found])
    if any(_ancestor_in(offset.owner, block) not in front for offset in offsets if _within(offset, block)):
        raise inexact(
            found[0].access, job, "its extent depends on an offset computed inside a loop of its own"
        )
    terminator = block.last_op
    assert terminator is not None
    values = scalars.at(offsets, terminator)
    if values is None:
        raise inexact(found[0].access, job, "its offsets have too many combinations")
    groups = [_groups(offset, found, v, job) for offset, v in zip(offsets, values, strict=True)]
    member = [_membership(v, g) for v, g in zip(values, groups, strict=True)]
    cases = sorted({tuple(map(int, row)) for row in np.stack(member, axis=1)})
    if len(cases) > _MAX_CASES:
        raise inexact(found[0].access, job, f"its dimensions fit their views in {len(cases)} different ways")
    anchor = cluster[-1].next_op
    assert anchor is not None
    conditions = _Conditions(Emitter(anchor), {})
    for case in cases:
        chosen = [(o, g[i]) for o, g, i in zip(offsets, groups, case, strict=True)]
        guard = conditions.of(chosen)
        ending = scf.YieldOp()
        Emitter(anchor).insert(scf.IfOp(guard, [], Region(Block([ending]))))
        known = {
            offset: Emitter(ending).integer(group.low, offset.type)
            for offset, group in chosen
            if group.low == group.high
        }
        inside = ending.parent_block()
        assert inside is not None
        for copy in clone_ops(cluster, dict(known)):
            inside.insert_op_before(copy, ending)
    for op in reversed(cluster):
        erase(op)


def _clusters(block: Block, front: set[Operation]) -> list[list[Operation]]:
    """Runs of operations that share no tensor with each other, in order; effects keep their order."""
    ops = [op for op in block.ops if op not in front and op is not block.last_op]
    position = {op: index for index, op in enumerate(ops)}
    start = list(range(len(ops)))
    for index, op in enumerate(ops):
        for inner in operations(op):
            for operand in inner.operands:
                source = _ancestor_in(operand.owner, block)
                if source in position and position[source] < start[index]:
                    start[index] = position[source]
    runs: list[list[Operation]] = []
    reach = len(ops)
    for index in reversed(range(len(ops))):
        # An op belongs to the run of the next one if anything from there on uses it or what comes before it.
        if runs and reach <= index:
            runs[0].insert(0, ops[index])
        else:
            runs.insert(0, [ops[index]])
            reach = index
        reach = min(reach, start[index])
    return runs


def _ancestor_in(inner: Operation | Block, block: Block) -> Operation | None:
    """The operation of `block` that is or holds `inner`."""
    op = inner if isinstance(inner, Operation) else inner.parent_op()
    while op is not None and op.parent_block() is not block:
        op = op.parent_op()
    return op


def _within(value: SSAValue, block: Block) -> bool:
    return value.owner is not block and _ancestor_in(value.owner, block) is not None


def _front(block: Block) -> set[Operation]:
    """Operations on scalars and views that need nothing but each other: all cases share them."""
    front: set[Operation] = set()
    for op in block.ops:
        if op.regions or op.has_trait(IsTerminator) or not is_pure(op):
            continue
        if any(isinstance(r.type, TensorType) for r in op.results):
            continue
        if all(not _within(o, block) or o.owner in front for o in op.operands):
            front.add(op)
    return front


def _groups(offset: SSAValue, found: Sequence[Edge], values: np.ndarray[Any, Any], job: Job) -> list[_Group]:
    unique = np.unique(values)
    codes = []
    for edge in found:
        if edge.offset is not offset:
            continue
        shape, view = block_shape(edge.access), extents(edge.access, job)
        codes += [
            lane_codes(unique, block, extent)
            for index, block, extent in zip(edge.access.indices, shape, view, strict=True)
            if index is offset
        ]
    table = np.stack(codes)
    starts = [0, *(np.flatnonzero((np.diff(table, axis=1) != 0).any(axis=0)) + 1).tolist(), len(unique)]
    return [
        _Group(
            low=int(unique[a]),
            high=int(unique[b - 1]),
            at_least=None if a == 0 else int(unique[a]),
            below=None if b == len(unique) else int(unique[b]),
        )
        for a, b in itertools.pairwise(starts)
    ]


def _membership(values: np.ndarray[Any, Any], groups: list[_Group]) -> np.ndarray[Any, Any]:
    return np.searchsorted(np.array([g.low for g in groups]), values, side="right") - 1


@dataclass
class _Conditions:
    """Comparisons, each written once."""

    emitter: Emitter
    written: dict[tuple[SSAValue, str, int], SSAValue]

    def of(self, chosen: Sequence[tuple[SSAValue, _Group]]) -> SSAValue:
        """The conjunction that says that every offset lies in its group."""
        parts = []
        for offset, group in chosen:
            if group.at_least is not None and group.below is None and group.low == group.high:
                parts.append(self._compare(offset, "eq", group.low))
                continue
            if group.at_least is not None:
                parts.append(self._compare(offset, "sge", group.at_least))
            if group.below is not None:
                parts.append(self._compare(offset, "slt", group.below))
        guard = parts[0]
        for part in parts[1:]:
            guard = self.emitter.emit(arith.AndIOp(guard, part), "inside")
        return guard

    def _compare(self, offset: SSAValue, word: str, bound: int) -> SSAValue:
        key = (offset, word, bound)
        if key not in self.written:
            hint = f"{offset.name_hint or 'offset'}_{'is_last' if word == 'eq' else 'inside'}"
            constant = self.emitter.integer(bound, offset.type)
            self.written[key] = self.emitter.emit(CmpiOp(offset, constant, word), hint)
        return self.written[key]
