"""Rules of `tensor.collapse_shape` and `tensor.expand_shape` that xDSL does not check."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType

from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect.extra_ops import compatible


def reshaped(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> Iterable[Diagnostic]:
    """What is wrong with the groups and shapes of a reshape (KT102).

    The groups name the axes of the wider type in order, one group an axis of the narrower one. No groups at
    all are those of a tensor of rank 0, whose wider type has extents of 1 only.
    """
    source, result = op.src.type, op.result.type
    if not isinstance(source, TensorType) or not isinstance(result, TensorType):
        return
    expands = isinstance(op, tensor.ExpandShapeOp)
    wide, narrow = (result, source) if expands else (source, result)
    groups = [[axis.value.data for axis in group] for group in op.reassociation]
    extents, got = wide.get_shape(), narrow.get_shape()
    scalar = not groups and all(extent in (1, DYNAMIC_INDEX) for extent in extents)
    if not scalar and [a for group in groups for a in group] != list(range(len(extents))):
        yield at(op, "KT102", f"groups {groups} do not name each of the {len(extents)} axes of {wide} once")
        return
    want = [_extent([extents[axis] for axis in group]) for group in groups]
    if not compatible(want, got):
        yield at(op, "KT102", f"groups {groups} of {wide} make a shape of {want}, not {list(got)}")
    if isinstance(op, tensor.ExpandShapeOp):
        said = list(op.static_output_shape.get_values())
        if not compatible(said, extents):
            shown = ["%" if s == DYNAMIC_INDEX else s for s in said]
            yield at(op, "KT102", f"output_shape {shown} is not the shape of the result, {result}")


def _extent(extents: list[int]) -> int:
    return DYNAMIC_INDEX if DYNAMIC_INDEX in extents else prod(extents)
