"""Contractions and reductions that take a part of an axis: one that nobody reads whole, and one that another
reading of the same function takes further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.accessed import origins, value_name
from tracer.ktir.coverage.accesses import AccessMap
from tracer.ktir.coverage.formulas import Reader, Undecided
from tracer.ktir.coverage.reduced import companions, reduced_operands
from tracer.ktir.coverage.repeats import Place, Trace
from tracer.ktir.coverage.shares import loads_behind
from tracer.ktir.coverage.sums import additions, block_of
from tracer.ktir.diagnostics import Diagnostic, at, location
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.traceable import Traceable
from tracer.ktir.slices import behind

Argument = tuple[int, str, tuple[int, ...], tuple[int, ...]]
Causes = dict[Operation, dict[int, Callable[[Operation], str]]]
"""By load: the axes of its view that something sums over, and what to say of a load of a part."""


def operand_findings(
    function: Traceable, trace: Trace, arguments: Iterable[Argument]
) -> Iterator[Diagnostic]:
    """Warnings KT303 at the loads whose contraction leaves out positions of an axis.

    `arguments` are position, name, sizes and strides of those that are viewed as they come.
    """
    groups: dict[Operation, Sequence[Operation]] = {
        load: group for group in companions(function.op) for load in group
    }
    fed = _contracted(function)
    causes = _summed(function, trace, fed)
    for position, name, sizes, strides in arguments:
        reads = trace.coverage.reads.get(position, AccessMap())
        boxes = reads.boxes.get((0, sizes, strides), [])
        if position in function.stored or not boxes:
            continue
        place = (position, 0, sizes, strides)
        alone = len(reads.boxes) == 1 and not reads.points
        for load, axes in causes.items():
            if place not in trace.taken.get(load, {}):
                continue
            for axis, cause in axes.items():
                spans = {(lo[axis], lo[axis] + n[axis]) for lo, n in boxes} if alone else {(0, sizes[axis])}
                taken = _covered(spans, sizes[axis])
                text = "are never read"
                if taken.all():
                    own = [o for o in groups.get(load, ()) if o is load or o in fed]
                    further = _further(trace, place, axis, own, groups) if _steady(load, axis) else None
                    if further is None:
                        continue
                    other, taken = further
                    text = f"are left out here, and read in line {location(other)[1]}"
                left = np.flatnonzero(~taken)
                much = f"{len(left)} of {len(taken)} positions of {name} along axis {axis}"
                text = f"{much} {text}: {cause(load)}; the first is"
                yield at(load, "KT303", text, "warning", coordinates=(int(left[0]),))


def _further(
    trace: Trace,
    place: Place,
    axis: int,
    own: Sequence[Operation],
    groups: Mapping[Operation, Sequence[Operation]],
) -> tuple[Operation, np.ndarray] | None:
    """A load that belongs to another reading, which takes all that `own` take and more, and what they take;
    None where there is none.

    Parts that do not hold one another are meant, as halves and windows are.
    """
    if any(load in trace.untold for load in own):
        return None
    extent = place[2][axis]
    taken = _along(trace, place, axis, own, extent)
    others: dict[int, list[Operation]] = {}
    for load in trace.taken:
        if load not in own:
            group = groups.get(load, (load,))
            others.setdefault(id(load if group is groups.get(own[0]) else group), []).append(load)
    for loads in others.values():
        more = _along(trace, place, axis, loads, extent)
        if not (taken & ~more).any() and (more & ~taken).any():
            return next(o for o in loads if (_along(trace, place, axis, [o], extent) & ~taken).any()), (
                taken | ~more
            )
    return None


def _along(trace: Trace, place: Place, axis: int, loads: Iterable[Operation], extent: int) -> np.ndarray:
    boxes = [box for load in loads for box in trace.taken.get(load, {}).get(place, ())]
    return _covered({(lo[axis], lo[axis] + n[axis]) for lo, n in boxes}, extent)


def _covered(spans: Iterable[tuple[int, int]], extent: int) -> np.ndarray:
    covered = np.zeros(extent, dtype=bool)
    for begin, end in spans:
        covered[begin:end] = True
    return covered


def _steady(load: Operation, axis: int) -> bool:
    """Whether an axis is walked along in a loop that is the same wherever it runs, so that no core and no
    iteration outside means to take less.
    """
    loop = _moved(load).get(axis)
    parent = load.parent_op() if loop is not None else None
    while loop is not None and parent is not None and parent is not loop.parent_op():
        bounds: Sequence[SSAValue] = ()
        if isinstance(parent, scf.ForOp):
            bounds = (parent.lb, parent.ub, parent.step)
        elif isinstance(parent, scf.IfOp):
            bounds = (parent.cond,)
        if any(_varies(value, loop) for value in bounds):
            return False
        parent = parent.parent_op()
    return loop is not None


def _varies(value: SSAValue, loop: Operation) -> bool:
    """Whether a bound depends on a core, on data or on a loop around this one."""
    for source in behind(value):
        owner = source.owner
        if isinstance(owner, ktdp.LoadOp | ktdp.GetComputeTileIdOp):
            return True
        parent = owner.parent_op() if isinstance(owner, Block) else None
        if parent is not None and parent.name.startswith("scf.") and not loop.is_ancestor(parent):
            return True
    return False


def _summed(function: Traceable, trace: Trace, fed: Mapping[Operation, Operation]) -> Causes:
    found: Causes = {}
    for load, contraction in fed.items():
        for axis, loop in _moved(load).items():
            check = f"bounds and step of the loop in line {location(loop)[1]}"
            found.setdefault(load, {})[axis] = partial(_takes, contraction, check)
    for load, parts in trace.divided.items():
        for axis, produce in parts.items():
            found.setdefault(load, {}).setdefault(axis, partial(_together, produce))
    # What is multiplied with something that moves along a sum must move with it.
    for term in trace.terms:
        for number in term.summed:
            along = [(s.load, axis) for s in term.sources for axis, of in enumerate(s.axes) if of == number]
            texts = [found[load][axis] for load, axis in along if axis in found.get(load, {})]
            for load, axis in along if texts and len({_extent(*each) for each in along}) == 1 else ():
                found.setdefault(load, {}).setdefault(axis, texts[0])
    for op in function.op.walk():
        for load, axis in _alike(op, trace) if op not in trace.repeated else ():
            found.setdefault(load, {}).setdefault(axis, partial(_takes, op, ""))
    return found


def _together(produce: Operation, load: Operation) -> str:
    """What to say of a load whose parts on several cores leave something out."""
    return (
        f"the cores that meet at {produce.name} in line {location(produce)[1]} take a part together"
        f" (check the grid, its producers, and the tile in line {location(load.operands[0].owner)[1]})"  # type: ignore[arg-type]
    )


def _takes(contraction: Operation, check: str, load: Operation) -> str:
    """`linalg.matmul in line 21 sums over a part (%a, loaded here, feeds it; check the tile in line 15)`."""
    tile = load.operands[0].owner
    parts = [check] if check else []
    if isinstance(tile, ktdp.ConstructAccessTileOp):
        # A loop around the load is named with its bounds.
        parts += [o for o in origins(tile.indices) if not (check and o.startswith("scf.for"))]
    line = location(tile)[1] if isinstance(tile, Operation) else 0
    check = ", ".join([*parts, ""]) + ("and " if parts else "") + f"the tile in line {line}"
    return (
        f"{contraction.name} in line {location(contraction)[1]} sums over a part"
        f" ({value_name(load.results[0])}, loaded here, feeds it; check {check})"
    )


def _alike(op: Operation, trace: Trace) -> Iterator[tuple[Operation, int]]:
    """The loads that meet in a contraction, and the axes that it sums over, where all of them take the same
    part of axes of one extent: a tile that is a part of one operand alone may be meant.
    """
    for operands, _, reduced in additions(op) if len(reduced_operands(op)) > 1 else ():
        reader = Reader(block_of(op.results[0]), {})
        try:
            for value, dims in operands:
                reader.read(value, dims)
        except Undecided:
            continue
        for number in reduced:
            along = [(s.load, axis) for s in reader.sources for axis, of in enumerate(s.axes) if of == number]
            parts = {(_extent(load, axis), *sorted(_spans(trace, load, axis))) for load, axis in along}
            if len({load.tile for load, _ in along}) > 1 and len(parts) == 1:
                yield from along


def _spans(trace: Trace, load: Operation, axis: int) -> set[tuple[int, int]]:
    boxes = [box for boxes in trace.taken.get(load, {}).values() for box in boxes]
    return {(lo[axis], lo[axis] + n[axis]) for lo, n in boxes}


def _extent(load: Operation, axis: int) -> int:
    tile = load.operands[0].owner
    assert isinstance(tile, ktdp.ConstructAccessTileOp)
    return tile.base.type.get_shape()[axis]  # type: ignore[attr-defined]


def _moved(load: Operation) -> dict[int, Operation]:
    """Axes of a loaded view whose subscript moves with a loop that carries a partial result."""
    tile = load.operands[0].owner
    found: dict[int, Operation] = {}
    loop = load.parent_op()
    while loop is not None and isinstance(tile, ktdp.ConstructAccessTileOp):
        if isinstance(loop, scf.ForOp) and loop.results:
            step = loop.body.block.args[0]
            for axis, expression in enumerate(tile.base_map.data.results):
                if any(step in behind(tile.indices[i]) for i in expression.used_dims()):
                    found.setdefault(axis, loop)
        loop = loop.parent_op()
    return found


def _contracted(function: Traceable) -> dict[Operation, Operation]:
    """Loads whose values reach a contraction or a reduction, and the first that they reach."""
    found: dict[Operation, Operation] = {}
    for op in function.op.walk():
        for load in loads_behind(reduced_operands(op)):
            found.setdefault(load, op)
    return found
