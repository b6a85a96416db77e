"""The ktdp dialect: tile ids, views, tiles, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap, AffineSet

from tracer.ktir.affine import Box, format_expr, order_points, permutation, set_box, set_points
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator import distributed
from tracer.ktir.simulator.access import (
    addresses_of,
    check_shape,
    read_addresses,
    read_box,
    write_addresses,
    write_box,
)
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element
from tracer.ktir.simulator.dynamic import declared, require
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.groups import dependent
from tracer.ktir.simulator.indirect import builder, gather, scatter
from tracer.ktir.simulator.memory import DistributedView, Pointer, View, make_view


@emits("ktdp.get_compute_tile_id")
def _tile_id(compiler: Compiler, op: Operation) -> None:
    for result, axis in zip(op.results, "xyz", strict=False):
        compiler.line(f"{compiler.define(result)} = {axis}")


@emits("ktdp.construct_memory_view")
def _view(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.ConstructMemoryViewOp)
    el = element(op.view.type)
    sizes, strides = op.static_sizes.get_values(), op.static_strides.get_values()
    shape = op.view.type.get_shape()
    points = op.coordinate_set.data
    space = op.memory_space
    core = space.core_id

    def build(
        session: Any, pointer: Any, dynamic_sizes: Sequence[int], dynamic_strides: Sequence[int]
    ) -> View:
        extents, steps = _fill(sizes, dynamic_sizes), _fill(strides, dynamic_strides)
        for axis, (extent, wanted) in enumerate(zip(extents, shape, strict=True)):
            if extent < 0:
                raise Fault("KT215", f"size {extent} of axis {axis} is negative")
            if wanted not in (DYNAMIC_INDEX, extent):
                raise Fault("KT215", f"size {extent} of axis {axis} differs from the memref's {wanted}")
        if space.is_local:
            pointer = session.local_pointer(pointer, core, el)
        elif not isinstance(pointer, Pointer):
            pointer = session.global_pointer(pointer, el)
        buffer = session.typed(pointer.buffer, el)
        view = make_view(buffer, pointer.offset, extents, steps, el)
        symbols = tuple(dynamic_sizes)[: points.num_symbols]
        box = set_box(points, symbols)
        if box is None:
            view.points = (points, symbols)
        elif _local(box, extents):
            view.box = tuple(zip(box.lo, box.hi, strict=True))
        view.held = box
        view.plain = (
            view.inside
            and box is not None
            and view.box is None
            and min(steps, default=0) >= 0
            and session.direct(buffer)
        )
        return view

    pointer = compiler.use(op.pointer)
    extents, steps = (f"({compiler.uses(v)}{',' if v else ''})" for v in (op.sizes, op.strides))
    arguments = f"session, {pointer}, {extents}, {steps}"
    compiler.line(f"{compiler.define(op.view)} = {compiler.bind(build, 'f')}({arguments})")


def _fill(static: Sequence[int], dynamic: Sequence[int]) -> tuple[int, ...]:
    """Static entries, with -1 taken from `dynamic` while it lasts (a stride may really be -1)."""
    values = iter(dynamic)
    return tuple(next(values, v) if v == DYNAMIC_INDEX else v for v in static)


def _local(box: Box, sizes: Sequence[int]) -> bool:
    """Whether the set narrows the view; a set outside its extents names global coordinates of a partition."""
    whole = all(lo == 0 and hi == n for lo, hi, n in zip(box.lo, box.hi, sizes, strict=True))
    return not whole and all(lo >= 0 and hi <= n for lo, hi, n in zip(box.lo, box.hi, sizes, strict=True))


@emits("ktdp.construct_access_tile")
def _access_tile(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.ConstructAccessTileOp)
    names = [compiler.use(v) for v in op.indices]
    subscripts = [_python(format_expr(e, names.__getitem__)) for e in op.base_map.data.results]
    symbols = compiler.uses(op.symbols)
    parts = [compiler.use(op.base), f"({symbols}{',' if symbols else ''})", *subscripts]
    compiler.line(f"{compiler.define(op.tile)} = ({', '.join(parts)})")


def _python(text: str) -> str:
    text = text.replace(" floordiv ", " // ").replace(" mod ", " % ")
    if " ceildiv " in text:
        raise Unsupported("ceildiv in a subscript is not supported")
    return f"({text})"


@emits("ktdp.construct_indirect_access_tile")
def _indirect_tile(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.ConstructIndirectAccessTileOp)
    captured, views, symbols = (
        f"({compiler.uses(part)}{',' if part else ''})" for part in (op.captured, op.index_views, op.symbols)
    )
    compiler.line(
        f"{compiler.define(op.tile)} = {compiler.bind(builder(op), 'f')}"
        f"(session, {compiler.use(op.base)}, {captured}, {views}, {symbols})"
    )


def _defining(op: Operation) -> ktdp.ConstructAccessTileOp | None:
    owner = op.operands[-1 if isinstance(op, ktdp.StoreOp) else 0].owner
    return owner if isinstance(owner, ktdp.ConstructAccessTileOp) else None


@emits("ktdp.load")
def _load(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.LoadOp)
    if compiler.keep is not None:
        compiler.line(f"session.trace({compiler.bind(op, 'op')}, {compiler.use(op.tile)})")
        if op not in compiler.keep:
            compiler.line(f"{compiler.define(op.result)} = None")
            return
    tile = _defining(op)
    el = element(op.result.type)
    if tile is None:
        shape = tuple(op.result.type.get_shape())
        function: Callable[..., Any] = lambda session, t: gather(session, *t).reshape(shape)  # noqa: E731
    else:
        if element(tile.base.type).name != el.name:
            raise Unsupported(f"loads {el.name} from a view of {element(tile.base.type).name}")
        function = loader(tile.access_tile_set.data, tile.access_tile_order.data, op.result.type.get_shape())
    compiler.line(
        f"{compiler.define(op.result)} = {compiler.bind(function, 'f')}(session, {compiler.use(op.tile)})"
    )


def _scatter(session: Any, value: Tensor, tile: Any) -> None:
    view, places = tile
    scatter(session, view, places, value.reshape(-1))


@emits("ktdp.store")
def _store(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.StoreOp)
    if compiler.keep is not None:
        compiler.line(f"session.trace({compiler.bind(op, 'op')}, {compiler.use(op.tile)})")
        return
    tile = _defining(op)
    if tile is None:
        function: Callable[..., Any] = _scatter
    else:
        if element(tile.base.type).name != element(op.data.type).name:
            raise Unsupported(
                f"stores {element(op.data.type).name} to a view of {element(tile.base.type).name}"
            )
        function = storer(tile.access_tile_set.data, tile.access_tile_order.data)
    compiler.line(
        f"{compiler.bind(function, 'f')}(session, {compiler.use(op.data)}, {compiler.use(op.tile)})"
    )


def loader(points: AffineSet, order: AffineMap, shape: Sequence[int]) -> Callable[..., Tensor]:
    """`load(session, (view, symbols, *subscripts))` for tiles of this set and order."""
    box = set_box(points) if not points.num_symbols else None
    axes = permutation(order)
    if box is None or axes is None:
        return _general_loader(points, order, tuple(shape))
    lo, extents = box.lo, box.shape
    straight = axes == tuple(range(len(axes)))

    def load(session: Any, tile: Any) -> Tensor:
        view = tile[0]
        start = tuple(s + b for s, b in zip(tile[2:], lo, strict=True))
        out = _read(session, view, start, extents)
        return out if straight else out.permute(axes)

    if straight and not any(lo):
        return _fast_loader(extents, load)
    return load


def _fast_loader(extents: tuple[int, ...], slow: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Bounds and address in a few integer operations where the view needs no further checks."""
    as_strided = torch.as_strided

    def load(session: Any, tile: Any) -> Tensor:
        view = tile[0]
        if type(view) is not View or not view.plain:
            return slow(session, tile)
        first = view.first
        for start, extent, size, stride in zip(tile[2:], extents, view.sizes, view.strides, strict=True):
            if start < 0 or start + extent > size:
                return slow(session, tile)
            first += start * stride
        return as_strided(view.buffer.data, extents, view.strides, first)

    return load


