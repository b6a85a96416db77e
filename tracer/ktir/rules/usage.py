"""Signs of a wrong line in KTIR that is legal: values nobody uses, views that overlap themselves, attributes
nobody reads. All of them are warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType
from xdsl.dialects.linalg.ops import ReduceOp
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.affine import set_box
from tracer.ktir.diagnostics import Diagnostic, at, location
from tracer.ktir.dialect.ktdp import (
    AccessTileType,
    ConstructAccessTileOp,
    ConstructIndirectAccessTileOp,
    ConstructMemoryViewOp,
    InterTileReduceOp,
    ReduceManyOp,
    StoreOp,
)
from tracer.ktir.rules.overlap import overlapping
from tracer.ktir.rules.undefined import Known, undefined_reads

_MOST = 4
"""Operations that a message lists at most."""

_KTDP_ATTRIBUTES = (
    "coordinate_set",
    "memory_space",
    "access_tile_set",
    "access_tile_order",
    "variables_space_set",
    "variables_space_order",
)


def usage(module: ModuleOp) -> list[Diagnostic]:
    """Everything in `module` that looks like a slip, as warnings in order of place."""
    found: list[Diagnostic] = []
    known: Known = {}
    for op in module.walk():
        found += _attributes(op)
        if isinstance(op, func.FuncOp):
            found += _function(op)
        elif isinstance(op, scf.ForOp):
            found += [*_carried(op), *_repeated(op), *_never(op)]
        elif isinstance(op, ConstructMemoryViewOp):
            found += [*_overlap(op), *_wide(op)]
        elif isinstance(op, ConstructIndirectAccessTileOp):
            found += _still(op)
        elif isinstance(op, ReduceOp | ReduceManyOp):
            found += _ignored(op)
        elif isinstance(op, InterTileReduceOp):
            found += _lost(op)
        found += [*_unused(op), *undefined_reads(op, known)]
    return found


def _never(op: scf.ForOp) -> Iterable[Diagnostic]:
    """Bounds that are constants and leave nothing to do, as swapped ones do."""
    lower, upper = _constant(op.lb), _constant(op.ub)
    if lower is not None and upper is not None and lower >= upper:
        text = f"the loop never runs: it goes from {lower} up to {upper}"
        swapped = "; are the bounds swapped?" if lower > upper else ""
        yield at(op, "KT219", f"{text}{swapped}", "warning")


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def _lost(op: InterTileReduceOp) -> Iterable[Diagnostic]:
    """Partials that the body of a collective ignores."""
    for argument in op.body.block.args:
        if not argument.uses:
            text = f"the body does not use {_name(argument)}: the partials of some cores do not count"
            yield at(op, "KT122", text, "warning")


def _ignored(op: Operation) -> Iterable[Diagnostic]:
    """Results so far that the body of a reduction ignores."""
    arguments = op.regions[0].block.args
    for argument in arguments[len(arguments) // 2 :]:
        if not argument.uses:
            text = f"the body does not use {_name(argument)}, the result so far: only the last element counts"
            last = op.regions[0].block.last_op
            if last is not None and (made := last.prev_op) is not None:
                text += f"; it ends with {made.name} in line {location(made)[1]}"
            yield at(op, "KT122", text, "warning")


def _unused(op: Operation) -> Iterable[Diagnostic]:
    # An empty tensor is a placeholder, and a loop or a branch is there for what it does.
    if op.name == "tensor.empty" or op.name.startswith("scf."):
        return
    if not op.results or any(r.uses for r in op.results):
        return
    kind = op.results[0].type
    if isinstance(kind, TensorType):
        text = f"nothing uses {_name(op.results[0])}, the result of this operation"
        yield at(op, "KT122", text + _instead(op.results[0]), "warning")
    elif isinstance(op, ConstructMemoryViewOp) or isinstance(kind, AccessTileType):
        text = f"nothing is loaded or stored through {_name(op.results[0])}"
        if others := [o for o in _like(op) if len(list(o.results[0].uses)) > 1]:
            text += f"; several times through {_listed(others)}"
        yield at(op, "KT122", text, "warning")


def _instead(value: SSAValue) -> str:
    """`; arith.addf in line 14 takes %x twice`: what follows and could mean `value` one of the times."""
    for other in (inner for top in _after(value.owner) for inner in top.walk()):
        taken = other.operands[:2]
        if len(taken) == 2 and taken[0] is taken[1] and taken[0].type == value.type:
            return f"; {other.name} in line {location(other)[1]} takes {_name(taken[0])} twice"
    return ""


def _after(op: Operation | Block) -> Iterator[Operation]:
    following = op.next_op if isinstance(op, Operation) else None
    while following is not None:
        yield following
        following = following.next_op


def _like(op: Operation) -> list[Operation]:
    """The other operations of the function that could stand for `op`, whose results are of its type."""
    function: Operation | None = op
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    kind = op.results[0].type
    everything = function.walk() if function is not None else ()
    return [o for o in everything if o.name == op.name and o is not op and o.results[0].type == kind]


def _listed(ops: Sequence[Operation]) -> str:
    """`%x of line 10 and %w of line 11`."""
    names = [f"{_name(o.results[0])} of line {location(o)[1]}" for o in ops[:_MOST]]
    names += [f"{len(ops) - _MOST} more"] if len(ops) > _MOST else []
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _carried(op: scf.ForOp) -> Iterable[Diagnostic]:
    """Carried values that an iteration ignores: its predecessors are lost."""
    for argument, result in zip(op.body.block.args[1:], op.results, strict=True):
        ends = op.body.block.last_op
        yielded = ends.operands[result.index] if isinstance(ends, scf.YieldOp) else None
        if not result.uses or yielded is None:
            continue
        if not argument.uses:
            text = f"no iteration uses {_name(argument)}: only the last one counts"
            yield at(op, "KT122", text, "warning")
        elif yielded is argument:
            text = f"every iteration passes {_name(argument)} on as it is: the loop computes nothing"
            yield at(op, "KT122", text, "warning")


def _function(op: func.FuncOp) -> Iterable[Diagnostic]:
    views = [o for o in op.walk() if isinstance(o, ConstructMemoryViewOp)]
    stores = [o for o in op.walk() if isinstance(o, StoreOp)]
    called = any(isinstance(o, func.CallOp) for o in op.walk())
    if views and not stores and not called:
        yield at(op, "KT302", f"{op.sym_name.data} stores nothing", "warning")
    elif stores and not called and all(map(_local, stores)):
        text = f"{op.sym_name.data} stores nothing to global memory: this view is of a scratchpad"
        yield at(_view(stores[0]), "KT302", text, "warning")
    twice = (
        {
            a: found[1]
            for a in op.body.blocks[0].args
            if len(found := [v for v in views if v.pointer is a]) > 1
        }
        if op.body.blocks
        else {}
    )
    for argument in op.body.blocks[0].args if twice else ():
        if not argument.uses:
            other, view = next(iter(twice.items()))
            these = [v for v in views if v.pointer is other]
            text = f"nothing uses argument {_name(argument)}, but {_name(other)} has several views"
            yield at(view, "KT122", f"{text}: {_listed(these)}", "warning")


def _view(store: StoreOp) -> ConstructMemoryViewOp | None:
    tile = store.operands[-1].owner
    if not isinstance(tile, ConstructAccessTileOp | ConstructIndirectAccessTileOp):
        return None
    view = tile.operands[0].owner
    return view if isinstance(view, ConstructMemoryViewOp) else None


def _local(store: StoreOp) -> bool:
    view = _view(store)
    return view is not None and view.memory_space.is_local


def _repeated(op: scf.ForOp) -> Iterable[Diagnostic]:
    """Loops that do the same every time."""
    step = op.body.block.args[0]
    if not op.results and not step.uses and any(isinstance(o, StoreOp) for o in op.walk()):
        text = f"nothing uses {_name(step)}: every iteration stores to the same places"
        yield at(op, "KT122", text, "warning")


def _overlap(op: ConstructMemoryViewOp) -> Iterable[Diagnostic]:
    sizes = [int(n) for n in op.static_sizes.get_values()]
    strides = [int(n) for n in op.static_strides.get_values()]
    stored = any(
        isinstance(use.operation, StoreOp)
        for tile in op.view.uses
        for r in tile.operation.results
        for use in r.uses
    )
    if not stored or min(sizes, default=1) < 1 or op.strides:
        return
    # Reading windows that overlap is what a convolution does, so only stored views count.
    if not overlapping(sizes, strides):
        return
    text = f"strides {strides} make elements of a stored view of sizes {sizes} share memory"
    yield at(op, "KT118", text, "warning")


def _wide(op: ConstructMemoryViewOp) -> Iterable[Diagnostic]:
    """Coordinates that a view's set holds and the view does not have."""
    sizes = [int(n) for n in op.static_sizes.get_values()]
    # A part of a distributed view has global coordinates in its set.
    tiles = (ConstructAccessTileOp, ConstructIndirectAccessTileOp)
    if op.sizes or not all(isinstance(use.operation, tiles) for use in op.view.uses):
        return
    box = set_box(op.coordinate_set.data)
    for axis, (lo, hi, size) in enumerate(zip(box.lo, box.hi, sizes, strict=True) if box else ()):
        if lo < hi and (lo < 0 or hi > size):
            text = f"the coordinate set goes from {lo} to {hi - 1} along axis {axis}"
            yield at(op, "KT113", f"{text}, the view from 0 to {size - 1}", "warning")
            return


def _still(op: ConstructIndirectAccessTileOp) -> Iterable[Diagnostic]:
    """Variables along which a tile is the same everywhere."""
    captured = len(op.captured)
    used = {d - captured for _, map_ in op.subscripts() for d in map_.used_dims()}
    points = op.variables_space_set.data
    box = set_box(points) if not points.num_symbols else None
    for index, variable in enumerate(op.variables.block.args):
        if index not in used and not (box is not None and box.shape[index] == 1):
            text = f"no subscript uses {_name(variable)}: along it the elements of the tile are the same"
            yield at(op, "KT122", text, "warning")


def _attributes(op: Operation) -> Iterable[Diagnostic]:
    views = (ConstructMemoryViewOp, ConstructAccessTileOp, ConstructIndirectAccessTileOp)
    for name in op.attributes:
        known: tuple[str, ...] = ()
        if isinstance(op, views):
            known = _KTDP_ATTRIBUTES
        elif isinstance(op, func.FuncOp):
            known = ("grid",)
        near = get_close_matches(name, known, 1, 0.7)
        if name not in known and (near or isinstance(op, views)):
            hint = f"; did you mean {near[0]}?" if near else ""
            yield at(op, "KT123", f"nothing reads attribute {name}{hint}", "warning")


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"
