"""Builders of KTIR's tensor operations, with the trivial cases left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg_ops
from xdsl.ir import Attribute, Block, Region, SSAValue

from tracer.ktir.dialect.arith_ops import CASTS
from tracer.lower.analysis.dims import regroup
from tracer.lower.edit import Emitter, Number, element_type, shape_of, splat_value, with_shape


def reassociation(small: Sequence[int], large: Sequence[int]) -> list[list[int]]:
    """For every dim of `small` the run of dims of `large` that multiply to it.

    >>> reassociation([8, 64], [8, 1, 64])
    [[0], [1, 2]]
    """
    groups: list[list[int]] = []
    position = 0
    for extent in small:
        group = [position]
        while math.prod(large[i] for i in group) != extent:
            group.append(group[-1] + 1)
        position = group[-1] + 1
        groups.append(group)
    groups[-1] += range(position, len(large))
    return groups


def _groups(groups: list[list[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr(ArrayAttr(IntegerAttr(i, i64) for i in group) for group in groups)


def reshaped(emitter: Emitter, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """`value` in another shape of as many elements; a reshape of a reshape becomes one."""
    while isinstance(value.owner, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.owner.src
    old, new = list(shape_of(value)), list(shape)
    if old == new:
        return value
    middle = [math.prod(old[i] for i in run) for run, _ in regroup(old, new)] or [1]
    if _refines(old, new):
        middle = new
    elif _refines(new, old):
        middle = old
    if middle != old:
        collapse = tensor.CollapseShapeOp.build(
            operands=[value],
            result_types=[with_shape(value.type, middle)],
            properties={"reassociation": _groups(reassociation(middle, old))},
        )
        value = emitter.emit(collapse)
    if middle != new:
        groups = _groups(reassociation(middle, new))
        value = emitter.emit(tensor.ExpandShapeOp(value, [], groups, new, with_shape(value.type, new)))
    return value


def _refines(large: Sequence[int], small: Sequence[int]) -> bool:
    """Whether collapsing runs of `large` gives `small`."""
    if len(small) >= len(large):
        return False
    try:
        groups = reassociation(small, large)
    except IndexError:
        return False
    return [math.prod(large[i] for i in g) for g in groups] == list(small)


def empty(emitter: Emitter, kind: Attribute) -> SSAValue:
    """`tensor.empty`."""
    return emitter.emit(tensor.EmptyOp([], kind), "empty")


def transposed(emitter: Emitter, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Result dim i is source dim order[i]. Only unit dims moving is a reshape."""
    shape = shape_of(value)
    target = [shape[i] for i in order]
    moved = [i for i in order if shape[i] != 1]
    if moved == sorted(moved):
        return reshaped(emitter, value, target)
    init = empty(emitter, with_shape(value.type, target))
    return emitter.emit(linalg_ops.TransposeOp(value, init, DenseArrayBase.from_list(i64, list(order))))


def broadcast(emitter: Emitter, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Unit dims of `value` grown to `shape`, which has the same rank."""
    old = shape_of(value)
    if list(old) == list(shape):
        return value
    constant = splat_value(value)
    if constant is not None:
        return emitter.splat(constant, with_shape(value.type, shape))
    grown = [i for i, (a, b) in enumerate(zip(old, shape, strict=True)) if a != b]
    kept = [extent for i, extent in enumerate(old) if i not in grown]
    if math.prod(old) == 1:
        # By way of a row, since a tile of rank 0 is best avoided.
        row = [1, math.prod(shape)]
        init = empty(emitter, with_shape(value.type, row))
        one = reshaped(emitter, value, [1])
        spread = linalg_ops.BroadcastOp(one, init, DenseArrayBase.from_list(i64, [1]))
        return reshaped(emitter, emitter.emit(spread), shape)
    inner = reshaped(emitter, value, kept)
    init = empty(emitter, with_shape(value.type, shape))
    return emitter.emit(linalg_ops.BroadcastOp(inner, init, DenseArrayBase.from_list(i64, grown)))


def only_element(emitter: Emitter, value: SSAValue) -> SSAValue:
    """The scalar in a tensor of one element."""
    while isinstance(value.owner, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.owner.src
    zero = emitter.integer(0)
    return emitter.emit(tensor.ExtractOp(value, [zero] * len(shape_of(value)), element_type(value.type)))


def splat(emitter: Emitter, value: SSAValue, kind: TensorType) -> SSAValue:
    """A scalar in every lane."""
    constant = splat_value(value)
    if constant is not None:
        return emitter.splat(constant, kind)
    return emitter.emit(tensor.SplatOp(value, [], kind))


def cast(emitter: Emitter, name: str, value: SSAValue, kind: Attribute) -> SSAValue:
    """`arith.<name>` to an element type, keeping the shape; nothing if it is that type already."""
    if element_type(value.type) == kind:
        return value
    target = with_shape(kind, shape_of(value)) if isinstance(value.type, TensorType) else kind
    return emitter.emit(CASTS[f"arith.{name}"](value, target))


def index_cast(emitter: Emitter, value: SSAValue, kind: Attribute) -> SSAValue:
    """Between `index` and an integer type; constants are simply rewritten."""
    if value.type == kind:
        return value
    constant = splat_value(value)
    if constant is not None:
        return emitter.integer(int(constant), kind)
    if isinstance(value.type, IntegerType) and isinstance(kind, IntegerType):
        wider = kind.width.data > value.type.width.data
        return cast(emitter, "extsi" if wider else "trunci", value, kind)
    return emitter.emit(CASTS["arith.index_cast"](value, kind))


def reduce(
    emitter: Emitter, value: SSAValue, axis: int, combine: Any, initial: Number | SSAValue
) -> SSAValue:
    """`linalg.reduce` of one axis; at least one dim stays."""
    shape = [extent for i, extent in enumerate(shape_of(value)) if i != axis]
    kind = element_type(value.type)
    init = initial if isinstance(initial, SSAValue) else emitter.splat(initial, with_shape(kind, shape))
    block = Block(arg_types=[kind, kind])
    block.args[0].name_hint, block.args[1].name_hint = "element", "partial"
    combined = combine(*block.args)
    combined.results[0].name_hint = "combined"
    block.add_ops([combined, linalg_ops.YieldOp(combined.results[0])])
    dims = DenseArrayBase.from_list(i64, [axis])
    return emitter.emit(linalg_ops.ReduceOp(value, init, dims, Region(block)))


def slice_of(emitter: Emitter, value: SSAValue, offsets: Sequence[int], sizes: Sequence[int]) -> SSAValue:
    """`tensor.extract_slice` with static bounds."""
    if list(sizes) == list(shape_of(value)):
        return value
    kind = with_shape(value.type, sizes)
    return emitter.emit(tensor.ExtractSliceOp(value, list(offsets), list(sizes), [1] * len(sizes), kind))


def insert(emitter: Emitter, value: SSAValue, into: SSAValue, offsets: Sequence[int]) -> SSAValue:
    """`tensor.insert_slice` with static bounds."""
    return emitter.emit(
        tensor.InsertSliceOp.from_static_parameters(value, into, list(offsets), list(shape_of(value)))
    )


ARITH: dict[str, Any] = {op.name: op for op in arith.Arith.operations}
INDEX = IndexType()