def _read(session: Any, view: Any, start: Sequence[int], extents: Sequence[int]) -> Tensor:
    if isinstance(view, DistributedView):
        return distributed.read(session, view, start, extents)
    if isinstance(view, Tensor):
        for axis, (b, n, size) in enumerate(zip(start, extents, view.shape, strict=True)):
            if b < 0 or b + n > size:
                raise Fault(
                    "KT201", f"axis {axis}: coordinates {b} to {b + n - 1} of a tile of {size}", tuple(start)
                )
        return view[tuple(slice(b, b + n) for b, n in zip(start, extents, strict=True))]
    return read_box(session, view, start, extents)


def _coordinates(points: AffineSet, order: AffineMap, tile: Any) -> Any:
    rows = order_points(set_points(points, tuple(tile[1])), order)
    return rows + np.asarray(tile[2:], dtype=np.int64)


def _general_loader(points: AffineSet, order: AffineMap, shape: tuple[int, ...]) -> Callable[..., Tensor]:
    axes = permutation(order)

    def load(session: Any, tile: Any) -> Tensor:
        if points.num_symbols and axes is not None and (box := set_box(points, tuple(tile[1]))) is not None:
            start = tuple(s + b for s, b in zip(tile[2:], box.lo, strict=True))
            out = _read(session, tile[0], start, box.shape).permute(axes)
            if DYNAMIC_INDEX not in shape:
                _fits(out.numel(), shape)
            require(out.shape, shape)
            return out
        if DYNAMIC_INDEX in shape:
            raise Fault("KT225", "a tile of dynamic shape must be a box, in the order of its axes")
        rows = _coordinates(points, order, tile)
        _fits(len(rows), shape)
        view = tile[0]
        if isinstance(view, Tensor):
            check_shape(view.shape, rows)
            return view[tuple(torch.from_numpy(c.copy()) for c in rows.T)].reshape(shape)
        if isinstance(view, DistributedView):
            return distributed.read_points(session, view, rows).reshape(shape)
        return read_addresses(session, view, addresses_of(view, rows)).reshape(shape)

    return load


