"""What a load or a store touches of its view, per dimension and program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tracer.lower.analysis.scalars import Scalars, Values, constant_of
from tracer.lower.edit import operations
from tracer.lower.errors import InexactTileError
from tracer.lower.manager import Job
from tracer.lower.tt_dialect import source_line
from tracer.lower.tt_ops import DescriptorLoadOp, DescriptorStoreOp, MakeTensorDescriptorOp
from tracer.lower.tt_types import DescriptorType

Access = DescriptorLoadOp | DescriptorStoreOp


@dataclass(frozen=True)
class Lanes:
    """The part of a block dimension that lies inside the view: `count` lanes from lane `skip`."""

    skip: int
    count: int


def accesses(root: Operation) -> list[Access]:
    """Loads and stores inside an op, in order."""
    return [op for op in operations(root) if isinstance(op, Access)]


def extents(access: Access, job: Job) -> tuple[int, ...]:
    """Extents of the view that an access goes to."""
    descriptor = access.descriptor.owner
    if not isinstance(descriptor, MakeTensorDescriptorOp):
        raise inexact(access, job, "its descriptor is not made by tl.make_tensor_descriptor in the kernel")
    sizes = [constant_of(size) for size in descriptor.sizes]
    if any(size is None for size in sizes):
        raise inexact(access, job, "the extents of its descriptor are not constants")
    return tuple(size for size in sizes if size is not None)


def block_shape(access: Access) -> tuple[int, ...]:
    """Block extents of the descriptor."""
    kind = access.descriptor.type
    assert isinstance(kind, DescriptorType)
    return kind.shape


def lane_codes(offsets: np.ndarray[Any, Any], block: int, extent: int) -> np.ndarray[Any, Any]:
    """`skip * (block + 1) + count` for every offset; 0 where nothing lies inside."""
    low = np.maximum(offsets, 0)
    count = np.maximum(np.minimum(offsets + block, extent) - low, 0)
    skip = np.where(count > 0, low - offsets, 0)
    return skip * (block + 1) + count


def decode(code: int, block: int) -> Lanes:
    """The inverse of `lane_codes`."""
    return Lanes(*divmod(code, block + 1))


@dataclass(frozen=True)
class Edge:
    """One dimension of an access whose offset is known: its lanes as a function of program and iteration."""

    access: Access
    offset: SSAValue
    codes: Values

    def varies_along(self, axis: SSAValue) -> bool:
        """Whether the lanes change from one value of `axis` to the next."""
        if axis not in self.codes.axes:
            return False
        return bool(np.diff(self.codes.data, axis=self.codes.axes.index(axis)).any())

    def along(self, axis: SSAValue) -> np.ndarray[Any, Any] | None:
        """The codes as a function of `axis` alone; None if they depend on more."""
        moved = np.moveaxis(self.codes.data, self.codes.axes.index(axis), 0)
        flat = moved.reshape(moved.shape[0], -1)
        return flat[:, 0] if (flat == flat[:, :1]).all() else None


def edges(root: Operation, scalars: Scalars, job: Job) -> list[Edge]:
    """Every access dimension in `root` that is not whole for all programs and iterations.

    Raises InexactTileError for a block wider than one at an offset that depends on data.
    """
    found = []
    for access in accesses(root):
        for offset, block, extent in zip(
            access.indices, block_shape(access), extents(access, job), strict=True
        ):
            values = scalars.evaluate(offset)
            if values is None:
                if block != 1:
                    raise inexact(access, job, f"a block of {block} at an offset that depends on data")
                continue
            here = scalars.at([offset], access)
            if here is not None and len(set(lane_codes(here[0], block, extent).tolist())) <= 1:
                continue
            found.append(Edge(access, offset, Values(values.axes, lane_codes(values.data, block, extent))))
    return found


def lanes_at(access: Access, scalars: Scalars, job: Job) -> tuple[Lanes, ...] | None:
    """The lanes of every dimension, the same for all programs that get there; None if nobody does."""
    found = []
    for offset, block, extent in zip(access.indices, block_shape(access), extents(access, job), strict=True):
        values = scalars.at([offset], access)
        if values is None:
            found.append(Lanes(0, 1))
            continue
        codes = set(lane_codes(values[0], block, extent).tolist())
        if not codes:
            return None
        if len(codes) > 1:
            raise inexact(
                access, job, f"a block of {block} fits a view of {extent} in {len(codes)} different ways"
            )
        found.append(decode(codes.pop(), block))
    return tuple(found)


def inexact(op: Operation, job: Job, reason: str) -> InexactTileError:
    """The refusal, with the source line of `op`."""
    return InexactTileError(op=job.name, line=job.line(source_line(op)), reason=reason)


def distinct(values: Sequence[SSAValue]) -> list[SSAValue]:
    """Values without repetition, in order."""
    return list(dict.fromkeys(values))
