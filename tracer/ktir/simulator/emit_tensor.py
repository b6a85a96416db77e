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

from tracer.ktir.dialect import GenerateOp, ParallelInsertSliceOp
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import Element, element
from tracer.ktir.simulator.dynamic import counted, declared, filled, require
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.tensor_rules import outside


def full(shape: Sequence[int], value: Any, el: Element) -> Tensor:
    """A tile of one value, without memory for its elements."""
    single = torch.tensor(value, dtype=torch.float32 if el.narrow else el.dtype).to(el.dtype)
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


@emits("tensor.extract")
def _extract(compiler: Compiler, op: Operation) -> None:
    if compiler.vector:
        compiler.tiles.add(op.results[0])
        compiler.call(op, lambda t, *i: t[tuple(v.long() for v in i)] if i else t)
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


@emits("tensor.extract_slice")
def _extract_slice(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    slices, shape, sizes = slices_of(op), declared(op.result), op.static_sizes.get_values()

    def extract(t: Tensor, *dynamic: int) -> Tensor:
        window = t[slices(t.shape, dynamic)]
        if DYNAMIC_INDEX not in shape:
            require([window.numel()], [math.prod(shape)])
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
    slices = slices_of(op)

    def insert(source: Tensor, dest: Tensor, *dynamic: int) -> Tensor:
        out = dest.clone(memory_format=torch.contiguous_format)
        window = out[slices(dest.shape, dynamic)]
        require([source.numel()], [window.numel()])
        window.copy_(source.reshape(window.shape))
        return out

    compiler.call(op, insert)


@emits("tensor.expand_shape", "tensor.collapse_shape")
def _regroup(compiler: Compiler, op: Operation) -> None:
    shape = declared(op.results[0])
    if DYNAMIC_INDEX not in (*shape, *declared(op.operands[0])):
        _reshape(compiler, op)
        return
    groups = [[a.value.data for a in group] for group in op.properties["reassociation"]]  # type: ignore[attr-defined]

    def collapse(t: Tensor) -> Tensor:
        out = [math.prod(t.shape[a] for a in group) for group in groups]
        require(out, shape)
        return t.reshape(out)

    def expand(t: Tensor, *dims: int) -> Tensor:
        out = filled(wanted, dims)
        require([math.prod(out[a] for a in group) for group in groups], t.shape)
        return t.reshape(out)

    if isinstance(op, tensor.ExpandShapeOp):
        wanted = op.static_output_shape.get_values()
        compiler.call(op, expand)
    else:
        compiler.call(op, collapse)


@emits("tensor.reshape")
def _reshape(compiler: Compiler, op: Operation) -> None:
    shape = _shape(op.results[0])
    compiler.call(op, lambda t: t.reshape(shape), op.operands[:1])


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
    dim = op.properties["dim"].value.data  # type: ignore[attr-defined]
    compiler.call(op, lambda *tiles: torch.cat(tiles, dim=dim))


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
