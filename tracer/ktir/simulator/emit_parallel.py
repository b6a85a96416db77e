"""Loop nests without order. They run in lexicographic order, which any program that is right allows."""

from __future__ import annotations

import torch
from torch import Tensor
from xdsl.dialects import scf
from xdsl.ir import Operation

from tracer.ktir.dialect.ktdp import ForallOp, InParallelOp, ParallelInsertSliceOp
from tracer.ktir.simulator.compiler import Compiler, emits, weight
from tracer.ktir.simulator.emit_control import assign, loop_over
from tracer.ktir.simulator.emit_tensor import fitting, slices_of
from tracer.ktir.simulator.faults import Fault


@emits("scf.parallel")
def _parallel(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.ParallelOp)
    assign(compiler, op.results, op.initVals)
    loops = list(zip(op.body.block.args, op.lowerBound, op.upperBound, op.step, strict=True))
    for arg, *bounds in loops:
        loop_over(compiler, arg, [compiler.use(b) for b in bounds], weight(op.body.block))
    compiler.block(op.body.block)
    compiler.indent -= len(loops)


@emits("scf.reduce")
def _reduce(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, scf.ReduceOp)
    loop = op.parent_op()
    assert isinstance(loop, scf.ParallelOp)
    compiler.line("pass")
    for result, value, region in zip(loop.results, op.args, op.reductions, strict=True):
        assign(compiler, region.block.args, (result, value))
        compiler.block(region.block)
        end = region.block.last_op
        assert end is not None
        assign(compiler, [result], end.operands)


class Shared:
    """A shared output of `scf.forall` while its iterations insert into it."""

    def __init__(self, before: Tensor):
        self.value = before.clone(memory_format=torch.contiguous_format)
        self.claimed = torch.zeros(before.shape, dtype=torch.bool)

    def insert(self, source: Tensor, where: tuple[slice, ...]) -> None:
        """Raises Fault KT223 for an element that was inserted before."""
        claimed = self.claimed[where]
        if bool(claimed.any()):
            first = torch.nonzero(claimed)[0]
            place = tuple(s.start + int(i) * s.step for s, i in zip(where, first, strict=True))
            raise Fault("KT223", "another insertion of scf.forall writes this element too", place)
        claimed.fill_(True)
        window = self.value[where]
        window.copy_(source.reshape(window.shape))


@emits("scf.forall")
def _forall(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ForallOp)
    assign(compiler, op.shared, op.outputs)
    # A trace of addresses does not compute tiles that no address depends on.
    computed = compiler.keep is None or op in compiler.keep
    for arg in op.shared if computed else ():
        name = compiler.use(arg)
        compiler.line(f"{name}_shared = {compiler.bind(Shared, 'f')}({name})")
    for arg, bounds in zip(op.indices, op.bounds(), strict=True):
        texts = [str(b) if isinstance(b, int) else compiler.use(b) for b in bounds]
        loop_over(compiler, arg, texts, weight(op.body.block))
    compiler.block(op.body.block)
    compiler.indent -= len(op.indices)
    for result, arg in zip(op.results, op.shared, strict=True):
        held = f"{compiler.use(arg)}_shared.value" if computed else "None"
        compiler.line(f"{compiler.define(result)} = {held}")


@emits("scf.forall.in_parallel")
def _in_parallel(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, InParallelOp)
    compiler.line("pass")
    for inner in op.insertions:
        compiler.op(inner)


@emits("tensor.parallel_insert_slice")
def _insert(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, ParallelInsertSliceOp)
    slices, fits = slices_of(op), fitting(op)

    def insert(shared: Shared, source: Tensor, *dynamic: int) -> None:
        where = slices(shared.value.shape, dynamic)
        fits(shared.value[where].shape, source.shape)
        shared.insert(source, where)

    arguments = compiler.uses([op.source, *op.operands[2:]])
    compiler.line(f"{compiler.bind(insert, 'f')}({compiler.use(op.dest)}_shared, {arguments})")
