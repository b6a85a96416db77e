"""Text of loads and stores."""

from __future__ import annotations

from tracer.rewrite.access import Access, Dim
from tracer.rewrite.axes import Axis
from tracer.rewrite.emit.tiles import Tiles, literal
from tracer.rewrite.ir import Compute, Const, Index, Load, Operand, Statement, Store
from tracer.rewrite.types import memory_dtype


def load_text(tiles: Tiles, statement: Load) -> str:
    """The value that a load reads, as a tile over its own axes."""
    access = tiles.access_of[id(statement)]
    text = f"{tiles.descriptors[access].name}.load({_coordinates(tiles, access)})"
    want = tiles.tile_of(statement.name)
    lanes = access.lanes(tiles.blocks)
    # The one valid lane of a padded tile is the sum of its lanes.
    if not want:
        text = f"tl.sum({_summable(text, access)})"
    else:
        have = _dims(tiles, access)
        if lanes:
            text = f"tl.sum({_summable(text, access)}, axis={len(have)})"
        text = tiles.arrange(text, have, want)
    if access.dtype == "int1":
        text = f"{text}.to(tl.int1)"
    elif lanes and access.dtype == "bfloat16":
        text = f"{text}.to(tl.bfloat16)"
    if statement.mask and statement.other is not None:
        text = f"tl.where({tiles.text(statement.mask, want)}, {text}, {literal(statement.other)})"
    return text


def store_text(tiles: Tiles, statement: Store) -> str:
    """The statement that stores a value."""
    access = tiles.access_of[id(statement)]
    descriptor = tiles.descriptors[access]
    block = f"[{', '.join(descriptor.block)}]"
    dtype = memory_dtype(access.dtype)
    value, cast = _narrowed(tiles, statement.value, access)
    if isinstance(value, Const):
        text = f"tl.full({block}, {literal(value)}, tl.{dtype})"
    else:
        have = tiles.tile_of(value)
        dims = [*_dims(tiles, access), *((None,) if access.lanes(tiles.blocks) else ())]
        target = tuple(a if a in have else None for a in dims)
        text = (tiles.arrange(value, have, target) if have else value) + cast
        if not have or any(a is None and b != "1" for a, b in zip(target, descriptor.block, strict=True)):
            text = f"tl.broadcast_to({text}, {block})"
    return f"{descriptor.name}.store({_coordinates(tiles, access)}, {text})"


def _narrowed(tiles: Tiles, value: Operand, access: Access) -> tuple[Operand, str]:
    """The value to store and the cast that the store itself writes."""
    if isinstance(value, str) and tiles.stored_cast(value):
        cast = tiles.defined[value]
        assert isinstance(cast, Compute)
        return cast.args[0], f".to(tl.{memory_dtype(cast.dtype)})"
    return value, f".to(tl.{memory_dtype('int1')})" if access.dtype == "int1" else ""


def _coordinates(tiles: Tiles, access: Access) -> str:
    found = tiles.descriptors[access]
    rows = zip(access.dims, found.starts, found.sizes, found.steps, strict=True)
    texts = [_coordinate(tiles, found.name, *row) for row in rows]
    texts += ["0"] * (len(found.block) - len(texts))
    return f"[{', '.join(texts)}]"


def clamped_coordinates(tiles: Tiles, statement: Statement) -> list[tuple[str, str]]:
    """Name and text of every coordinate that an access clamps; the mask drops what is read there."""
    access = tiles.access_written(statement)
    if access is None:
        return []
    descriptor = tiles.descriptors[access]
    found = []
    for dim, low, size in zip(access.dims, descriptor.lows, descriptor.sizes, strict=True):
        if dim.low is None or dim.axis is None:
            continue
        text = f"tl.maximum({dim.axis.name} - {low}, 0)" if low else dim.axis.name
        if dim.low + dim.extent < dim.axis.extent:
            text = f"tl.minimum({text}, {size} - 1)"
        found.append((_clamped(descriptor.name, dim.axis), text))
    return found


def _clamped(descriptor: str, axis: Axis) -> str:
    return f"{descriptor}_{axis.name}"


def _coordinate(
    tiles: Tiles, descriptor: str, dim: Dim, start: str, size: str, steps: tuple[str, ...]
) -> str:
    if dim.value is not None:
        text = f"tl.sum({dim.value})" if tiles.tile_of(dim.value) else dim.value
        text = text if _has_32_bits(tiles, dim.value) else f"{text}.to(tl.int32)"
    elif dim.steps:
        text = " + ".join(f"{a.name} * {step}" for (a, _), step in zip(dim.steps, steps, strict=True))
    elif dim.axis is None:
        return start or "0"
    elif dim.low is not None:
        text = _clamped(descriptor, dim.axis)
    elif dim.axis.reduced and not tiles.looped:
        text = "0"
    else:
        text = dim.axis.name
    if dim.reverse:
        text = f"{size} - 1 - {text}"
    if start:
        return start if text == "0" else f"{start} + {text}"
    return text


def _has_32_bits(tiles: Tiles, value: str) -> bool:
    """Whether Triton computes a value in 32 bits: an index expression is as wide as the values in it."""
    statement = tiles.defined[value]
    inside = statement.operands if isinstance(statement, Index) else ()
    return tiles.dtype(value) == "int32" and all(tiles.dtype(name) == "int32" for name in inside)


def _dims(tiles: Tiles, access: Access) -> tuple[Axis | None, ...]:
    """The axis that each descriptor dim stands for in the value's tile; the padded lane dim is left out."""
    dims = access.dims[:-1] if access.lanes(tiles.blocks) and access.open_last else access.dims
    return tuple(_axis_of(tiles, dim, access) for dim in dims)


def _axis_of(tiles: Tiles, dim: Dim, access: Access) -> Axis | None:
    if dim.axis is not None:
        return dim.axis
    if dim.value is not None:
        along = tiles.varies[dim.value]
        if len(along) == 1 and not along & {d.axis for d in access.dims}:
            return next(iter(along))
    return None


def _summable(text: str, access: Access) -> str:
    """bfloat16 has no exact sum in Triton's interpreter; booleans lie in memory as int8."""
    return f"{text}.to(tl.float32)" if access.dtype == "bfloat16" else text
