"""Every reduction starts from a constant of its own, right before it.

The public simulator binds the name of a reduction's start to its result: whoever shares the constant, or
reads it in the next iteration of a loop, would start from that result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tracer.lower.edit import Emitter, erase, operations
from tracer.lower.manager import Job


@dataclass(frozen=True)
class PrivateStarts:
    """Constants that `linalg.reduce` starts from are cloned to the reduction."""

    name: ClassVar[str] = "private-starts"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        shared: dict[SSAValue, arith.ConstantOp] = {}
        for op in operations(module):
            if op.name != "linalg.reduce":
                continue
            inputs = len(op.operands) // 2
            for position in range(inputs, len(op.operands)):
                start = op.operands[position]
                if isinstance(start.owner, arith.ConstantOp):
                    shared[start] = start.owner
                    op.operands[position] = Emitter(op).emit(start.owner.clone(), "start")
        for value, constant in shared.items():
            if value.first_use is None:
                erase(constant)
