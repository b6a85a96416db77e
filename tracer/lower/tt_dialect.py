"""The `tt` dialect, and where its operations come from."""

from __future__ import annotations

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Dialect, Operation

from tracer.lower.tt_ops import OPS
from tracer.lower.tt_types import DescriptorType, PointerType

Tt = Dialect("tt", list(OPS), [PointerType, DescriptorType])


def source_line(op: Operation) -> int:
    """Line of the kernel source that an op comes from; 0 if unknown."""
    current: Operation | None = op
    while current is not None:
        if isinstance(current.location, FileLineColLoc) and current.location.line.data:
            return current.location.line.data
        current = current.parent_op()
    return 0


def describe_offenders(offenders: dict[str, list[int]]) -> str:
    """`tt.load (lines 3, 7), tt.store (line 9)`."""
    parts = []
    for name, numbers in sorted(offenders.items()):
        lines = sorted({n for n in numbers if n})
        where = f" (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))})" if lines else ""
        parts.append(name + where)
    return ", ".join(parts)
