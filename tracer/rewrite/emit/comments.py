"""Comments of generated kernels: only what a reader cannot see from the statement itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tracer.rewrite.access import Access
from tracer.rewrite.axes import Axis
from tracer.rewrite.emit.tiles import Tiles, literal
from tracer.rewrite.ir import Compute, Const, Load, Statement, Store
from tracer.rewrite.layout import INDENT, WIDTH
from tracer.rewrite.signature import Descriptor

PADDED_LOAD = "A block is at least 16 bytes: lanes past the one element read zero, and the sum drops them."
PADDED_STORE = "A block is at least 16 bytes: lanes past the one element are clipped."
WRAP = "A negative index counts from the end."


def comments_of(tiles: Tiles, statement: Statement) -> list[str]:
    """What goes above a statement: the first padded load, padded store and wrap-around of a kernel explain
    what they do."""
    comment = _comment(tiles, statement)
    if not comment or comment in tiles.noted:
        return []
    tiles.noted.add(comment)
    return [comment]


def _comment(tiles: Tiles, statement: Statement) -> str:
    if isinstance(statement, Compute) and statement.op == "add":
        wraps = any(isinstance(arg, Const) and arg.text for arg in statement.args)
        return WRAP if wraps else ""
    access = tiles.access_written(statement)
    if access is None or not access.lanes(tiles.blocks):
        return ""
    return PADDED_LOAD if isinstance(access.statement, Load) else PADDED_STORE


def cut_of(regions: Sequence[tuple[Access, ...]]) -> str:
    """Number of the axis that regions divide among them (`2` of x2, y2 and z2); empty where none is found."""
    places = [_places(accesses) for accesses in regions]
    for number in places[0]:
        if len({place.get(number) for place in places}) > 1:
            return number
    return ""


def _places(accesses: tuple[Access, ...]) -> dict[str, tuple[int, int]]:
    """Where the first store lies along each axis, by the axis' number."""
    store = next(a for a in accesses if isinstance(a.statement, Store))
    return {dim.axis.name[1:]: (dim.start, dim.extent) for dim in store.dims if dim.axis is not None}


def region_comment(
    accesses: tuple[Access, ...], descriptors: Mapping[Access, Descriptor], axes: tuple[Axis, ...], cut: str
) -> str:
    """`# Region y: out0[:, start : start + y1_size] from in0`: the part of the output that a region makes."""
    store = next(a for a in accesses if isinstance(a.statement, Store))
    assert isinstance(store.statement, Store)
    descriptor = descriptors[store]
    slices = []
    for position, dim in enumerate(store.dims):
        start, size = descriptor.starts[position], descriptor.sizes[position]
        whole = dim.axis is None or dim.axis.name[1:] != cut
        slices.append(":" if whole else f"{start} : {start} + {size}" if start else f": {size}")
    target = f"{_base(descriptor.param)}[{', '.join(slices)}]"
    value = store.statement.value
    sources = dict.fromkeys(_base(a.statement.param) for a in accesses if isinstance(a.statement, Load))
    origin = (
        f" = {literal(value)}"
        if isinstance(value, Const)
        else f" from {', '.join(sources)}"
        if sources
        else ""
    )
    text = f"{INDENT}# Region {axes[0].name[0]}: {target}{origin}"
    return text if len(text) <= WIDTH else f"{INDENT}# Region {axes[0].name[0]}: {target}"


def _base(param: str) -> str:
    return param.replace("_ptr", "")
