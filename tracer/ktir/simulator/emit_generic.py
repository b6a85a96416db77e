"""`linalg.generic`: a region over an iteration space that the operands' shapes span."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Block, Operation
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from tracer.ktir.affine import evaluate
from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element, is_tensor
from tracer.ktir.simulator.dynamic import counted, declared, is_dynamic
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.reductions import Fold, folds_output, reducer
from tracer.ktir.simulator.tensor_ops import tile_function

Runner = Callable[..., Any]
"""`run(body, *operands)` of a generic."""


@emits("linalg.index")
def _index(compiler: Compiler, op: Operation) -> None:
    parent = op.parent_op()
    assert isinstance(parent, linalg.GenericOp)
    dim = op.properties["dim"].value.data  # type: ignore[attr-defined]
    compiler.tiles.add(op.results[0])
    if is_dynamic(parent):
        value = f"{compiler.bind(counted, 'f')}({compiler.extents[parent]}, {dim})"
    else:
        value = compiler.bind(counted(iteration_extents(parent), dim))
    compiler.line(f"{compiler.define(op.results[0])} = {value}")


def iteration_extents(op: linalg.GenericOp) -> list[int]:
    """Extent of every loop, read off the operands' types. Raises Unsupported where one is not determined or
    known at run time only.
    """
    determined(op)
    if is_dynamic(op):
        raise Unsupported("the extents of a generic over tiles of dynamic shape are known at run time only")
    try:
        return loop_extents(op, [declared(v) if is_tensor(v.type) else () for v in op.operands])
    except Fault as fault:
        raise Unsupported(fault.message) from None


def determined(op: linalg.GenericOp) -> None:
    """Raise Unsupported where an operand's shape does not give the extent of some loop."""
    maps = [m.data for m in op.indexing_maps]
    found = {
        expr.position
        for map_, value in zip(maps, op.operands, strict=True)
        for expr in (map_.results if is_tensor(value.type) else ())
        if isinstance(expr, AffineDimExpr)
    }
    if len(found) != maps[0].num_dims:
        raise Unsupported("the extent of a loop is not given by any operand")


def loop_extents(op: linalg.GenericOp, shapes: Sequence[Sequence[int]]) -> list[int]:
    """Extent of every loop of a generic over operands of these shapes. Raises Fault KT225 where they do not
    fit.
    """
    maps = [m.data for m in op.indexing_maps]
    extents: dict[int, int] = {}
    sized = [(m, s) for m, s, v in zip(maps, shapes, op.operands, strict=True) if is_tensor(v.type)]
    for map_, shape in sized:
        for expr, extent in zip(map_.results, shape, strict=True):
            if isinstance(expr, AffineDimExpr):
                known = extents.setdefault(expr.position, extent)
                if known != extent:
                    raise Fault("KT225", f"loop {expr.position} has extents {known} and {extent}")
    found = [extents[d] for d in range(maps[0].num_dims)]
    for map_, shape in sized:
        _within(map_, found, shape)
    return found


def _within(map_: AffineMap, extents: Sequence[int], shape: Sequence[int]) -> None:
    """Raise Fault KT225 where a subscript that is no plain loop leaves its operand."""
    if 0 in extents:
        return
    for axis, (expr, extent) in enumerate(zip(map_.results, shape, strict=True)):
        if isinstance(expr, AffineDimExpr):
            continue
        values = _grid(expr, [counted(extents, d) for d in range(len(extents))])
        low, high = int(values.min()), int(values.max())
        if low < 0 or high >= extent:
            raise Fault("KT225", f"subscripts {low} to {high} of axis {axis}, which has {extent} elements")


