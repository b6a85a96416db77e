"""Sums that take one element of an argument twice: a loop whose step is smaller than its tile, an index that
stands still, cores whose parts overlap. Recomputing is no fault, nor is a second pass over a row: only what
enters one sum with the same arithmetic twice, each time read anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tracer.ktir.accessed import origins
from tracer.ktir.coverage.accesses import AccessMap, Coverage, Missing, Tracer, traced
from tracer.ktir.coverage.shares import Causes, Shares, contributions
from tracer.ktir.coverage.sums import Term, block_of, terms
from tracer.ktir.diagnostics import Diagnostic, at, location
from tracer.ktir.dialect.intertile_ops import InterTileProduceOp
from tracer.ktir.dialect.ktdp import ConstructAccessTileOp
from tracer.ktir.simulator.groups import Groups
from tracer.ktir.simulator.memory import View
from tracer.ktir.simulator.provenance import views_of
from tracer.ktir.simulator.schedule import guarded
from tracer.ktir.simulator.traceable import Traceable

Point = tuple[int, ...]
Place = tuple[int, int, Point, Point]
"""Position of an argument, and offset, sizes and strides of a view of it."""
Taken = dict[Operation, dict[Place, set[tuple[Point, Point]]]]
"""By load and place: where its tiles begin, and their extents."""


@dataclass(frozen=True)
class Read:
    """One execution of a load: its number, the view's geometry, and the box that it took."""

    turn: int
    view: tuple[Any, ...]
    lo: Point
    extent: Point


@dataclass(frozen=True)
class Step:
    """One execution of a term: what its sources took."""

    term: Term
    core: int
    reads: tuple[Read, ...]


