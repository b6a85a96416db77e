"""Nothing but KTIR may leave: every other operation is reported, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from tracer.ktir.dialect.ktdp import DIALECTS
from tracer.lower.edit import operations
from tracer.lower.errors import UnsupportedOpsError
from tracer.lower.manager import Job
from tracer.lower.tt_dialect import describe_offenders, source_line
from tracer.lower.tt_ops import ReduceReturnOp, ScanReturnOp


@dataclass(frozen=True)
class CheckLowered:
    """Raises UnsupportedOpsError naming each operation and its source lines."""

    name: ClassVar[str] = "check-lowered"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Change nothing."""
        offenders: dict[str, list[int]] = {}
        for op in operations(module):
            if op.name.split(".")[0] not in DIALECTS and not isinstance(op, ReduceReturnOp | ScanReturnOp):
                offenders.setdefault(op.name, []).append(source_line(op))
        if offenders:
            numbers = sorted({n for lines in offenders.values() for n in lines if n})
            line = job.line(numbers[0]) if numbers else None
            raise UnsupportedOpsError(op=job.name, line=line, ops=describe_offenders(offenders))
