"""The linalg dialect: named ops, reductions and maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.simulator import compat
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element
from tracer.ktir.simulator.dynamic import is_dynamic, require
from tracer.ktir.simulator.linalg_ops import MATMULS, linalg_function
from tracer.ktir.simulator.reductions import Fold, in_order, reducer, regroups


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

    def run(mapper: Callable[..., Tensor], *tiles: Tensor) -> Tensor:
        shape = tiles[-1].shape
        for tile in tiles[:-1]:
            require(tile.shape, shape)
        return mapper(*tiles[:-1]).to(el.dtype).expand(shape)

    arguments = compiler.uses(op.operands)
    compiler.line(f"{compiler.define(op.results[0])} = {compiler.bind(run, 'f')}({body}, {arguments})")
