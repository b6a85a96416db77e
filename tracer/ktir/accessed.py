"""Which view an operation reaches, in the words of its text: a fault names what a person has to look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from tracer.ktir.affine import format_expr
from tracer.ktir.diagnostics import location
from tracer.ktir.dialect.ktdp import (
    ConstructAccessTileOp,
    ConstructDistributedMemoryViewOp,
    ConstructIndirectAccessTileOp,
    ConstructMemoryViewOp,
    GetComputeTileIdOp,
    LoadOp,
    StoreOp,
)
from tracer.ktir.slices import behind, sources

MOST = 8
"""Values that a message names at most as those behind a number."""

PLACED = ("KT201", "KT202", "KT203", "KT204", "KT205", "KT206", "KT220")
"""Codes of findings about an element: where the tile lies decides which element that is."""


def accessed_view(op: Operation | None) -> str:
    """`; %w is memref<64x128xf16> of line 11, its tile begins at [%n, %k] in line 17`.

    Empty where `op` is no access, or where the tile is an argument of its block.
    """
    built: object = op.tile.owner if isinstance(op, LoadOp | StoreOp) else op
    if isinstance(built, ConstructAccessTileOp):
        names = [value_name(value) for value in built.indices]
        subscripts = ", ".join(format_expr(e, lambda d: names[d]) for e in built.base_map.data.results)
        text = f"; {_view(built.base)}, its tile begins at [{subscripts}]{_line(built)}"
        made = ", ".join(origins(built.indices))
        return text + (f" ({made})" if made else "") + _conditions(op)
    if isinstance(built, ConstructIndirectAccessTileOp):
        through = " and ".join(dict.fromkeys(_view(value) for value in built.index_views))
        indexed = f", indexed through {through}" if through else ""
        return f"; {_view(built.base)}{indexed}, in the tile{_line(built) or ' here'}{_conditions(op)}"
    return ""


def _conditions(op: Operation | None) -> str:
    """`, under scf.if in line 17 (%last of line 16)`: what lets an access be made at all, outermost last."""
    text = ""
    for above in _above(op) if op is not None else ():
        if isinstance(above, scf.IfOp | scf.IndexSwitchOp):
            made = ", ".join(origins(above.operands[:1]))
            text += f", under {above.name}{_line(above)}" + (f" ({made})" if made else "")
    return text


def counterparts(op: Operation, kind: type[LoadOp | StoreOp]) -> str:
    """` in line 12 or 17`: the loads or stores that reach the memory of an access, in its function.

    Empty where there is none, or nothing but `op` itself.
    """
    function = op
    while not isinstance(function, func.FuncOp):
        parent = function.parent_op()
        if parent is None:
            return ""
        function = parent
    own = _memory(op)
    found = [
        other for other in function.walk() if isinstance(other, kind) and not own.isdisjoint(_memory(other))
    ]
    lines = sorted({location(other)[1] for other in found} - {0})
    if not lines or found == [op] or len(lines) > MOST:
        return ""
    return f" in line {' or '.join(map(str, lines))}"


def _memory(op: Operation) -> set[object]:
    """The arguments that the views behind an access point to; the kind of memory where there are none."""
    found: set[object] = set()
    bases = [op.tile] if isinstance(op, LoadOp | StoreOp) else list(getattr(op, "index_views", ()))
    while bases:
        made = bases.pop().owner
        if isinstance(made, ConstructAccessTileOp | ConstructIndirectAccessTileOp):
            bases.append(made.base)
        elif isinstance(made, ConstructDistributedMemoryViewOp):
            bases += made.views
        elif isinstance(made, ConstructMemoryViewOp):
            owners = ((v, v.owner) for v in behind(made.pointer))
            of = {v for v, o in owners if isinstance(o, Block) and isinstance(o.parent_op(), func.FuncOp)}
            found |= of or {made.memory_space.is_local}
    return found


def suspects(stores: Sequence[Operation]) -> str:
    """What decides where stores go: `check the grid, scf.for in line 17 and the tile in line 27`. Loops,
    numbers and tile are those of the last store, conditions those of all.
    """
    parts = [f"the grid{_grid(stores[0])}"]
    for store in stores:
        for op in reversed(list(_above(store))):
            if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
                asked = op.operands[0]
                line = location(asked.owner)[1] if isinstance(asked, OpResult) else 0
                value = f" ({value_name(asked)} of line {line})" if line and asked.name_hint else ""
                parts.append(f"the condition of {op.name} in line {location(op)[1]}{value}")
            elif store is stores[-1]:
                parts.append(f"{op.name} in line {location(op)[1]}")
    tile = stores[-1].operands[-1].owner
    used = tile.operands[1:] if isinstance(tile, Operation) else ()
    parts += origins((v for v in used if not isinstance(v.owner, arith.ConstantOp)), grid=False)
    parts = list(dict.fromkeys(parts))
    if isinstance(tile, Operation):
        parts.append(f"the tile in line {location(tile)[1]}")
    return f"check {', '.join(parts[:-1])} and {parts[-1]}"


def _above(op: Operation) -> Iterator[Operation]:
    parent = op.parent_op()
    while parent is not None:
        if parent.name.startswith("scf."):
            yield parent
        parent = parent.parent_op()


def _grid(op: Operation) -> str:
    """` of line 3`, where the function of an operation begins."""
    function: Operation | None = op
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    line = location(function)[1]
    return f" of line {line}" if line else ""


def origins(values: Iterable[SSAValue], *, grid: bool = True) -> list[str]:
    """What numbers are computed from, nearest first, at most `MOST`: `%n of line 12`, `%c64 = 32 of line 7`,
    `scf.for in line 9`, with `grid` `%core of line 8 in the grid of line 3`. Nothing behind a load is told.
    """
    found: dict[str, None] = {}
    todo = deque(values)
    passed: set[SSAValue] = set()
    while todo:
        value = todo.popleft()
        if value in passed:
            continue
        passed.add(value)
        owner = value.owner
        op = owner if isinstance(owner, Operation) else owner.parent_op()
        line = location(op)[1]
        if line and op is not None and op is not owner and op.name.startswith("scf."):
            found[f"{op.name} in line {line}"] = None
        elif line and op is owner and value.name_hint:
            held = op.value if isinstance(op, arith.ConstantOp) else None
            number = f" = {held.value.data}" if isinstance(held, IntegerAttr) else ""
            if grid and isinstance(op, GetComputeTileIdOp):
                found[f"{value_name(value)} of line {line} in the grid{_grid(op)}"] = None
            elif number or op.operands:
                found[f"{value_name(value)}{number} of line {line}"] = None
        if not isinstance(owner, LoadOp):
            todo += sources(value)
    return list(found)[:MOST]


def _view(value: SSAValue) -> str:
    owner = value.owner if isinstance(value.owner, Operation) else None
    shown = str(value.type) if not isinstance(value.type, MemRefType) else _shape(value.type)
    line = location(owner)[1] if owner is not None else 0
    return f"{value_name(value)} is {shown}" + (f" of line {line}" if line else "")


def _shape(type_: MemRefType) -> str:
    extents = "".join("?x" if extent < 0 else f"{extent}x" for extent in type_.get_shape())
    return f"memref<{extents}{type_.element_type}>"


def value_name(value: SSAValue) -> str:
    """A view as the text calls it."""
    return f"%{value.name_hint}" if value.name_hint else "a view without a name"


def _line(op: Operation) -> str:
    line = location(op)[1]
    return f" in line {line}" if line else ""
