"""Loops that run exactly once become straight code; loops that never run disappear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import inline_block, operations, replace
from tracer.lower.manager import Job


@dataclass(frozen=True)
class InlineLoops:
    """Where the grid equals the number of tiles, the tile loop goes."""

    name: ClassVar[str] = "inline-loops"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place, outermost loops first."""
        for op in operations(module):
            if isinstance(op, scf.ForOp):
                inline_loop(op, job.grid)


def inline_loop(loop: scf.ForOp, grid: int) -> bool:
    """Inline or erase `loop` if it runs the same number of times, 0 or 1, for every program."""
    values = Scalars(grid).at([loop.lb, loop.ub, loop.step], loop)
    if values is None or values[0].size == 0:
        return False
    lower, upper, step = values
    trips = np.maximum(0, -((lower - upper) // np.maximum(step, 1)))
    if (trips == 0).all():
        replace(loop, list(loop.iter_args))
        return True
    if (trips == 1).all():
        induction = loop.body.block.args[0]
        if induction.name_hint and not loop.lb.name_hint:
            loop.lb.name_hint = induction.name_hint
        replace(loop, inline_block(loop.body.block, loop, [loop.lb, *loop.iter_args]))
        return True
    return False