def _fits(count: int, shape: Sequence[int]) -> None:
    size = 1
    for extent in shape:
        size *= extent
    if count != size:
        raise Fault("KT113", f"the set holds {count} points, the tile {size} elements")


def storer(points: AffineSet, order: AffineMap) -> Callable[..., None]:
    """`store(session, value, (view, symbols, *subscripts))` for tiles of this set and order."""
    box = set_box(points) if not points.num_symbols else None
    axes = permutation(order)
    if box is None or axes is None:

        def store_points(session: Any, value: Tensor, tile: Any) -> None:
            box = set_box(points, tuple(tile[1])) if points.num_symbols and axes is not None else None
            if box is not None and axes is not None:
                _fits(prod(box.shape), value.shape)
                require(value.shape, [box.shape[axis] for axis in axes])
                back = sorted(range(len(axes)), key=axes.__getitem__)
                _write(session, tile, box, value.permute(back))
                return
            rows = _coordinates(points, order, tile)
            _fits(len(rows), value.shape)
            view = _stored(tile[0])
            if isinstance(view, DistributedView):
                distributed.write_points(session, view, rows, value.reshape(-1))
            else:
                write_addresses(session, view, addresses_of(view, rows), value.reshape(-1))

        return store_points
    inverse = sorted(range(len(axes)), key=axes.__getitem__)
    straight = axes == tuple(range(len(axes)))

    def store(session: Any, value: Tensor, tile: Any) -> None:
        _write(session, tile, box, value if straight else value.permute(inverse))

    return store


