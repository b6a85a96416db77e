"""Tensor and linalg operations on lanes: dims move one to the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects import tensor
from xdsl.ir import Operation

from tracer.ktir.simulator.compiler import Unsupported
from tracer.ktir.simulator.dtypes import element
from tracer.ktir.simulator.emit_linalg import _reduction
from tracer.ktir.simulator.emit_tensor import _shape, fitting, slices_of
from tracer.ktir.simulator.lane_compiler import LaneCompiler, lane_emits
from tracer.ktir.simulator.lanes import Bail, Lanes
from tracer.ktir.simulator.lanes_analysis import captured
from tracer.ktir.simulator.linalg_ops import MATMULS, linalg_function, widened
from tracer.ktir.simulator.reductions import reducer, regroups
from tracer.ktir.simulator.rounding import narrowed


def _call(compiler: LaneCompiler, op: Operation, function: Any, *arguments: str) -> None:
    compiler.line(
        f"{compiler.define(op.results[0])} = {compiler.bind(function, 'f')}({', '.join(arguments)})"
    )


def _all(compiler: LaneCompiler, op: Operation) -> list[str]:
    return [compiler.use(v) for v in op.operands]


@lane_emits("tensor.splat")
def _splat(compiler: LaneCompiler, op: Operation) -> None:
    shape = _shape(op.results[0])
    ones = [1] * len(shape)
    _call(compiler, op, lambda v: v.reshape(-1, *ones).expand(-1, *shape), compiler.use(op.operands[0]))


@lane_emits("linalg.fill")
def _fill(compiler: LaneCompiler, op: Operation) -> None:
    shape, el = _shape(op.results[0]), element(op.results[0].type)
    ones = [1] * len(shape)
    _call(
        compiler,
        op,
        lambda v: v.to(el.dtype).reshape(-1, *ones).expand(-1, *shape),
        compiler.use(op.operands[0]),
    )


@lane_emits("tensor.extract")
def _extract(compiler: LaneCompiler, op: Operation) -> None:
    source = op.operands[0]
    shape = _shape(source)
    varies = source in compiler.varying

    def extract(lanes: Lanes, t: Tensor, *index: Any) -> Tensor:
        for i, extent in zip(index, shape, strict=True):
            low, high = (int(i.min()), int(i.max())) if isinstance(i, Tensor) else (i, i)
            if low < 0 or high >= extent:
                raise Bail
        if not varies:
            return t[index]
        if any(isinstance(i, Tensor) for i in index):
            return t[(torch.arange(lanes.n), *index)]
        return t[(slice(None), *index)]

    _call(compiler, op, extract, compiler.lanes, *_all(compiler, op))


@lane_emits("tensor.from_elements")
def _from_elements(compiler: LaneCompiler, op: Operation) -> None:
    shape = _shape(op.results[0])
    values = [compiler.spread(v) for v in op.operands]
    _call(compiler, op, lambda *v: torch.stack(v, dim=-1).reshape(-1, *shape), *values)


@lane_emits("tensor.expand_shape", "tensor.collapse_shape")
def _regroup(compiler: LaneCompiler, op: Operation) -> None:
    if len(op.operands) > 1:
        raise Unsupported("extents that are operands")
    shape = _shape(op.results[0])
    _call(compiler, op, lambda t: t.reshape(t.shape[0], *shape), compiler.use(op.operands[0]))


@lane_emits("tensor.reshape")
def _reshape(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, tensor.ReshapeOp)
    shape = _shape(op.result)
    wanted = torch.tensor(shape, dtype=torch.int64)

    def reshape(t: Tensor, said: Tensor) -> Tensor:
        if not bool((said == wanted).all()):
            raise Bail
        return t.reshape(t.shape[0], *shape)

    _call(compiler, op, reshape, compiler.spread(op.source), compiler.use(op.shape))


@lane_emits("tensor.extract_slice")
def _extract_slice(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    if compiler.varying & set(op.operands[1:]):
        raise Unsupported("slices at varying offsets")
    slices, fits, shape = slices_of(op), fitting(op), _shape(op.result)

    def extract(t: Tensor, *dynamic: int) -> Tensor:
        window = t[(slice(None), *slices(t.shape[1:], dynamic))]
        fits(window.shape[1:], shape)
        return window.reshape(t.shape[0], *shape)

    _call(compiler, op, extract, *_all(compiler, op))


@lane_emits("tensor.insert_slice")
def _insert_slice(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, tensor.InsertSliceOp)
    if compiler.varying & set(op.operands[2:]):
        raise Unsupported("slices at varying offsets")
    slices, fits = slices_of(op), fitting(op)

    def insert(source: Tensor, dest: Tensor, *dynamic: int) -> Tensor:
        out = dest.clone(memory_format=torch.contiguous_format)
        window = out[(slice(None), *slices(dest.shape[1:], dynamic))]
        fits(window.shape[1:], source.shape[1:])
        window.copy_(source.reshape(window.shape))
        return out

    rest = [compiler.use(v) for v in op.operands[2:]]
    _call(compiler, op, insert, compiler.spread(op.source), compiler.spread(op.dest), *rest)


@lane_emits("tensor.concat")
def _concat(compiler: LaneCompiler, op: Operation) -> None:
    dim = op.properties["dim"].value.data + 1  # type: ignore[attr-defined]
    _call(compiler, op, lambda *t: torch.cat(t, dim=dim), *(compiler.spread(v) for v in op.operands))


@lane_emits("linalg.transpose")
def _transpose(compiler: LaneCompiler, op: Operation) -> None:
    axes = [0, *(p + 1 for p in op.properties["permutation"].get_values())]  # type: ignore[attr-defined]
    _call(compiler, op, lambda t: t.permute(axes), compiler.use(op.operands[0]))


@lane_emits("linalg.broadcast")
def _broadcast(compiler: LaneCompiler, op: Operation) -> None:
    dims = sorted(d + 1 for d in op.properties["dimensions"].get_values())  # type: ignore[attr-defined]
    shape = _shape(op.results[0])

    def broadcast(t: Tensor) -> Tensor:
        for dim in dims:
            t = t.unsqueeze(dim)
        return t.expand(t.shape[0], *shape)

    _call(compiler, op, broadcast, compiler.use(op.operands[0]))


def _named(compiler: LaneCompiler, op: Operation) -> None:
    function = linalg_function(op)
    if function is None:
        raise Unsupported(f"{op.name} on lanes")
    _call(compiler, op, function, *_all(compiler, op))


lane_emits(
    *(
        f"linalg.{name}"
        for name in (
            "add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf", "exp", "log", "sqrt",
            "rsqrt", "square",
            "reciprocal", "negf", "abs", "ceil", "floor", "tanh", "erf", "round", "select", "copy",
        )
    )
)(_named)  # fmt: skip


def _contraction(compiler: LaneCompiler, op: Operation) -> None:
    a, b, c = MATMULS[op.name]
    target = element(op.results[0].type)
    marks = ["Z" if v in compiler.varying else "" for v in op.operands]
    equation = f"{marks[0]}{a},{marks[1]}{b}->{'Z' if marks[0] or marks[1] else ''}{c}"
    plain = target.is_float and op.name in ("linalg.matmul", "linalg.batch_matmul")

    def contract(*operands: Tensor) -> Tensor:
        left, right, start = (widened(v, target) for v in operands)
        product = torch.matmul(left, right) if plain else torch.einsum(equation, left, right)
        total = start + product
        return narrowed(total, target.dtype) if target.is_float else total.to(target.dtype)

    _call(compiler, op, contract, *_all(compiler, op))


lane_emits(*MATMULS)(_contraction)


@lane_emits("linalg.reduce")
def _reduce(compiler: LaneCompiler, op: Operation) -> None:
    region = op.regions[0]
    if len(op.operands) != 2 or compiler.varying & set(captured(op)):
        raise Unsupported("this reduction on lanes")
    shift = int(op.operands[0] in compiler.varying)
    dims: Sequence[int] = [d + shift for d in op.properties["dimensions"].get_values()]  # type: ignore[attr-defined]
    body = compiler.vectorised(region, region.block.args)
    fold = reducer(region.block, element(op.results[0].type))
    reduce = _reduction(fold, tuple(dims), regroups(region.block))
    _call(compiler, op, reduce, body, *_all(compiler, op))
