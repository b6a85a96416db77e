"""Loops and conditionals on lanes."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from tracer.ktir.simulator.compiler import Unsupported, weight
from tracer.ktir.simulator.dtypes import element, is_tensor
from tracer.ktir.simulator.lane_compiler import LaneCompiler, is_number, lane_emits
from tracer.ktir.simulator.lanes import merge
from tracer.ktir.simulator.lanes_analysis import expandable


@lane_emits("scf.for")
def _for(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    induction, *carried = op.body.block.args
    varies = bool(compiler.varying & {op.lb, op.ub, op.step})
    bounds = ", ".join(
        ["session", *(compiler.use(v) for v in (op.lb, op.ub, op.step)), str(weight(op.body.block))]
    )
    outer_lanes = compiler.lanes
    if expandable(op):
        fresh, index = f"lanes{len(compiler.lines)}", f"index{len(compiler.lines)}"
        pairs = f"{outer_lanes}.expand({bounds})"
        compiler.line(f"for {index}, {compiler.define(induction)}, {fresh} in {pairs}:")
        compiler.indent += 1
        compiler.lanes = fresh
        old = compiler.selected([op.body.block], op, index)
        compiler.inner(op.body.block)
        compiler.names.update(old)
        compiler.lanes = outer_lanes
        compiler.indent -= 1
        return
    for arg, init in zip(carried, op.iter_args, strict=True):
        value = compiler.spread(init) if arg in compiler.varying else compiler.use(init)
        compiler.line(f"{compiler.define(arg)} = {value}")
    values = f"{outer_lanes}.{'trips' if varies else 'steps'}({bounds})"
    compiler.line(f"for {compiler.define(induction)} in {values}:")
    compiler.indent += 1
    compiler.inner(op.body.block)
    end = op.body.block.last_op
    if carried and end is not None:
        finals = [
            compiler.spread(v) if arg in compiler.varying else compiler.use(v)
            for arg, v in zip(carried, end.operands, strict=True)
        ]
        compiler.line(f"{', '.join(compiler.names[a] for a in carried)} = {', '.join(finals)}")
    compiler.indent -= 1
    for result, arg in zip(op.results, carried, strict=True):
        compiler.line(f"{compiler.define(result)} = {compiler.names[arg]}")


@lane_emits("scf.if")
def _if(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, scf.IfOp)
    condition = compiler.use(op.cond)
    if op.cond not in compiler.varying:
        for keyword, region in ((f"if {condition}:", op.true_region), ("else:", op.false_region)):
            if not region.blocks:
                continue
            compiler.line(keyword)
            compiler.indent += 1
            compiler.inner(region.block)
            end = region.block.last_op
            for result, value in zip(op.results, end.operands if end is not None else (), strict=False):
                text = compiler.spread(value) if result in compiler.varying else compiler.use(value)
                compiler.line(f"{compiler.define(result)} = {text}")
            compiler.indent -= 1
        return
    outer_lanes = compiler.lanes
    stem = f"part{len(compiler.lines)}"
    for result in op.results:
        compiler.line(f"{compiler.define(result)} = []")
    for side, region in (("True", op.true_region), ("False", op.false_region)):
        if not region.blocks:
            continue
        compiler.line(f"{stem} = {outer_lanes}.where({condition}, {side})")
        compiler.line(f"if {stem} is not None:")
        compiler.indent += 1
        fresh, index = f"lanes{len(compiler.lines)}", f"index{len(compiler.lines)}"
        compiler.line(f"{index}, {fresh} = {stem}")
        compiler.lanes = fresh
        old = compiler.selected([region.block], op, index)
        compiler.inner(region.block)
        end = region.block.last_op
        for result, value in zip(op.results, end.operands if end is not None else (), strict=False):
            compiler.line(f"{compiler.names[result]}.append(({index}, {compiler.use(value)}))")
        compiler.names.update(old)
        compiler.lanes = outer_lanes
        compiler.indent -= 1
    for result in op.results:
        if not is_tensor(result.type) and not is_number(result):
            raise Unsupported("a conditional view on lanes")
        shape = tuple(result.type.get_shape()) if is_tensor(result.type) else ()  # type: ignore[attr-defined]
        dtype = compiler.bind(element(result.type).dtype)
        name = compiler.names[result]
        compiler.line(f"{name} = {compiler.bind(merge, 'f')}({outer_lanes}, {name}, {dtype}, {shape!r})")
