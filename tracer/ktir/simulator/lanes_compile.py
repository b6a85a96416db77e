"""Compiling a function so that one pass runs many lanes: tiles that differ between lanes get a leading
dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.simulator.compile import Compiler, Program, Unsupported, finish_program
from tracer.ktir.simulator.dtypes import UnsupportedTypeError, element, is_tensor
from tracer.ktir.simulator.lanes import merge, spread, take
from tracer.ktir.simulator.lanes_analysis import captured, expandable, inputs, varying_values
from tracer.ktir.simulator.tensor_ops import tile_function

LaneEmitter = Callable[["LaneCompiler", Operation], None]
LANE_EMITTERS: dict[str, LaneEmitter] = {}


def lane_emits(*names: str) -> Callable[[LaneEmitter], LaneEmitter]:
    """Register how operations with varying operands are compiled."""

    def register(emitter: LaneEmitter) -> LaneEmitter:
        for name in names:
            LANE_EMITTERS[name] = emitter
        return emitter

    return register


@dataclass
class LaneCompiler(Compiler):
    """A compiler whose emitters know which values vary. `lanes` names the local variable that holds the
    lanes.
    """

    varying: set[SSAValue] = field(default_factory=set)
    lanes: str = "lanes"

    def op(self, op: Operation) -> None:
        """Emit with the base emitter where nothing varies. Raises Unsupported for what lanes cannot do."""
        if self.vector or not (isinstance(op, scf.ForOp | scf.IfOp) or self._varies(op)):
            super().op(op)
            return
        outer, self.current = self.current, op
        try:
            emitter = LANE_EMITTERS.get(op.name)
            if emitter is not None:
                emitter(self, op)
            elif op.name.startswith(("arith.", "math.")):
                self.elementwise(op)
            else:
                raise Unsupported(f"{op.name} on lanes")
        finally:
            self.current = outer

    def _varies(self, op: Operation) -> bool:
        return (
            any(v in self.varying for v in (*inputs(op), *op.results))
            or op.name == "ktdp.get_compute_tile_id"
        )

    def elementwise(self, op: Operation) -> None:
        """arith and math: tiles broadcast over lanes by themselves, scalars become one-dimensional tiles."""
        if op.name in _POINTER_ARITHMETIC and element(op.results[0].type).name == "index":
            sign = _POINTER_ARITHMETIC[op.name]
            left, right = (self.use(v) for v in op.operands)
            self.line(f"{self.define(op.results[0])} = {left} {sign} {right}")
            return
        function = tile_function(op)
        if function is None:
            raise Unsupported(f"{op.name} on lanes")
        rank = max((len(v.type.get_shape()) for v in op.operands if is_tensor(v.type)), default=0)  # type: ignore[attr-defined]
        arguments = [self.aligned(v, rank) for v in op.operands]
        self.line(f"{self.define(op.results[0])} = {self.bind(function, 'f')}({', '.join(arguments)})")

    def aligned(self, value: SSAValue, rank: int) -> str:
        """An operand that broadcasts against tiles of that rank with a lane dimension in front."""
        name = self.use(value)
        if is_tensor(value.type):
            return name
        if value not in self.varying:
            dtype = element(value.type).dtype
            return f"{self.bind(lambda v, d=dtype: torch.tensor(v, dtype=d), 't')}({name})"
        return f"{name}.reshape({', '.join(['-1', *['1'] * rank])})" if rank else name

    def spread(self, value: SSAValue) -> str:
        """A value with a lane dimension in any case."""
        if value in self.varying:
            return self.use(value)
        if not is_tensor(value.type) and not hasattr(value.type, "width") and not _is_number(value):
            raise Unsupported("a view cannot become one per lane")
        shape = tuple(value.type.get_shape()) if is_tensor(value.type) else None  # type: ignore[attr-defined]
        dtype = element(value.type).dtype
        return f"{self.bind(spread, 'f')}({self.use(value)}, {self.lanes}, {self.bind(dtype)}, {shape!r})"

    def selected(self, blocks: Sequence[Block], op: Operation, index: str) -> dict[SSAValue, str]:
        """Rebind the varying values that the regions of `op` use to the lanes at `index`; returns the old
        names.
        """
        old: dict[SSAValue, str] = {}
        taker = self.bind(take, "f")
        for value in captured(op):
            if value in self.varying and value in self.names:
                old[value] = self.names[value]
                fresh = f"s{len(self.lines)}_{len(old)}"
                self.line(f"{fresh} = {taker}({old[value]}, {index})")
                self.names[value] = fresh
        return old

    def inner(self, block: Block) -> None:
        """Emit the operations of a nested block."""
        start = len(self.lines)
        for op in block.ops:
            if op.next_op is not None or op.results or op.name.startswith("ktdp."):
                self.op(op)
        if len(self.lines) == start:
            self.line("pass")


_POINTER_ARITHMETIC = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}


def _is_number(value: SSAValue) -> bool:
    try:
        element(value.type)
    except UnsupportedTypeError:
        return False
    return "memref" not in str(value.type) and "ktdp" not in str(value.type)


def compile_lanes(module: ModuleOp, function: func.FuncOp) -> Program:
    """Compile for lanes: `run(session, lanes, *args)`. Raises Unsupported where the function cannot run that
    way.
    """
    from tracer.ktir.simulator import (
        emit_control,
        emit_ktdp,
        emit_linalg,
        emit_tensor,
        lanes_emit_ktdp,
        lanes_emit_tensor,
    )

    _ = emit_control, emit_ktdp, emit_linalg, emit_tensor, lanes_emit_ktdp, lanes_emit_tensor
    compiler = LaneCompiler(module, varying=varying_values(function))
    block = function.body.block
    parameters = [compiler.define(a) for a in block.args]
    compiler.lines.append(f"def program({', '.join(['session', 'lanes', *parameters])}):")
    compiler.inner(block)
    return finish_program(compiler, function, collective=False)


@lane_emits("scf.for")
def _for(compiler: LaneCompiler, op: Operation) -> None:
    assert isinstance(op, scf.ForOp)
    induction, *carried = op.body.block.args
    varies = bool(compiler.varying & {op.lb, op.ub, op.step})
    bounds = [compiler.use(v) for v in (op.lb, op.ub, op.step)]
    outer_lanes = compiler.lanes
    if expandable(op):
        fresh, index = f"lanes{len(compiler.lines)}", f"index{len(compiler.lines)}"
        pairs = f"{outer_lanes}.expand({', '.join(bounds)})"
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
    if varies:
        compiler.line(f"for {compiler.define(induction)} in {outer_lanes}.trips({', '.join(bounds)}):")
    else:
        from tracer.ktir.simulator.emit_control import steps

        compiler.line(
            f"for {compiler.define(induction)} in {compiler.bind(steps, 'f')}({', '.join(bounds)}):"
        )
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
        if not is_tensor(result.type) and not _is_number(result):
            raise Unsupported("a conditional view on lanes")
        shape = tuple(result.type.get_shape()) if is_tensor(result.type) else ()  # type: ignore[attr-defined]
        dtype = compiler.bind(element(result.type).dtype)
        name = compiler.names[result]
        compiler.line(f"{name} = {compiler.bind(merge, 'f')}({outer_lanes}, {name}, {dtype}, {shape!r})")


__all__ = ["LANE_EMITTERS", "LaneCompiler", "Tensor", "compile_lanes", "lane_emits"]
