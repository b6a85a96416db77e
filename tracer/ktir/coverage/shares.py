"""Axes along which the cores of a collective take different parts of an argument, which it then combines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.groups import reduces_of
from tracer.ktir.slices import sources

Causes = dict[Operation, dict[int, Operation]]
"""By load: axes of its view that something combines, and what does."""


def contributions(function: func.FuncOp) -> dict[Operation, ktdp.InterTileProduceOp]:
    """Loads whose values reach what a core contributes to a collective."""
    found: dict[Operation, ktdp.InterTileProduceOp] = {}
    for op in function.walk():
        if isinstance(op, ktdp.InterTileProduceOp) and reduces_of(op) and op.body.block.last_op is not None:
            for load in loads_behind(op.body.block.last_op.operands):
                found.setdefault(load, op)
    return found


def loads_behind(values: Sequence[SSAValue]) -> Iterator[ktdp.LoadOp]:
    """The loads that values are computed from."""
    todo, passed = list(values), set[SSAValue]()
    while todo:
        value = todo.pop()
        if value in passed:
            continue
        passed.add(value)
        if isinstance(value.owner, ktdp.LoadOp):
            yield value.owner
        else:
            todo += sources(value)


class Shares:
    """Where the tiles of some loads begin on every core."""

    def __init__(self, loads: Mapping[Operation, ktdp.InterTileProduceOp]):
        self._loads = loads
        self._starts: dict[Operation, dict[int, list[set[int]]]] = defaultdict(dict)

    def __contains__(self, load: Operation) -> bool:
        return load in self._loads

    def note(self, load: Operation, core: int, start: Sequence[int]) -> None:
        """A core loads a tile that begins there."""
        seen = self._starts[load].setdefault(core, [set() for _ in start])
        for places, begin in zip(seen, start, strict=True):
            places.add(begin)

    def divided(self, members: Callable[[ktdp.InterTileProduceOp], Mapping[int, int]]) -> Causes:
        """The axes along which two producers of one group begin elsewhere; `members` gives the producers'
        groups.
        """
        found: Causes = {}
        for load, by_core in self._starts.items():
            produce = self._loads[load]
            groups = members(produce)
            for axis in range(len(next(iter(by_core.values())))):
                places: dict[int, set[frozenset[int]]] = defaultdict(set)
                for core in by_core.keys() & groups.keys():
                    places[groups[core]].add(frozenset(by_core[core][axis]))
                if any(len(several) > 1 for several in places.values()):
                    found.setdefault(load, {})[axis] = produce
        return found
