"""Which view an operation reaches, in the words of its text: a fault names what a person has to look at."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from tracer.ktir.affine import format_expr
from tracer.ktir.diagnostics import location
from tracer.ktir.dialect.ktdp import ConstructAccessTileOp, ConstructIndirectAccessTileOp, LoadOp, StoreOp


def accessed_view(op: Operation | None) -> str:
    """`; %w is memref<64x128xf16> of line 11, its tile begins at [%n, %k] in line 17`.

    Empty where `op` is no access, or where the tile is an argument of its block.
    """
    built: object = op.tile.owner if isinstance(op, LoadOp | StoreOp) else op
    if isinstance(built, ConstructAccessTileOp):
        names = [value_name(value) for value in built.indices]
        subscripts = ", ".join(format_expr(e, lambda d: names[d]) for e in built.base_map.data.results)
        return f"; {_view(built.base)}, its tile begins at [{subscripts}]{_line(built)}"
    if isinstance(built, ConstructIndirectAccessTileOp):
        through = " and ".join(dict.fromkeys(_view(value) for value in built.index_views))
        indexed = f", indexed through {through}" if through else ""
        return f"; {_view(built.base)}{indexed}, in the tile{_line(built) or ' here'}"
    return ""


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
