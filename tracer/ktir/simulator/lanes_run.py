"""Deciding whether a function runs on lanes, and running it there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator.compiler import Program, Unsupported
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.lanes import Bail, Lanes
from tracer.ktir.simulator.lanes_analysis import batchable, expandable
from tracer.ktir.simulator.lanes_compile import compile_lanes

log = logging.getLogger(__name__)

WORKING_SET = 4 << 20
"""Bytes of live tiles that all lanes together may hold; more would leave the caches."""


@dataclass(frozen=True)
class LaneProgram:
    """A function compiled for lanes, and how many of them run together."""

    program: Program
    limit: int
    whole: bool
    """Whether the cores themselves may all be lanes at once: their tiles live in loops that are expanded."""


def plan(module: ModuleOp, function: func.FuncOp, live: int) -> LaneProgram | None:
    """Compile for lanes; None where that is not possible or not worth it.

    `live` is the number of bytes of tiles that a core holds at once, at most.
    """
    if not batchable(function):
        return None
    limit = max(1, WORKING_SET // max(live, 1))
    if limit < 4:
        return None
    whole = any(
        expandable(op) and op.parent_op() is function for op in function.walk() if isinstance(op, scf.ForOp)
    )
    try:
        return LaneProgram(compile_lanes(module, function), limit, whole)
    except (Unsupported, KtirError) as reason:
        log.debug("%s runs core by core: %s", function.sym_name.data, reason)
        return None


def run_lanes(
    program: LaneProgram | None, prepare: Callable[[Program], Any]
) -> tuple[Any, Any, list[tuple[Any, ...]]] | None:
    """Session, buffers and an empty list of returned values, or None where the function must run core by
    core.
    """
    if program is None:
        return None
    session, buffers, values = prepare(program.program)
    step = session.cores if program.whole else min(program.limit, session.cores)
    try:
        for start in range(0, session.cores, step):
            cores = np.arange(start, min(start + step, session.cores))
            program.program.run(session, Lanes(cores, program.limit), *values)
    except (
        Bail,
        Fault,
        RuntimeError,
        ValueError,
        TypeError,
        IndexError,
        AttributeError,
        ArithmeticError,
    ) as reason:
        # Whatever it was, running core by core will name it, or do without lanes.
        log.debug("%s runs core by core: %r", program.program.name, reason)
        return None
    return session, buffers, []