def _write(session: Any, tile: Any, box: Box, value: Tensor) -> None:
    view = _stored(tile[0])
    start = tuple(s + b for s, b in zip(tile[2:], box.lo, strict=True))
    if isinstance(view, DistributedView):
        distributed.write(session, view, start, box.shape, value)
    else:
        write_box(session, view, start, box.shape, value)


def _stored(view: Any) -> View | DistributedView:
    if not isinstance(view, View | DistributedView):
        raise Fault("KT216", "a tile of a tensor cannot be stored to")
    return view


@emits("ktdp.runtime_arg_extract")
def _runtime_arg(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.RuntimeArgExtractOp)
    declared = op.arg.type
    match op.field.data:
        case "value":
            compiler.line(f"{compiler.define(op.result)} = {compiler.use(op.arg)}")
        case field:
            compiler.line(f"{compiler.define(op.result)} = {getattr(declared, field).data}")


@emits("ktdp.inter_tile_produce")
def _produce(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.InterTileProduceOp)
    block = op.body.block
    key = compiler.bind(op, "op")
    single = compiler.keep is None and any(
        reduce.producer_dependency_per_consumer is not None for reduce in _reduces(compiler.module, op)
    )
    compiler.line(f"{compiler.define(block.args[0])} = session.group({key})")
    compiler.line(f"if {compiler.use(block.args[0])} is not None:")
    compiler.indent += 1
    for inner in block.ops:
        compiler.op(inner)
    end = block.last_op
    assert end is not None
    group, partial = compiler.use(block.args[0]), compiler.use(end.operands[0])
    turn = f"session.publish({key}, {partial})" if single else "0"
    compiler.line(f"{compiler.define(op.future)} = ({key}, {group}, {partial}, {turn})")
    compiler.indent -= 1
    compiler.line("else:")
    turn = f"session.publish({key}, None)" if single else "0"
    compiler.line(f"    {compiler.define(op.future)} = ({key}, None, None, {turn})")


def _reshaper(source: tuple[int, ...], shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """Gives a tile of as many elements another shape; what is no tile stays."""
    if source != shape and shape.count(DYNAMIC_INDEX) > 1:
        raise Unsupported("a reduced tile with several extents known at run time only keeps its shape")
    known = max(1, prod(n for n in shape if n != DYNAMIC_INDEX))

    def reshape(tile: Any) -> Any:
        if not isinstance(tile, Tensor):
            return tile
        if source == shape:
            require(tile.shape, shape)
            return tile
        return tile.reshape([tile.numel() // known if n == DYNAMIC_INDEX else n for n in shape])

    return reshape


def _reduces(module: Operation, op: ktdp.InterTileProduceOp) -> list[ktdp.InterTileReduceOp]:
    """The reduces that may get the future: any at all where it is handed on."""
    found = dependent(op)
    if found is not None:
        return found
    return [other for other in module.walk() if isinstance(other, ktdp.InterTileReduceOp)]


@emits("ktdp.inter_tile_reduce")
def _inter_reduce(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ktdp.InterTileReduceOp)
    if compiler.keep is not None:
        compiler.line(f"{compiler.define(op.result)} = None")
        return
    block = op.body.block
    name = f"fold{len(compiler.lines)}"
    compiler.line(f"def {name}({', '.join(compiler.define(a) for a in block.args)}):")
    compiler.indent += 1
    for inner in block.ops:
        compiler.op(inner)
    end = block.last_op
    assert end is not None
    compiler.line(f"return {compiler.use(end.operands[0])}")
    compiler.indent -= 1
    finish = compiler.bind(_reshaper(declared(op.identity), declared(op.result)), "f")
    key = compiler.bind(op, "op")
    request = f"({key}, {compiler.use(op.future)}, {compiler.use(op.identity)}, {name})"
    compiler.line(f"{compiler.define(op.result)} = {finish}((yield {request}))")
