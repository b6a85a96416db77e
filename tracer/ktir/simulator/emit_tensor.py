"""The tensor dialect."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect.ktdp import GenerateOp, ParallelInsertSliceOp
from tracer.ktir.dialect.value_ops import PadOp
from tracer.ktir.rules.tensors import outside, reduces
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import Element, element
from tracer.ktir.simulator.dynamic import counted, declared, filled, require
from tracer.ktir.simulator.faults import Fault


def full(shape: Sequence[int], value: Any, el: Element) -> Tensor:
    """A tile of one value, without memory for its elements."""
    single = torch.as_tensor(value, dtype=torch.float32 if el.narrow else el.dtype).to(el.dtype)
    return single.expand(tuple(shape))


def _shape(value: SSAValue) -> tuple[int, ...]:
    shape = tuple(value.type.get_shape())  # type: ignore[attr-defined]
    if DYNAMIC_INDEX in shape:
        raise Unsupported("tensors of dynamic shape are not supported")
    return shape


@emits("tensor.empty")
def _empty(compiler: Compiler, op: Operation) -> None:
    el = element(op.results[0].type)
    if op.operands:
        shape = declared(op.results[0])
        compiler.call(op, lambda *dims: full(filled(shape, dims), 0, el))
        return
    compiler.line(f"{compiler.define(op.results[0])} = {compiler.bind(full(_shape(op.results[0]), 0, el))}")


@emits("tensor.splat")
def _splat(compiler: Compiler, op: Operation) -> None:
    el, shape = element(op.results[0].type), declared(op.results[0])
    compiler.call(op, lambda value, *dims: full(filled(shape, dims), value, el))


def _index(indices: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if not 0 <= index < extent:
            raise Fault("KT215", f"index {index} of axis {axis}, which has {extent} elements", tuple(indices))
    return tuple(indices)


def _gathered(t: Tensor, *indices: Tensor) -> Tensor:
    """The elements at tiles of indices. Raises Fault KT215 for one outside, negative ones too."""
    places = torch.broadcast_tensors(*(v.long() for v in indices)) if indices else ()
    for place, extent in zip(places, t.shape, strict=True):
        bad = (place < 0) | (place >= extent)
        if bool(bad.any()):
            where = tuple(torch.nonzero(bad)[0])
            _index([int(p[where]) for p in places], t.shape)
    return t[tuple(places)] if places else t


@emits("tensor.extract")
def _extract(compiler: Compiler, op: Operation) -> None:
    if compiler.vector:
        compiler.tiles.add(op.results[0])
        compiler.call(op, _gathered)
        return
    compiler.call(op, lambda t, *i: t[_index(i, t.shape)].item())


@emits("tensor.insert")
def _insert(compiler: Compiler, op: Operation) -> None:
    def insert(value: Any, t: Tensor, *indices: int) -> Tensor:
        out = t.clone()
        out[_index(indices, t.shape)] = value
        return out

    compiler.call(op, insert)


def slices_of(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp | ParallelInsertSliceOp,
) -> Callable[[Sequence[int], Sequence[int]], tuple[slice, ...]]:
    """`build(shape, dynamic)`: the window of a tile that a slice names. Raises Fault KT215 outside of it."""
    statics = [op.static_offsets.get_values(), op.static_sizes.get_values(), op.static_strides.get_values()]

    def build(shape: Sequence[int], dynamic: Sequence[int]) -> tuple[slice, ...]:
        values = iter(dynamic)
        offsets, sizes, strides = (
            [next(values) if s == DYNAMIC_INDEX else s for s in part] for part in statics
        )
        out = []
        for axis, (offset, size, stride, extent) in enumerate(
            zip(offsets, sizes, strides, shape, strict=True)
        ):
            if (wrong := outside(axis, offset, size, stride, extent)) is not None:
                raise Fault("KT215", wrong)
            out.append(slice(offset, offset + (size - 1) * stride + 1 if size else offset, stride))
        return tuple(out)

    return build


def fitting(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp | ParallelInsertSliceOp,
) -> Callable[[Sequence[int], Sequence[int]], None]:
    """`fits(window, tile)`: raises Fault KT225 unless a tile of this shape is the window without some of the
    axes whose size the text says to be 1.
    """
    units = [size == 1 for size in op.static_sizes.get_values()]

    def fits(window: Sequence[int], tile: Sequence[int]) -> None:
        if not reduces(window, tile, units):
            raise Fault("KT225", f"a tile of shape {list(tile)} for a slice of sizes {list(window)}")

    return fits


@emits("tensor.extract_slice")
def _extract_slice(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    slices, shape, sizes = slices_of(op), declared(op.result), op.static_sizes.get_values()
    fits = fitting(op)

    def extract(t: Tensor, *dynamic: int) -> Tensor:
        window = t[slices(t.shape, dynamic)]
        if DYNAMIC_INDEX not in shape:
            fits(window.shape, shape)
            return window.reshape(shape)
        kept: list[int] = []
        spare = len(sizes) - len(shape)
        for extent, size in zip(window.shape, sizes, strict=True):
            # An axis of static extent 1 may be left out of the result.
            if size == 1 and spare and shape[len(kept) : len(kept) + 1] != (1,):
                spare -= 1
            else:
                kept.append(extent)
        require(kept, shape)
        return window.reshape(kept)

    compiler.call(op, extract)


@emits("tensor.insert_slice")
def _insert_slice(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, tensor.InsertSliceOp)
    slices, fits = slices_of(op), fitting(op)

    def insert(source: Tensor, dest: Tensor, *dynamic: int) -> Tensor:
        out = dest.clone(memory_format=torch.contiguous_format)
        window = out[slices(dest.shape, dynamic)]
        fits(window.shape, source.shape)
        window.copy_(source.reshape(window.shape))
        return out

    compiler.call(op, insert)


@emits("tensor.expand_shape", "tensor.collapse_shape")
def _regroup(compiler: Compiler, op: Operation) -> None:
    shape = declared(op.results[0])
    # An extent that the result's type knows may be given as an operand all the same.
    if len(op.operands) == 1 and DYNAMIC_INDEX not in (*shape, *declared(op.operands[0])):
        compiler.call(op, lambda t: t.reshape(shape))
        return
    groups = [[a.value.data for a in group] for group in op.properties["reassociation"]]  # type: ignore[attr-defined]

    def collapse(t: Tensor) -> Tensor:
        out = [math.prod(t.shape[a] for a in group) for group in groups]
        require(out, shape)
        return t.reshape(out)

    def expand(t: Tensor, *dims: int) -> Tensor:
        out = filled(wanted, dims)
        require(out, shape)
        require([math.prod(out[a] for a in group) for group in groups], t.shape)
        return t.reshape(out)

    if isinstance(op, tensor.ExpandShapeOp):
        wanted = op.static_output_shape.get_values()
        compiler.call(op, expand)
    else:
        compiler.call(op, collapse)


@emits("tensor.reshape")
def _reshape(compiler: Compiler, op: Operation) -> None:
    shape = declared(op.results[0])

    def reshape(t: Tensor, said: Tensor) -> Tensor:
        extents = [int(n) for n in said.tolist()]
        require(extents, shape)
        if min(extents, default=0) < 0 or math.prod(extents) != t.numel():
            raise Fault("KT225", f"the shape operand says {extents} for a tile of shape {list(t.shape)}")
        return t.reshape(extents)

    compiler.call(op, reshape)


@emits("tensor.cast")
def _cast(compiler: Compiler, op: Operation) -> None:
    shape = declared(op.results[0])

    def cast(t: Tensor) -> Tensor:
        require(t.shape, shape)
        return t

    compiler.call(op, cast)


@emits("tensor.from_elements")
def _from_elements(compiler: Compiler, op: Operation) -> None:
    el, shape = element(op.results[0].type), _shape(op.results[0])
    via = torch.float32 if el.narrow else el.dtype
    compiler.call(op, lambda *values: torch.tensor(values, dtype=via).to(el.dtype).reshape(shape))


@emits("tensor.concat")
def _concat(compiler: Compiler, op: Operation) -> None:
    dim, shape = op.properties["dim"].value.data, declared(op.results[0])  # type: ignore[attr-defined]

    def concat(*tiles: Tensor) -> Tensor:
        first = tiles[0].shape
        for position, tile in enumerate(tiles):
            if tile.shape[:dim] != first[:dim] or tile.shape[dim + 1 :] != first[dim + 1 :]:
                text = f"operand {position} has shape {list(tile.shape)}, operand 0 {list(first)}"
                raise Fault("KT225", f"{text}; they may differ along axis {dim} only")
        out = torch.cat(tiles, dim=dim)
        require(out.shape, shape)
        return out

    compiler.call(op, concat)


@emits("tensor.bitcast")
def _bitcast(compiler: Compiler, op: Operation) -> None:
    dtype = element(op.results[0].type).dtype
    compiler.call(op, lambda t: t.contiguous().view(dtype))


@emits("tensor.pad")
def _pad(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, PadOp)
    shape, lows = declared(op.result), op.static_low.get_values()
    statics = [*lows, *op.static_high.get_values()]
    body = compiler.vectorised(op.region, op.region.block.args)

    def pad(run: Callable[..., Tensor], t: Tensor, *dynamic: int) -> Tensor:
        values = iter(dynamic)
        amounts = [next(values) if n == DYNAMIC_INDEX else n for n in statics]
        low, high = amounts[: len(lows)], amounts[len(lows) :]
        if (least := min(amounts, default=0)) < 0:
            raise Fault("KT225", f"a padding of {least} elements")
        extents = [b + n + e for b, n, e in zip(low, t.shape, high, strict=True)]
        require(extents, shape)
        around = run(*(counted(extents, d) for d in range(len(extents))))
        out = around.to(t.dtype).expand(extents).clone(memory_format=torch.contiguous_format)
        out[tuple(slice(b, b + n) for b, n in zip(low, t.shape, strict=True))] = t
        return out

    arguments = ", ".join([body, *(compiler.use(v) for v in op.operands)])
    compiler.line(f"{compiler.define(op.result)} = {compiler.bind(pad, 'f')}({arguments})")


@emits("tensor.dim")
def _dim(compiler: Compiler, op: Operation) -> None:
    compiler.call(op, lambda t, i: t.shape[_index((i,), (t.dim(),))[0]])


@emits("tensor.rank")
def _rank(compiler: Compiler, op: Operation) -> None:
    compiler.call(op, lambda t: t.dim())


@emits("tensor.generate")
def _generate(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, GenerateOp)
    el, shape = element(op.result.type), declared(op.result)
    body = compiler.vectorised(op.body, op.body.block.args)

    def generate(run: Callable[..., Tensor], *dims: int) -> Tensor:
        extents = filled(shape, dims)
        grids = [counted(extents, d) for d in range(len(extents))]
        return run(*grids).to(el.dtype).expand(extents)

    arguments = ", ".join([body, *(compiler.use(e) for e in op.extents)])
    compiler.line(f"{compiler.define(op.result)} = {compiler.bind(generate, 'f')}({arguments})")
