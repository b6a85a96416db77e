"""`tl.dot` becomes `linalg.matmul` or `linalg.batch_matmul` with the accumulator as output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from tracer.ktir.dialect.ktdp import BatchMatmulOp, MatmulOp
from tracer.lower.edit import Emitter, operations, shape_of
from tracer.lower.manager import Job
from tracer.lower.tt_ops import DotOp


@dataclass(frozen=True)
class LowerDots:
    """f16 operands with an f32 accumulator stay so: products are accumulated in f32."""

    name: ClassVar[str] = "lower-dots"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            if isinstance(op, DotOp):
                emitter = Emitter(op)
                kind = BatchMatmulOp if len(shape_of(op.a)) == 3 else MatmulOp
                emitter.replace([emitter.emit(kind([op.a, op.b], [op.c]))])
