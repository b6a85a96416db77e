"""Which view an operation reaches, in the words of its text: a fault names what a person has to look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Operation, SSAValue

from tracer.ktir.affine import format_expr
from tracer.ktir.diagnostics import location
from tracer.ktir.dialect.ktdp import ConstructAccessTileOp, ConstructIndirectAccessTileOp, LoadOp, StoreOp
from tracer.ktir.slices import sources

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
        behind = ", ".join(origins(built.indices))
        return text + (f" ({behind})" if behind else "")
    if isinstance(built, ConstructIndirectAccessTileOp):
        through = " and ".join(dict.fromkeys(_view(value) for value in built.index_views))
        indexed = f", indexed through {through}" if through else ""
        return f"; {_view(built.base)}{indexed}, in the tile{_line(built) or ' here'}"
    return ""


def origins(values: Iterable[SSAValue]) -> list[str]:
    """What numbers are computed from, nearest first, at most `MOST`: `%n of line 12`, `%c64 = 32 of line 7`,
    `scf.for in line 9`. Nothing behind a load is told.
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
            if number or op.operands:
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
