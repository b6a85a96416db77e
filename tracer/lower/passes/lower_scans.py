"""`tl.cumsum` and `tl.associative_scan` become steps of doubling distance over slices.

After the step of distance d every lane holds the combination of the last 2 d lanes: log2(n) steps, no
identity needed, several operands at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from tracer.lower.analysis.dims import integer
from tracer.lower.build import insert
from tracer.lower.edit import Emitter, operations, shape_of
from tracer.lower.lift import along, lift, liftable
from tracer.lower.manager import Job
from tracer.lower.tt_ops import ScanOp


@dataclass(frozen=True)
class LowerScans:
    """`tt.scan` with an elementwise combiner; others stay and are reported."""

    name: ClassVar[str] = "lower-scans"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for op in operations(module):
            if isinstance(op, ScanOp) and liftable(op.combiner.block):
                _scan(op)


def _scan(op: ScanOp) -> None:
    emitter = Emitter(op)
    axis, backwards = integer(op.axis), bool(integer(op.reverse))
    values = list(op.sources)
    extent = shape_of(values[0])[axis]
    distance = 1
    while distance < extent:
        near = [along(emitter, v, axis, 0, extent - distance) for v in values]
        far = [along(emitter, v, axis, distance, extent) for v in values]
        earlier, later = (far, near) if backwards else (near, far)
        combined = lift(emitter, op.combiner.block, [*earlier, *later])
        offsets = [0] * len(shape_of(values[0]))
        offsets[axis] = 0 if backwards else distance
        values = [insert(emitter, c, v, offsets) for c, v in zip(combined, values, strict=True)]
        distance *= 2
    emitter.replace(values)
