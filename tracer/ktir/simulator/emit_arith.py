"""Constants. Every other operation of arith and math is one function of its operands (`Compiler.plain`)."""

from __future__ import annotations

import math
from typing import Any

import torch
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from tracer.ktir.simulator.compiler import Compiler, Unsupported, emits
from tracer.ktir.simulator.dtypes import element, wrap


@emits("arith.constant")
def _constant(compiler: Compiler, op: Operation) -> None:
    assert isinstance(op, arith.ConstantOp)
    result = compiler.define(op.result)
    value = op.value
    el = element(op.result.type)
    if isinstance(value, IntegerAttr):
        held: Any = wrap(value.value.data, el.bits)
    elif isinstance(value, FloatAttr):
        held = value.value.data
    elif isinstance(value, DenseIntOrFPElementsAttr):
        held = dense(value)
    else:
        raise Unsupported(f"constants of the form {value} are not supported")
    if compiler.vector and not isinstance(held, torch.Tensor):
        held = torch.tensor(held, dtype=torch.float32 if el.narrow else el.dtype).to(el.dtype)
        compiler.tiles.add(op.result)
    literal = isinstance(held, int) or (isinstance(held, float) and math.isfinite(held))
    compiler.line(f"{result} = {held!r}" if literal else f"{result} = {compiler.bind(held)}")


def dense(value: DenseIntOrFPElementsAttr) -> torch.Tensor:
    """The tile of a dense constant."""
    el = element(value.type)
    shape = tuple(value.get_shape())
    via = torch.float64 if el.is_float else torch.int64
    if value.is_splat():
        single = torch.tensor(next(iter(value.iter_values())), dtype=via)
        single = (single & 1).bool() if el.bits == 1 else single.to(el.dtype)
        return single.expand(shape).clone() if el.narrow else single.expand(shape).contiguous()
    flat = torch.tensor(list(value.iter_values()), dtype=via).reshape(shape)
    return (flat & 1).bool() if el.bits == 1 else flat.to(el.dtype)