class Adder(Tracer):
    """A tracer that also keeps, for every sum, what its terms read."""

    def __init__(
        self, *args: Any, terms: Sequence[Term], stored: Sequence[int], shares: Shares, **kwargs: Any
    ):
        """Follow these terms, of arguments that the function does not store to, and these shares."""
        super().__init__(*args, **kwargs)
        self.shares = shares
        self._stored = set(stored)
        self._turns = 0
        # Cores take turns where they meet in collectives, so that each has its own loads and sums.
        self._loads = {s.load for t in terms for s in t.sources}
        self._latest: dict[tuple[int, Operation], Read | None] = {}
        self._at: dict[Operation, list[Term]] = defaultdict(list)
        self._begun: dict[Operation, list[SSAValue]] = defaultdict(list)
        self._steps: dict[tuple[int, SSAValue], list[Step]] = defaultdict(list)
        for term in terms:
            self._at[term.op].append(term)
        for total in dict.fromkeys(t.sum for t in terms if t.collective is None):
            self._begun[_first(block_of(total))].append(total)
        self._met = {t.sum: t.collective for t in terms if t.collective is not None}
        self._sound: set[Any] = set()
        self.taken: Taken = {}
        self.untold: set[Operation] = set()
        """Loads of which some elements are not in `taken`."""
        self.repeated: dict[Operation, tuple[Step, Missing, int]] = {}
        """By operation that adds: the step, the elements it took again, and how many it could take."""

    def trace(self, op: Operation, tile: Any) -> None:
        """As in `Tracer`; a load that is followed leaves its box, or None where that is not told."""
        super().trace(op, tile)
        followed = op in self._loads
        if followed or op in self.shares:
            self._turns += 1
            read = self._read(op, tile)
            if read is not None and op in self.shares:
                self.shares.note(op, self.core, read.lo)
            if followed:
                self._latest[self.core, op] = read

    def _read(self, op: Operation, tile: Any) -> Read | None:
        view, symbols, *subscripts = tile
        if not isinstance(view, View) or view.buffer.core is not None:
            return None
        position = self.positions.get(view.buffer.name)
        tile_op = op.operands[0].owner
        assert isinstance(tile_op, ConstructAccessTileOp)
        box = self.box_of(tile_op, symbols)
        if position is None or position in self._stored or box is None or 0 in box.shape:
            return None
        lo = tuple(s + b for s, b in zip(subscripts, box.lo, strict=True))
        return Read(self._turns, (view.buffer.name, view.offset, view.strides), lo, box.shape)

    def _box(self, op: Operation, view: View, lo: Point, extent: Point, store: bool) -> None:
        super()._box(op, view, lo, extent, store)
        position = self.positions.get(view.buffer.name)
        if store or position is None or view.buffer.core is not None or 0 in extent:
            return
        place = (position, view.offset, view.sizes, view.strides)
        self.taken.setdefault(op, {}).setdefault(place, set()).add((lo, extent))

    def _points(self, op: Operation, view: View, addresses: np.ndarray, store: bool) -> None:
        super()._points(op, view, addresses, store)
        self.untold.add(op)

    def marked(self, op: Operation) -> None:
        """A block begins, with new sums; a term is added."""
        for total in self._begun.get(op, ()):
            self._settle(self._steps.pop((self.core, total), []))
        for term in self._at.get(op, ()):
            reads = tuple(self._latest.get((self.core, s.load)) for s in term.sources)
            if None not in reads:
                self._steps[self.core, term.sum].append(Step(term, self.core, reads))  # type: ignore[arg-type]

    def finish(self) -> None:
        """Settle the sums that no block begins anew, those of several cores together."""
        for total, met in self._met.items():
            produce = met.future.owner
            assert isinstance(produce, InterTileProduceOp)
            members = self.members(produce)
            taken = set(guarded(self, partial(self.consumers, met), met).values()) if members else set()
            for group in sorted(set(members.values()) & taken):
                parts = [self._steps.get((core, total), []) for core in members if members[core] == group]
                self._settle([step for part in parts for step in part])
        for (_, total), steps in self._steps.items():
            if total not in self._met:
                self._settle(steps)

    def members(self, produce: Operation) -> Groups:
        """Group of every producer core; none where no core came to the collective."""
        return self._members.get(produce, {})

    def _settle(self, steps: Sequence[Step]) -> None:
        """Look for elements that one sum took twice."""
        groups: dict[Any, list[tuple[Step, Point, Point]]] = defaultdict(list)
        for step in steps:
            start, extent, rest = _place(step)
            groups[step.term.formula, step.term.summed, rest].append((step, start, extent))
        for group in groups.values():
            read_anew: dict[tuple[int, ...], tuple[Step, Point, Point]] = {}
            for step, start, extent in group:
                read_anew.setdefault(tuple(r.turn for r in step.reads), (step, start, extent))
            if len(read_anew) > 1:
                self._judge(list(read_anew.values()))

    def _judge(self, group: Sequence[tuple[Step, Point, Point]]) -> None:
        low = tuple(min(start[a] for _, start, _ in group) for a in range(len(group[0][1])))
        boxes = [
            (tuple(s - n for s, n in zip(start, low, strict=True)), extent) for _, start, extent in group
        ]
        if (shape := tuple(boxes)) in self._sound:
            return
        sizes = tuple(max(b + n for b, n in zip(*axis, strict=True)) for axis in _by_axis(boxes))
        strides = tuple(int(np.prod(sizes[a + 1 :], dtype=np.int64)) for a in range(len(sizes)))
        twice = AccessMap({(0, sizes, strides): boxes}).missing(sizes, strides, wanted="many")
        if not twice or twice.first is None:
            self._sound.add(shape)
            return
        first = tuple(i + n for i, n in zip(twice.first, low, strict=True))
        took = [step for step, start, extent in group if _holds(start, extent, first)]
        self.repeated.setdefault(took[-1].term.op, (took[-1], Missing(twice.count, first), _volume(sizes)))


@dataclass(frozen=True)
class Trace:
    """What a trace of a function found out about its sums."""

    coverage: Coverage
    findings: tuple[Diagnostic, ...]
    """Warnings KT305 of sums that take an element more than once, and KT213 of cores that contribute to
    nothing.
    """
    terms: tuple[Term, ...]
    divided: Causes
    taken: Taken
    untold: frozenset[Operation]
    """Loads that take elements one by one, which `taken` does not hold."""
    repeated: frozenset[Operation]
    """Operations that sum an element more than once."""


