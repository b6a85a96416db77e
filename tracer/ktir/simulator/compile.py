"""Compiling a function for one core at a time."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tracer.ktir.diagnostics import KtirError, at

# Importing emitters registers them.
from tracer.ktir.simulator import emitters  # noqa: F401
from tracer.ktir.simulator.compiler import Compiler, Program, finish_program
from tracer.ktir.simulator.liveness import measured, tiles_held


def compile_function(
    module: ModuleOp,
    function: func.FuncOp,
    *,
    keep: set[Operation] | None = None,
    probe: Callable[[Operation], Callable[[Any], None]] | None = None,
    counts: bool = False,
    compat: bool = False,
    marks: Set[Operation] = frozenset(),
    shaped: Set[Operation] = frozenset(),
) -> Program:
    """Compile one function; the session is told of each of `marks` before it runs, and executions of each of
    `shaped` are counted by core, operation and the shapes of operands and results.

    Raises KtirError KT117 for what the simulator does not run.
    """
    compiler = Compiler(module, keep, probe, counts, compat, marks, shaped=shaped)
    if len(function.body.blocks) != 1:
        raise KtirError([at(function, "KT117", "a function body must be one block")])
    compiler.collective = keep is None and any(op.name == "ktdp.inter_tile_reduce" for op in function.walk())
    block = function.body.block
    if keep is None and not compat and measured(module):
        compiler.held = {held.op: held for held in tiles_held(block)}
    parameters = [compiler.define(a) for a in block.args]
    compiler.lines.append(f"def program({', '.join(['session', 'counts', 'x', 'y', 'z', *parameters])}):")
    compiler.block(block)
    if compiler.collective:
        compiler.line("if False: yield")
    return finish_program(compiler, function, collective=compiler.collective)
