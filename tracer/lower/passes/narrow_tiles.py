"""Exact tiles: every dimension gets the extent that its accesses have, power of two or not.

Masks that become provably true go; reductions over dropped lanes are checked to have seen their identity
there. Dimensions that cannot be narrowed keep the block's extent and pad explicitly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, i32
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect.arith_ops import SelectOp
from tracer.lower.analysis.accesses import accesses
from tracer.lower.analysis.combiners import recognise
from tracer.lower.analysis.dims import Dim, DimClasses, Regroup, access_dims, classify, integer
from tracer.lower.analysis.lanes import LaneBounds
from tracer.lower.analysis.padding import Padding, identity
from tracer.lower.analysis.scalars import Scalars
from tracer.lower.edit import (
    Emitter,
    element_type,
    operations,
    retype,
    shape_of,
    splat_constant,
    splat_value,
    with_shape,
)
from tracer.lower.errors import PaddedReductionError
from tracer.lower.manager import Job
from tracer.lower.passes.bound_accesses import lanes_of
from tracer.lower.tt_dialect import source_line
from tracer.lower.tt_ops import DescriptorLoadOp, DotOp, MakeRangeOp, ReduceOp, ScanOp


@dataclass(frozen=True)
class NarrowTiles:
    """Give every tensor its exact shape."""

    name: ClassVar[str] = "narrow-tiles"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place. Raises PaddedReductionError."""
        plan = _Extents(classify(module))
        plan.settle(module)
        bounds = LaneBounds(Scalars(job.grid))
        padding = Padding(plan.classes, bounds, plan.extent)
        for op in operations(module):
            _check(op, plan, padding, job)
        folds = [op for op in operations(module) if isinstance(op, SelectOp)]
        truths = [_mask_truth(op, padding) for op in folds]
        _retype(module, plan)
        for op, truth in zip(folds, truths, strict=True):
            if truth is not None:
                Emitter(op).replace([op.lhs if truth else op.rhs])


@dataclass
class _Extents:
    """The extent of every class."""

    classes: DimClasses
    found: dict[Dim, int] = field(default_factory=dict)
    whole: set[Dim] = field(default_factory=set)

    def extent(self, value: SSAValue, index: int) -> int:
        """The exact extent of one dimension."""
        return self.found.get(self.classes.find((value, index)), shape_of(value)[index])

    def block(self, dim: Dim) -> int:
        """The extent that Triton has for it."""
        return shape_of(dim[0])[dim[1]]

    def settle(self, module: ModuleOp) -> None:
        """Work out all extents from accesses and reshapes."""
        for access in accesses(module):
            value = access.result if isinstance(access, DescriptorLoadOp) else access.source
            for index, lanes in zip(access_dims(access), lanes_of(access), strict=True):
                if index is not None:
                    root = self.classes.find((value, index))
                    self.found[root] = max(self.found.get(root, 0), lanes.skip + lanes.count)
        while not all(self._settle_reshape(group) for group in self.classes.regroups):
            pass

    def _settle_reshape(self, group: Regroup) -> bool:
        """Whether a reshape agrees with the extents; otherwise they are changed so that it may."""
        sources = [self.classes.find(d) for d in group.sources]
        results = [self.classes.find(d) for d in group.results]
        inner = [*sources[1:], *results[1:]]
        if all(self._is_whole(d) for d in inner):
            rest_source, rest_result = (math.prod(map(self.block, part[1:])) for part in (sources, results))
            outer_source, outer_result = self._now(sources[0]), self._now(results[0])
            if outer_source * rest_source == outer_result * rest_result:
                return True
            if results[0] not in self.found and outer_source * rest_source % rest_result == 0:
                self.found[results[0]] = outer_source * rest_source // rest_result
                return False
            if sources[0] not in self.found and outer_result * rest_result % rest_source == 0:
                self.found[sources[0]] = outer_result * rest_result // rest_source
                return False
        for dim in (*sources, *results):
            self.found[dim] = self.block(dim)
        return False

    def _now(self, root: Dim) -> int:
        return self.found.get(root, self.block(root))

    def _is_whole(self, root: Dim) -> bool:
        return self._now(root) == self.block(root)

    def narrowed(self, value: SSAValue, index: int) -> Dim | None:
        """The class of a dimension that loses lanes."""
        root = self.classes.find((value, index))
        return None if self._is_whole(root) else root


def _check(op: Operation, plan: _Extents, padding: Padding, job: Job) -> None:
    """Refuse an operation that combines dropped lanes which do not hold its identity."""
    if isinstance(op, ReduceOp) or (isinstance(op, ScanOp) and integer(op.reverse)):
        axis = integer(op.axis)
        combiner = recognise(op.combiner.block)
        name = combiner.name if combiner else "a combiner of its own"
        for source in op.sources[:1]:
            root = plan.narrowed(source, axis)
            if root is None:
                continue
            wanted = identity(combiner.best or name if combiner else name, element_type(source.type))
            found = padding.value(source, root)
            if not _harmless(name, wanted, found, source, padding):
                raise PaddedReductionError(
                    op=job.name,
                    line=job.line(source_line(op)),
                    combiner=name.removeprefix("arith."),
                    axis=axis,
                )
    if isinstance(op, DotOp):
        axis = len(shape_of(op.a)) - 1
        root = plan.narrowed(op.a, axis)
        if root is not None and 0 not in (padding.value(op.a, root), padding.value(op.b, root)):
            raise PaddedReductionError(op=job.name, line=job.line(source_line(op)), combiner="dot", axis=axis)


def _harmless(
    name: str, wanted: float | None, found: float | None, source: SSAValue, padding: Padding
) -> bool:
    """Whether dropped lanes that hold `found` leave the result as it is."""
    if found is None:
        return False
    if found == wanted:
        return True
    interval = padding.bounds.of(source)
    if interval is None:
        return False
    low, high = padding.kept(source, interval)
    if name in ("arith.maxsi", "arith.maxui"):
        return bool((low >= found).all())
    return name in ("arith.minsi", "arith.minui") and bool((high <= found).all())


def _mask_truth(op: SelectOp, padding: Padding) -> bool | None:
    """Whether a mask is the same in all lanes that stay."""
    interval = padding.bounds.of(op.cond)
    if interval is None:
        return None
    low, high = padding.kept(op.cond, interval)
    if low.size and (low == 1).all():
        return True
    return False if high.size and (high == 0).all() else None


def _retype(module: ModuleOp, plan: _Extents) -> None:
    changes: list[tuple[SSAValue, list[int]]] = []
    for op in operations(module):
        values = [
            *op.results,
            *(arg for region in op.regions for block in region.blocks for arg in block.args),
        ]
        for value in values:
            if isinstance(value.type, TensorType):
                shape = [plan.extent(value, i) for i in range(len(shape_of(value)))]
                if shape != list(shape_of(value)):
                    changes.append((value, shape))
    for value, shape in changes:
        owner = value.owner
        constant = splat_value(value)
        kind = with_shape(value.type, shape)
        if isinstance(owner, arith.ConstantOp) and constant is not None:
            owner.properties["value"] = splat_constant(constant, kind).value
        elif isinstance(owner, MakeRangeOp):
            start = integer(owner.attributes["start"])
            owner.attributes["end"] = IntegerAttr(start + shape[0], i32)
        retype(value, kind)
