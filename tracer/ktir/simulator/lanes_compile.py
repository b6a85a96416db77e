"""Compiling a function so that one pass runs many lanes."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

# Importing emitters registers them; where nothing varies, those of single cores are used.
from tracer.ktir.simulator import (  # noqa: F401
    emitters,
    lanes_emit_control,
    lanes_emit_ktdp,
    lanes_emit_tensor,
)
from tracer.ktir.simulator.compiler import Program, finish_program
from tracer.ktir.simulator.lane_compiler import LaneCompiler
from tracer.ktir.simulator.lanes_analysis import varying_values


def compile_lanes(module: ModuleOp, function: func.FuncOp) -> Program:
    """Compile for lanes: `run(session, lanes, *args)`. Raises Unsupported where the function cannot run that
    way.
    """
    compiler = LaneCompiler(module, varying=varying_values(function))
    block = function.body.block
    parameters = [compiler.define(a) for a in block.args]
    compiler.lines.append(f"def program({', '.join(['session', 'lanes', *parameters])}):")
    compiler.inner(block)
    return finish_program(compiler, function, collective=False)
