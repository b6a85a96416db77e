"""The linalg dialect: named ops, reductions, maps and generics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from tracer.ktir.affine import evaluate
from tracer.ktir.simulator import compat
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element, is_tensor
from tracer.ktir.simulator.dynamic import is_dynamic, require
from tracer.ktir.simulator.linalg_ops import MATMULS, linalg_function
from tracer.ktir.simulator.reductions import Fold, folds_output, in_order, reducer, regroups
from tracer.ktir.simulator.tensor_ops import tile_function


def _named(compiler: Compiler, op: Operation) -> None:
    function = linalg_function(op)
    if function is None:
        raise Unsupported(f"{op.name} is not supported by the simulator")
    if compiler.compat and op.name in MATMULS:
        a, b, c = MATMULS[op.name]
        function = compat.contraction(
            f"{a},{b}->{c}", element(op.operands[0].type), element(op.results[0].type)
        )
    compiler.call(op, function)


emits(
    *MATMULS,
    *(
        f"linalg.{name}"
        for name in (
            "add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf", "exp", "log", "sqrt",
            "rsqrt", "square",
            "reciprocal", "negf", "abs", "ceil", "floor", "tanh", "erf", "round", "select", "copy", "fill",
            "transpose", "broadcast",
        )
    ),
)(_named)  # fmt: skip


@emits("linalg.reduce")
def _reduce(compiler: Compiler, op: Operation) -> None:
    if len(op.operands) != 2:
        _reduce_many(compiler, op)
        return
    region = op.regions[0]
    dims = op.properties["dimensions"].get_values()  # type: ignore[attr-defined]
    body = compiler.vectorised(region, region.block.args)
    el = element(op.results[0].type)
    fold = reducer(region.block, el, by_halves=compiler.compat)
    regroup = compiler.compat or regroups(region.block)
    reduce = _reduction(fold, tuple(dims), regroup)
    finish = compiler.bind(_kept(reduce, tuple(dims)) if is_dynamic(op) else reduce, "f")
    compiler.line(f"{compiler.define(op.results[0])} = {finish}({body}, {compiler.uses(op.operands)})")


def _kept(reduce: Callable[..., Tensor], dims: tuple[int, ...]) -> Callable[..., Tensor]:
    """A reduction whose init must have the extents that are left."""

    def run(combine: Any, value: Tensor, init: Tensor) -> Tensor:
        require(init.shape, [n for axis, n in enumerate(value.shape) if axis not in dims])
        return reduce(combine, value, init)

    return run


def _reduction(fold: Fold, dims: tuple[int, ...], regroup: bool) -> Callable[..., Tensor]:
    """`reduce(combine, value, init)`: the body of the reduction is a local function of the generated code."""

    def run(combine: Any, value: Tensor, init: Tensor) -> Tensor:
        if not regroup and dims:
            return in_order([value], [init], dims, combine)[0]
        folded = fold(combine, value, dims)
        return init if folded is None else combine(folded, init)

    return run


def _reduce_many(compiler: Compiler, op: Operation) -> None:
    """Several inputs at once: folded pairwise along each dim, rightmost dim first, all lanes together."""
    region = op.regions[0]
    dims = sorted(op.properties["dimensions"].get_values(), reverse=True)  # type: ignore[attr-defined]
    body = compiler.vectorised(region, region.block.args)
    count = len(op.operands) // 2
    regroup = compiler.compat or regroups(region.block)

    def run(combine: Callable[..., tuple[Tensor, ...]], *tiles: Tensor) -> tuple[Tensor, ...]:
        lanes, inits = list(tiles[:count]), tiles[count:]
        if not regroup and dims:
            return in_order(lanes, inits, dims[::-1], combine)
        for axis in dims:
            while (size := lanes[0].shape[axis]) > 1:
                half = size // 2
                left = [t.narrow(axis, 0, half) for t in lanes]
                right = [t.narrow(axis, half, half) for t in lanes]
                folded = combine(*left, *right)
                rest = [t.narrow(axis, 2 * half, size - 2 * half) for t in lanes]
                lanes = [torch.cat([f, r], dim=axis) for f, r in zip(folded, rest, strict=True)]
            if lanes[0].shape[axis] == 0:
                return tuple(inits)
            lanes = [t.squeeze(axis) for t in lanes]
        return tuple(combine(*inits, *lanes))

    targets = ", ".join(compiler.define(r) for r in op.results)
    compiler.line(f"{targets}, = {compiler.bind(run, 'f')}({body}, {compiler.uses(op.operands)})")


@emits("linalg.map")
def _map(compiler: Compiler, op: Operation) -> None:
    region = op.regions[0]
    el = element(op.results[0].type)
    body = compiler.vectorised(region, region.block.args)
    shape = tuple(op.results[0].type.get_shape())  # type: ignore[attr-defined]
    finish = compiler.bind(lambda t: t.to(el.dtype).expand(shape), "f")
    inputs = compiler.uses(op.operands[:-1])
    compiler.line(f"{compiler.define(op.results[0])} = {finish}({body}({inputs}))")


@emits("linalg.index")
def _index(compiler: Compiler, op: Operation) -> None:
    parent = op.parent_op()
    assert isinstance(parent, linalg.GenericOp)
    extents = iteration_extents(parent)
    dim = op.properties["dim"].value.data  # type: ignore[attr-defined]
    shape = [1] * len(extents)
    shape[dim] = extents[dim]
    compiler.tiles.add(op.results[0])
    grid = torch.arange(extents[dim]).reshape(shape)
    compiler.line(f"{compiler.define(op.results[0])} = {compiler.bind(grid)}")


def iteration_extents(op: linalg.GenericOp) -> list[int]:
    """Extent of every loop, read off the operands' shapes. Raises Unsupported where one is not determined."""
    maps = [m.data for m in op.indexing_maps]
    if is_dynamic(op):
        raise Unsupported("a generic over tiles of dynamic shape is not supported; use a named operation")
    extents: dict[int, int] = {}
    for map_, value in zip(maps, op.operands, strict=True):
        if not is_tensor(value.type):
            continue
        for expr, extent in zip(map_.results, _extents(value), strict=True):
            if isinstance(expr, AffineDimExpr):
                known = extents.setdefault(expr.position, extent)
                if known != extent:
                    raise Unsupported(f"loop {expr.position} has extents {known} and {extent}")
    if len(extents) != maps[0].num_dims:
        raise Unsupported("the extent of a loop is not given by any operand")
    return [extents[d] for d in range(maps[0].num_dims)]


