"""Every access says which lanes of its block lie inside its view; accesses that touch nothing disappear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, ModuleOp, i64

from tracer.lower.analysis.accesses import Access, Lanes, accesses, lanes_at
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import Emitter, erase
from tracer.lower.manager import Job
from tracer.lower.tt_ops import DescriptorLoadOp


@dataclass(frozen=True)
class BoundAccesses:
    """Sets the attribute `lanes` of loads and stores."""

    name: ClassVar[str] = "bound-accesses"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place. Raises InexactTileError where programs differ."""
        scalars = Scalars(job.grid)
        for access in accesses(module):
            lanes = lanes_at(access, scalars, job)
            if lanes is None or any(part.count == 0 for part in lanes):
                _drop(access)
                continue
            access.lanes = ArrayAttr(DenseArrayBase.from_list(i64, [part.skip, part.count]) for part in lanes)


def lanes_of(access: Access) -> list[Lanes]:
    """The lanes that the pass recorded."""
    assert access.lanes is not None
    found = []
    for part in access.lanes:
        assert isinstance(part, DenseArrayBase)
        skip, count = part.get_values()
        found.append(Lanes(int(skip), int(count)))
    return found


def _drop(access: Access) -> None:
    """Nothing inside the view: a load is all padding, a store nothing."""
    if isinstance(access, DescriptorLoadOp):
        emitter = Emitter(access)
        emitter.replace([emitter.splat(0, access.result.type)])
    else:
        erase(access)