def _to_space(map_: AffineMap, extents: Sequence[int]) -> Callable[[Any], Any]:
    """An operand arranged so that it broadcasts over the iteration space."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    if len(dims) == len(map_.results) == len(set(dims)):
        order = sorted(range(len(dims)), key=dims.__getitem__)
        shape = [extents[d] if d in dims else 1 for d in range(len(extents))]
        return lambda t: t.permute(order).reshape(shape) if isinstance(t, Tensor) else t
    grids = [counted(extents, d) for d in range(len(extents))]
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
    if not is_dynamic(op):
        extents = iteration_extents(op)
        body, make = _runners(compiler, op)
        _call_generic(compiler, op, make(tuple(extents)), [body])
        return
    determined(op)

    def measure(*tiles: Any) -> tuple[int, ...]:
        return tuple(loop_extents(op, [getattr(t, "shape", ()) for t in tiles]))

    name = compiler.extents[op] = f"extents{len(compiler.lines)}"
    compiler.line(f"{name} = {compiler.bind(measure, 'f')}({compiler.uses(op.operands)})")
    body, make = _runners(compiler, op)
    sized = lru_cache(maxsize=64)(make)
    _call_generic(compiler, op, lambda extents, *rest: sized(extents)(*rest), [name, body])


def _runners(compiler: Compiler, op: linalg.GenericOp) -> tuple[str, Callable[[tuple[int, ...]], Runner]]:
    """Emits the body; returns its name, and what makes the runner for given extents of the loops."""
    reduced = reduced_loops(op)
    block = op.body.block
    if not reduced:
        return compiler.vectorised(op.body, block.args), lambda extents: _parallel(op, extents)
    if len(op.outputs) == 1 and (folded := folds_output(block, block.args[-1])) is not None:
        combiner = folded[0]
        body = compiler.vectorised(op.body, block.args, stop=combiner)
        fold = reducer_of(combiner, element(op.results[0].type))
        combine = tile_function(combiner)
        return body, lambda extents: _reducing(op, extents, reduced, combine, fold)
    if any(inner.name == "linalg.index" for inner in block.ops):
        raise Unsupported("linalg.index in a reduction whose body is no plain combination is not supported")
    return compiler.vectorised(op.body, block.args), lambda extents: _stepwise(op, extents, reduced)


def reduced_loops(op: linalg.GenericOp) -> list[int]:
    """The loops that come to an element of some output more than once: those which its map leaves out.

    What the iterators are called does not change the loop nest: a "reduction" that every output keeps runs as
    a parallel loop does.
    """
    outputs = [m.data for m in op.indexing_maps][len(op.inputs) :]
    kept = [{e.position for e in m.results if isinstance(e, AffineDimExpr)} for m in outputs]
    return [d for d in range(outputs[0].num_dims) if any(d not in dims for dims in kept)]


class _Space:
    """How the operands of a generic are arranged over its iteration space, and results back."""

    def __init__(self, op: linalg.GenericOp, extents: Sequence[int]):
        maps = [m.data for m in op.indexing_maps]
        self._spread = [_to_space(m, extents) for m in maps]
        self._finish = [_from_space(m, extents) for m in maps[len(op.inputs) :]]
        self._types = [element(r.type).dtype for r in op.results]

    def spread(self, tiles: Sequence[Any]) -> list[Any]:
        return [f(t) for f, t in zip(self._spread, tiles, strict=True)]

    def finish(self, out: Any) -> Any:
        outs = out if isinstance(out, tuple | list) else (out,)
        done = tuple(f(o).to(d) for f, o, d in zip(self._finish, outs, self._types, strict=True))
        return done if len(done) > 1 else done[0]


def _parallel(op: linalg.GenericOp, extents: Sequence[int]) -> Runner:
    space = _Space(op, extents)
    return lambda run, *tiles: space.finish(run(*space.spread(tiles)))


def _reducing(
    op: linalg.GenericOp, extents: Sequence[int], reduced: Sequence[int], combine: Any, fold: Fold
) -> Runner:
    space = _Space(op, extents)

    def reducing(run: Callable[..., Any], *tiles: Any) -> Tensor:
        spaces = space.spread(tiles)
        value = fold(combine, run(*spaces).expand(extents), reduced)
        if value is None:
            return tiles[-1]
        for d in sorted(reduced):
            value = value.unsqueeze(d)
        return space.finish(combine(value, spaces[-1]))

    return reducing


def _stepwise(op: linalg.GenericOp, extents: Sequence[int], reduced: Sequence[int]) -> Runner:
    space, inputs = _Space(op, extents), len(op.inputs)

    def stepwise(run: Callable[..., Any], *tiles: Any) -> Any:
        spaces = space.spread(tiles)
        # An output may keep a loop that another reduces, so that a step may write a part of it only.
        spaces[inputs:] = [s.clone() for s in spaces[inputs:]]
        for point in itertools.product(*(range(extents[d]) for d in reduced)):
            window = [_at(s, reduced, point) for s in spaces]
            parts = window[inputs:]
            # The body gets copies, since it may yield one output as another.
            out = run(*window[:inputs], *(part.clone() for part in parts))
            for part, value in zip(parts, out if isinstance(out, tuple) else (out,), strict=True):
                part.copy_(value)
        return space.finish(spaces[inputs:])

    return stepwise


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


def _call_generic(compiler: Compiler, op: linalg.GenericOp, function: Runner, first: Sequence[str]) -> None:
    targets = ", ".join(compiler.define(r) for r in op.results)
    operands = []
    for value in op.operands:
        text = compiler.use(value)
        if not is_tensor(value.type):
            el = element(value.type)
            text = f"{compiler.bind(lambda v, dtype=el.dtype: torch.tensor(v, dtype=dtype), 't')}({text})"
        operands.append(text)
    compiler.line(f"{targets} = {compiler.bind(function, 'f')}({', '.join([*first, *operands])})")
