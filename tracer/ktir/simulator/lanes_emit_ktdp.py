"""Tile ids, views, tiles, loads and stores on lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap, AffineSet

from tracer.ktir.affine import Box, permutation, set_box
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.compiler import EMITTERS, Unsupported
from tracer.ktir.simulator.dtypes import element
from tracer.ktir.simulator.emit_ktdp import _access_tile, _defining, _view, loader
from tracer.ktir.simulator.indirect import gather
from tracer.ktir.simulator.lane_compiler import LaneCompiler, lane_emits
from tracer.ktir.simulator.lanes import Bail, Lanes, load, store
from tracer.ktir.simulator.memory import DistributedView, Pointer, View


@lane_emits("ktdp.get_compute_tile_id")
def _tile_id(compiler: LaneCompiler, op: Operation) -> None:
    for axis, result in enumerate(op.results):
        compiler.line(f"{compiler.define(result)} = {compiler.lanes}.coordinate({axis}, session.grid)")


@lane_emits("ktdp.construct_memory_view")
def _lane_view(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, ktdp.ConstructMemoryViewOp)
    if compiler.varying & {*op.sizes, *op.strides} or op.memory_space.is_local:
        raise Unsupported("views of varying extent, or of scratchpads")
    # The base emitter builds the view at one offset; do so at the lowest and the highest of the lanes.
    low, high = f"low{len(compiler.lines)}", f"high{len(compiler.lines)}"
    pointer = compiler.use(op.pointer)
    for name, end in ((low, _lowest), (high, _highest)):
        compiler.line(f"{name} = {compiler.bind(end, 'f')}({pointer})")
        kept = compiler.names[op.pointer]
        compiler.names[op.pointer] = name
        _view(compiler, op)
        compiler.line(f"{name} = {compiler.names[op.view]}")
        compiler.names[op.pointer] = kept
    compiler.line(f"{compiler.names[op.view]} = {compiler.bind(_at_offsets, 'f')}({low}, {high}, {pointer})")


def _lowest(pointer: Any) -> Pointer:
    if not isinstance(pointer, Pointer):
        raise Bail
    return Pointer(pointer.buffer, int(np.min(pointer.offset)))


def _highest(pointer: Pointer) -> Pointer:
    return Pointer(pointer.buffer, int(np.max(pointer.offset)))


def _at_offsets(low: View, high: View, pointer: Pointer) -> View:
    if not (low.inside and high.inside):
        raise Bail
    return replace(low, offset=pointer.offset)


@lane_emits("ktdp.construct_access_tile")
def _lane_tile(compiler: LaneCompiler, op: Operation) -> None:
    _access_tile(compiler, op)


def _box(points: AffineSet, order: AffineMap) -> tuple[Box, tuple[int, ...]]:
    box = set_box(points) if not points.num_symbols else None
    axes = permutation(order)
    if box is None or axes is None:
        raise Unsupported("tiles that are no ordered box")
    return box, axes


@lane_emits("ktdp.construct_indirect_access_tile")
def _indirect_tile(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, ktdp.ConstructIndirectAccessTileOp)
    if compiler.varies(op):
        raise Unsupported("indirect tiles that differ between lanes")
    for view in op.index_views:
        compiler.line(f"{compiler.bind(_need_settled, 'f')}({compiler.use(view)})")
    EMITTERS[op.name](compiler, op)


def _need_settled(view: View | DistributedView) -> None:
    parts = view.parts if isinstance(view, DistributedView) else (view,)
    if not all(part.buffer.settled for part in parts):
        raise Bail


@lane_emits("ktdp.load")
def _load(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, ktdp.LoadOp)
    tile = _defining(op)
    varies = compiler.varies(op)
    if tile is None or element(tile.base.type).name != element(op.result.type).name:
        if varies or tile is not None:
            raise Unsupported("indirect loads on lanes")
        run = _gathering(tuple(op.result.type.get_shape()))
    elif varies:
        run = _loading(tile)
    else:
        run = _loading_alike(tile, op)
    arguments = f"session, {compiler.use(op.tile)}, {compiler.lanes}"
    compiler.line(f"{compiler.define(op.result)} = {compiler.bind(run, 'f')}({arguments})")


def _gathering(shape: tuple[int, ...]) -> Callable[[Any, Any, Lanes], Tensor]:
    def read(session: Any, tile: Any) -> Tensor:
        return gather(session, *tile).reshape(shape)

    return lambda session, tile, lanes: _alike(session, tile, lanes, read)


def _loading(tile: ktdp.ConstructAccessTileOp) -> Callable[[Any, Any, Lanes], Tensor]:
    box, axes = _box(tile.access_tile_set.data, tile.access_tile_order.data)
    lo, extents = box.lo, box.shape
    order = [0, *(a + 1 for a in axes)] if axes != tuple(range(len(axes))) else None

    def run(session: Any, coordinates: Any, lanes: Lanes) -> Tensor:
        out = load(session, coordinates, lanes, lo, extents)
        return out if order is None else out.permute(order)

    return run


def _loading_alike(tile: ktdp.ConstructAccessTileOp, op: ktdp.LoadOp) -> Callable[[Any, Any, Lanes], Tensor]:
    """One tile for all lanes; of memory that is stored to, only where there is one lane."""
    straight = loader(tile.access_tile_set.data, tile.access_tile_order.data, op.result.type.get_shape())
    try:
        alone = _loading(tile)
    except Unsupported:
        alone = None

    def run(session: Any, coordinates: Any, lanes: Lanes) -> Tensor:
        view = coordinates[0]
        if isinstance(view, View) and not view.buffer.settled:
            if lanes.n > 1 or alone is None:
                raise Bail
            return alone(session, coordinates, lanes)[0]
        return _alike(session, coordinates, lanes, straight)

    return run


def _alike(session: Any, tile: Any, lanes: Lanes, read: Callable[[Any, Any], Tensor]) -> Tensor:
    """What every lane reads, noted for the core of each. Raises Bail where one of them might store there."""
    view = tile[0]
    if not isinstance(view, View):
        if isinstance(view, DistributedView):
            _need_settled(view)
        return read(session, tile)
    if view.plain:
        return read(session, tile)
    _need_settled(view)
    if session.wide(view.buffer):
        for core in np.unique(lanes.cores):
            session.core = int(core)
            out = read(session, tile)
        return out
    return read(session, tile)


@lane_emits("ktdp.store")
def _store(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, ktdp.StoreOp)
    tile = _defining(op)
    if tile is None or element(tile.base.type).name != element(op.data.type).name:
        raise Unsupported("indirect stores on lanes")
    box, axes = _box(tile.access_tile_set.data, tile.access_tile_order.data)
    lo, extents = box.lo, box.shape
    inverse = [0, *(i + 1 for i in sorted(range(len(axes)), key=axes.__getitem__))]

    def run(session: Any, value: Tensor, coordinates: Any, lanes: Lanes) -> None:
        store(session, value.permute(inverse), coordinates, lanes, lo, extents)

    data = compiler.spread(op.data)
    compiler.line(f"{compiler.bind(run, 'f')}(session, {data}, {compiler.use(op.tile)}, {compiler.lanes})")