def _extents(value: SSAValue) -> Sequence[int]:
    return value.type.get_shape()  # type: ignore[attr-defined]


def _to_space(map_: AffineMap, extents: Sequence[int]) -> Callable[[Any], Any]:
    """An operand arranged so that it broadcasts over the iteration space."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    if len(dims) == len(map_.results) == len(set(dims)):
        order = sorted(range(len(dims)), key=dims.__getitem__)
        shape = [extents[d] if d in dims else 1 for d in range(len(extents))]
        return lambda t: t.permute(order).reshape(shape) if isinstance(t, Tensor) else t
    grids = [
        torch.arange(n).reshape([-1 if i == axis else 1 for i in range(len(extents))])
        for axis, n in enumerate(extents)
    ]
    index = tuple(_grid(e, grids) for e in map_.results)
    return lambda t: t[index] if isinstance(t, Tensor) else t


def _grid(expr: AffineExpr, grids: Sequence[Tensor]) -> Tensor:
    if isinstance(expr, AffineConstantExpr):
        return torch.tensor(expr.value)
    return evaluate(expr, grids)  # type: ignore[arg-type, return-value]


def _from_space(map_: AffineMap, extents: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """A value over the iteration space, its reduced dims of extent 1, arranged as the output."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    if len(dims) != len(map_.results) or len(dims) != len(set(dims)):
        raise Unsupported("the output map of a generic must be a projection of distinct dims")
    missing = [d for d in range(len(extents)) if d not in dims]
    shape = [extents[d] if d in dims else 1 for d in range(len(extents))]

    def arrange(value: Tensor) -> Tensor:
        value = value.expand(shape)
        order = [*dims, *missing]
        return value.permute(order).reshape([extents[d] for d in dims])

    return arrange


