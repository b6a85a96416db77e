"""Descriptors become memory views, loads and stores become access tiles of their exact extents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from tracer.ktir.dialect.ktdp import (
    ConstructAccessTileOp,
    ConstructMemoryViewOp,
    LoadOp,
    MemorySpaceAttr,
    StoreOp,
)
from tracer.lower.analysis.accesses import Access, accesses, extents, inexact
from tracer.lower.analysis.dims import access_dims
from tracer.lower.analysis.scalars import constant_of
from tracer.lower.build import INDEX, insert, reshaped, slice_of
from tracer.lower.edit import Emitter, erase, operations, retype, shape_of, with_shape
from tracer.lower.manager import Job
from tracer.lower.passes.bound_accesses import lanes_of
from tracer.lower.tt_ops import DescriptorLoadOp, MakeTensorDescriptorOp
from tracer.lower.tt_types import DescriptorType


@dataclass(frozen=True)
class LowerMemory:
    """`tt.make_tensor_descriptor`, `tt.descriptor_load` and `tt.descriptor_store`."""

    name: ClassVar[str] = "lower-memory"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        views: dict[SSAValue, SSAValue] = {}
        for access in accesses(module):
            descriptor = access.descriptor.owner
            assert isinstance(descriptor, MakeTensorDescriptorOp)
            if access.descriptor not in views:
                views[access.descriptor] = _view(descriptor, access, job)
            view = views[access.descriptor]
            if isinstance(access, DescriptorLoadOp):
                _load(access, view)
            else:
                _store(access, view)
        for op in operations(module):
            if isinstance(op, MakeTensorDescriptorOp) and not op.descriptor.first_use:
                erase(op)


def _view(descriptor: MakeTensorDescriptorOp, access: Access, job: Job) -> SSAValue:
    sizes = extents(access, job)
    strides = [constant_of(stride) for stride in descriptor.strides]
    if any(stride is None for stride in strides):
        raise inexact(access, job, "the strides of its descriptor are not constants")
    kind = descriptor.descriptor.type
    assert isinstance(kind, DescriptorType)
    assert isinstance(kind.block, TensorType)
    memory = MemRefType(signless(kind.block.element_type), list(sizes))
    known = [stride for stride in strides if stride is not None]
    retype(descriptor.base, INDEX)
    return Emitter(descriptor).emit(
        ConstructMemoryViewOp(descriptor.base, list(sizes), known, memory, MemorySpaceAttr("global")),
        descriptor.descriptor.name_hint,
    )


def signless(kind: Attribute) -> Attribute:
    """Integer types without their sign, which MLIR's arithmetic does not have."""
    return IntegerType(kind.width.data) if isinstance(kind, IntegerType) else kind


def _tile(access: Access, view: SSAValue) -> tuple[Emitter, SSAValue, list[int], list[int]]:
    """The access tile, its extents, and the first lane of every tensor dimension."""
    lanes = lanes_of(access)
    emitter = Emitter(access)
    counts = [part.count for part in lanes]
    indices = list(access.indices)
    for axis, part in enumerate(lanes):
        if part.skip:
            offset = constant_of(indices[axis])
            assert offset is not None, "a tile that starts outside its view has one offset"
            indices[axis] = emitter.integer(offset + part.skip)
    hint = f"{view.name_hint}_tile" if view.name_hint else "tile"
    tile = emitter.emit(ConstructAccessTileOp(view, indices, counts), hint)
    return emitter, tile, counts, [part.skip for part in lanes]


def _load(access: DescriptorLoadOp, view: SSAValue) -> None:
    shape = list(shape_of(access.result))
    emitter, tile, counts, skips = _tile(access, view)
    value = emitter.emit(LoadOp(tile, with_shape(access.result.type, counts)), access.result.name_hint)
    full = _full_shape(access, shape)
    if counts != full:
        zeros = emitter.splat(0, with_shape(access.result.type, full))
        value = insert(emitter, value, zeros, skips)
    emitter.replace([reshaped(emitter, value, shape)])


def _store(access: Access, view: SSAValue) -> None:
    assert not isinstance(access, DescriptorLoadOp)
    shape = list(shape_of(access.source))
    emitter, tile, counts, skips = _tile(access, view)
    value = reshaped(emitter, access.source, _full_shape(access, shape))
    value = slice_of(emitter, value, skips, counts)
    if value.name_hint is None and view.name_hint is not None:
        value.name_hint = f"{view.name_hint}_value"
    emitter.insert(StoreOp(value, tile))
    erase(access)


def _full_shape(access: Access, shape: list[int]) -> list[int]:
    """The tensor's extents by descriptor dimension (dropped unit dims put back)."""
    return [1 if position is None else shape[position] for position in access_dims(access)]
