"""One copy per use of what costs nothing to make: constants, ranges, splats and masks built from them.

Triton's CSE merges two unrelated `tl.arange(0, 64)`; their dimensions must stay apart while extents
are worked out. A later CSE merges what turns out equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.lower.edit import is_pure, operations
from tracer.lower.manager import Job
from tracer.lower.tt_ops import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp

_ROOTS = (arith.ConstantOp, MakeRangeOp, SplatOp)


@dataclass(frozen=True)
class SeparateGenerators:
    """Clone generators so that each has a single user, and stands right before it."""

    name: ClassVar[str] = "separate-generators"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place, users before what they use."""
        generated: set[SSAValue] = set()
        candidates = []
        for op in operations(module):
            if len(op.results) != 1 or not isinstance(op.results[0].type, TensorType):
                continue
            if _is_generator(op, generated):
                generated.add(op.results[0])
                candidates.append(op)
            elif isinstance(op, BroadcastOp | ExpandDimsOp):
                candidates.append(op)
        for op in reversed(candidates):
            _separate(op)


def _is_generator(op: Operation, generated: set[SSAValue]) -> bool:
    if isinstance(op, _ROOTS):
        return True
    tensors = [o for o in op.operands if isinstance(o.type, TensorType)]
    return bool(tensors) and is_pure(op) and not op.regions and all(t in generated for t in tensors)


def _separate(op: Operation) -> None:
    """Every user gets its copy right before it, so that what is later copied with the user goes along."""
    for index, use in enumerate(list(op.results[0].uses)):
        anchor = use.operation
        block = anchor.parent_block()
        assert block is not None
        if index == 0:
            op.detach()
        copy = op if index == 0 else op.clone()
        block.insert_op_before(copy, anchor)
        anchor.operands[use.index] = copy.results[0]