@emits("linalg.generic")
def _generic(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, linalg.GenericOp)
    extents = iteration_extents(op)
    maps = [m.data for m in op.indexing_maps]
    reduced = [i for i, t in enumerate(op.iterator_types) if t.data == "reduction"]
    block = op.body.block
    inputs = len(op.inputs)
    values: list[SSAValue] = [*op.inputs, *op.outputs]
    spread = [_to_space(m, extents) for m in maps]
    finish = [_from_space(m, extents) for m in maps[inputs:]]
    els = [element(r.type) for r in op.results]
    if not reduced:
        body = compiler.vectorised(op.body, block.args)

        def parallel(run: Callable[..., Any], *tiles: Any) -> Any:
            out = run(*(f(t) for f, t in zip(spread, tiles, strict=True)))
            outs = out if isinstance(out, tuple) else (out,)
            done = tuple(f(o).to(e.dtype) for f, o, e in zip(finish, outs, els, strict=True))
            return done if len(done) > 1 else done[0]

        _call_generic(compiler, op, parallel, body, values)
        return
    if len(op.outputs) == 1 and (folded := folds_output(block, block.args[-1])) is not None:
        combine_op, _ = folded
        body = compiler.vectorised(op.body, block.args, stop=combine_op)
        combine: Any = tile_function(combine_op)
        fold = reducer_of(combine_op, els[0])

        def reducing(run: Callable[..., Any], *tiles: Any) -> Tensor:
            spaces = [f(t) for f, t in zip(spread, tiles, strict=True)]
            value = run(*spaces).expand(extents)
            folded = fold(combine, value, reduced)
            if folded is None:
                return tiles[-1]
            value = folded
            for d in sorted(reduced):
                value = value.unsqueeze(d)
            return finish[0](combine(value, spaces[-1])).to(els[0].dtype)

        _call_generic(compiler, op, reducing, body, values)
        return
    if any(inner.name == "linalg.index" for inner in block.ops):
        raise Unsupported("linalg.index in a reduction whose body is no plain combination is not supported")
    body = compiler.vectorised(op.body, block.args)

    def stepwise(run: Callable[..., Any], *tiles: Any) -> Any:
        spaces = [f(t) for f, t in zip(spread, tiles, strict=True)]
        for point in itertools.product(*(range(extents[d]) for d in reduced)):
            window = [_at(s, reduced, point) for s in spaces[:inputs]] + spaces[inputs:]
            out = run(*window)
            spaces[inputs:] = out if isinstance(out, tuple) else (out,)
        done = tuple(f(o).to(e.dtype) for f, o, e in zip(finish, spaces[inputs:], els, strict=True))
        return done if len(done) > 1 else done[0]

    _call_generic(compiler, op, stepwise, body, values)


def reducer_of(op: Operation, el: Any) -> Fold:
    """The fold of one combining op, through a body that holds nothing else."""
    block = Block(arg_types=[v.type for v in op.operands])
    clone = op.clone(dict(zip(op.operands, block.args, strict=True)))
    block.add_ops([clone, YieldOp(*clone.results)])
    return reducer(block, el)


def _at(value: Any, dims: Sequence[int], point: Sequence[int]) -> Any:
    if not isinstance(value, Tensor):
        return value
    for dim, index in zip(dims, point, strict=True):
        if value.shape[dim] != 1:
            value = value.narrow(dim, index, 1)
    return value


def _call_generic(
    compiler: Compiler, op: Operation, function: Callable[..., Any], body: str, values: Sequence[SSAValue]
) -> None:
    targets = ", ".join(compiler.define(r) for r in op.results)
    operands = []
    for value in values:
        text = compiler.use(value)
        if not is_tensor(value.type):
            el = element(value.type)
            text = f"{compiler.bind(lambda v, dtype=el.dtype: torch.tensor(v, dtype=dtype), 't')}({text})"
        operands.append(text)
    compiler.line(f"{targets} = {compiler.bind(function, 'f')}({', '.join([body, *operands])})")
