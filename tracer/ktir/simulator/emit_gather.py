"""`tensor.gather` and `tensor.scatter`: whole slices at coordinates that a tile holds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.dialect.gather_ops import GatherOp, ScatterOp
from tracer.ktir.simulator.compiler import Compiler, emits
from tracer.ktir.simulator.dynamic import declared, require
from tracer.ktir.simulator.faults import Fault


def _places(indices: Tensor, shape: Sequence[int], dims: Sequence[int], unique: bool) -> tuple[Tensor, ...]:
    """Coordinates along `dims`, one tile for each. Raises Fault KT215 for one outside, KT217 for a row that
    comes again where rows must differ.
    """
    rows = indices.long()
    for place, axis in enumerate(dims):
        column = rows[..., place]
        bad = torch.nonzero((column < 0) | (column >= shape[axis]))
        if len(bad):
            where = tuple(int(i) for i in bad[0])
            text = f"index {int(column[where])} of axis {axis}, which has {shape[axis]} elements"
            raise Fault("KT215", text, where)
    flat = rows.reshape(-1, len(dims))
    if unique and len(torch.unique(flat, dim=0)) < len(flat):
        seen: set[tuple[int, ...]] = set()
        for row in map(tuple, flat.tolist()):
            if row in seen:
                raise Fault(
                    "KT217", f"coordinates {list(row)} come more than once, where unique says they do not"
                )
            seen.add(row)
    return tuple(rows[..., place] for place in range(len(dims)))


def _front(rank: int, dims: Sequence[int]) -> list[int]:
    return [*dims, *(a for a in range(rank) if a not in dims)]


@emits("tensor.gather")
def _gather(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, GatherOp)
    dims, unique, shape = op.gather_dims.get_values(), op.unique is not None, declared(op.result)

    def gather(source: Tensor, indices: Tensor) -> Tensor:
        places = _places(indices, source.shape, dims, unique)
        out = source.permute(_front(source.dim(), dims))[places]
        lead = indices.dim() - 1
        for axis in dims if len(shape) > out.dim() else ():
            out = out.unsqueeze(lead + axis)
        require(out.shape, shape)
        return out

    compiler.call(op, gather)


@emits("tensor.scatter")
def _scatter(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ScatterOp)
    dims = op.scatter_dims.get_values()

    def scatter(source: Tensor, dest: Tensor, indices: Tensor) -> Tensor:
        places = _places(indices, dest.shape, dims, True)
        out = dest.clone(memory_format=torch.contiguous_format)
        window = out.permute(_front(dest.dim(), dims))
        wanted = [*indices.shape[:-1], *window.shape[len(dims) :]]
        axes = [indices.dim() - 1 + axis for axis in dims]
        slices = source.squeeze(axes) if source.dim() > len(wanted) else source
        require(slices.shape, wanted)
        window[places] = slices
        return out

    compiler.call(op, scatter)
