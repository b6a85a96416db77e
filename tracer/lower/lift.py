"""A scalar combining region applied to whole tensors, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, SSAValue

from tracer.lower.build import slice_of
from tracer.lower.edit import Emitter, element_type, shape_of, splat_value, with_shape


def lift(emitter: Emitter, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """The values that `block` returns when every argument is a tensor (all of one shape)."""
    shape = shape_of(arguments[0])
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        operands = [values.get(o) or _spread(emitter, o, shape) for o in op.operands]
        if op is block.last_op:
            return operands
        if isinstance(op, arith.ConstantOp):
            continue
        copy = type(op).create(
            operands=operands,
            result_types=[with_shape(r.type, shape) for r in op.results],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
        )
        emitter.insert(copy)
        values.update(zip(op.results, copy.results, strict=True))
    raise AssertionError("a combining region ends in a terminator")


def liftable(block: Block) -> bool:
    """Whether a region holds only elementwise operations on its arguments and constants."""
    for op in block.ops:
        if op is not block.last_op and not op.name.startswith(("arith.", "math.")):
            return False
        for operand in op.operands:
            if (
                operand.owner is not block
                and getattr(operand.owner, "parent_block", lambda: None)() is not block
            ):
                return splat_value(operand) is not None
    return True


def _spread(emitter: Emitter, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    number = splat_value(value)
    assert number is not None
    return emitter.splat(number, TensorType(element_type(value.type), list(shape)))


def along(emitter: Emitter, value: SSAValue, axis: int, start: int, stop: int) -> SSAValue:
    """Lanes `start` to `stop` of one axis."""
    shape = list(shape_of(value))
    offsets = [0] * len(shape)
    offsets[axis], shape[axis] = start, stop - start
    return slice_of(emitter, value, offsets, shape)