def repetition(
    function: Traceable, args: Sequence[Any] | None, *, grid: Sequence[int] | None, max_steps: int
) -> Trace:
    """Trace a function and its sums. Raises as `coverage` does."""
    found, loads = terms(function.op), contributions(function.op)
    marks = {t.op for t in found} | {_first(block_of(t.sum)) for t in found}
    kind = partial(Adder, terms=found, stored=function.stored, shares=Shares(loads))
    tracer = traced(function, args, kind, grid=grid, max_steps=max_steps, marks=marks)
    tracer.finish()
    findings = (*tracer.diagnostics(), *_warnings(tracer))
    divided = tracer.shares.divided(tracer.members)
    return Trace(
        tracer.coverage,
        findings,
        found,
        divided,
        tracer.taken,
        frozenset(tracer.untold),
        frozenset(tracer.repeated),
    )


def _first(block: Block) -> Operation:
    assert block.first_op is not None
    return block.first_op


def _place(step: Step) -> tuple[Point, Point, Any]:
    """Where a step is along the loops that its sum runs over, and all that must agree for two steps to share
    an element.
    """
    begin: dict[int, tuple[int, int]] = {}
    rest: list[Any] = []
    for source, read in zip(step.term.sources, step.reads, strict=True):
        rest.append(read.view)
        for axis, start, extent in zip(source.axes, read.lo, read.extent, strict=True):
            if axis is not None and axis in step.term.summed:
                start -= begin.setdefault(axis, (start, extent))[0]
            rest.append(start)
    places = [begin.get(loop, (0, 1)) for loop in step.term.summed]
    return tuple(p for p, _ in places), tuple(n for _, n in places), tuple(rest)


def _by_axis(boxes: Sequence[tuple[Point, Point]]) -> Iterator[tuple[list[int], list[int]]]:
    for axis in range(len(boxes[0][0])):
        yield [lo[axis] for lo, _ in boxes], [extent[axis] for _, extent in boxes]


def _holds(start: Point, extent: Point, point: Point) -> bool:
    return all(b <= i < b + n for b, n, i in zip(start, extent, point, strict=True))


def _volume(sizes: Point) -> int:
    return int(np.prod(sizes, dtype=np.int64))


def _warnings(tracer: Adder) -> Iterator[Diagnostic]:
    """Warnings KT305, one for each operation that adds, at the load that reads again."""
    for op, (step, twice, total) in tracer.repeated.items():
        assert twice.first is not None
        where = dict(zip(step.term.summed, twice.first, strict=True))
        index = max(
            range(len(step.reads)),
            key=lambda i: sum(a in where for a in step.term.sources[i].axes),
        )
        source, read = step.term.sources[index], step.reads[index]
        point = tuple(
            where[axis] if axis is not None and axis in where else lo
            for axis, lo in zip(source.axes, read.lo, strict=True)
        )
        loop, tile = op.parent_op(), source.load.operands[0].owner
        assert isinstance(tile, ConstructAccessTileOp)
        # Where a view begins decides, too, which elements its tiles take.
        made = origins([*tile.indices, *(p for p in views_of(tile.results[0]) if isinstance(p, OpResult))])
        hint = f"the tile in line {location(tile)[1]}" + (f" ({', '.join(made)})" if made else "")
        if isinstance(loop, scf.ForOp):
            hint = f"bounds and step of the loop in line {location(loop)[1]}, and {hint}"
        if (met := step.term.collective) is not None:
            hint += f", and the part of each core that {met.name} in line {location(met)[1]} adds"
        much = f"{twice.count} of {total} positions" if total > 1 else "what it reads"
        text = (
            f"{op.name} in line {location(op)[1]} sums {much} of {read.view[0]} more than once"
            f" (check {hint}); the first is"
        )
        yield at(source.load, "KT305", text, "warning", coordinates=point, core=step.core)
