"""Constants. Every other operation of arith and math is one function of its operands (`Compiler.plain`)."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element, rounder, wrap
from tracer.ktir.simulator.rounding import narrowed


@emits("arith.constant")
def _constant(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    result = compiler.define(op.result)
    value = op.value
    el = element(op.result.type)
    if isinstance(value, IntegerAttr):
        held: Any = wrap(value.value.data, el.bits)
    elif isinstance(value, FloatAttr):
        held = rounder(el)(value.value.data)
    elif isinstance(value, DenseIntOrFPElementsAttr):
        held = dense(value)
    else:
        raise Unsupported(f"constants of the form {value} are not supported")
    if compiler.vector and not isinstance(held, torch.Tensor):
        held = torch.tensor(held, dtype=el.dtype)
        compiler.tiles.add(op.result)
    literal = isinstance(held, int) or (isinstance(held, float) and math.isfinite(held))
    compiler.line(f"{result} = {held!r}" if literal else f"{result} = {compiler.bind(held)}")


def dense(value: DenseIntOrFPElementsAttr) -> torch.Tensor:
    """The tile of a dense constant."""
    el = element(value.type)
    shape = tuple(value.get_shape())
    values = torch.tensor(list(value.iter_values()), dtype=torch.float64 if el.is_float else torch.int64)
    if el.is_float:
        values = narrowed(values, el.dtype)
    else:
        values = (values & 1).bool() if el.bits == 1 else values.to(el.dtype)
    return values[0].expand(shape).contiguous() if len(value) and value.is_splat() else values.reshape(shape)
