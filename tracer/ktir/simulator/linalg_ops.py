"""Named linalg ops on tiles: contractions, fills, transposes, broadcasts, elementwise names.

Contractions accumulate in float32 (float64 for f64, exact integers for integers), the output's start value
included, and round once to the output's type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from tracer.ktir.extra_ops import CONTRACTIONS
from tracer.ktir.simulator.dtypes import Element, element
from tracer.ktir.simulator.dynamic import alike, is_dynamic, lettered, require
from tracer.ktir.simulator.tensor_ops import INTEGER

TileFunction = Callable[..., Tensor]

MATMULS = {"linalg.matmul": ("mk", "kn", "mn"), **CONTRACTIONS}
"""Letters of the dims of both inputs and the output of every named contraction."""


def accumulator(target: Element) -> torch.dtype:
    """The dtype that contractions into `target` accumulate in."""
    if not target.is_float:
        return torch.int64
    return torch.float64 if target.bits == 64 else torch.float32


def contraction(letters: tuple[str, str, str], target: Element) -> TileFunction:
    """`(a, b, c) -> c + a x b`, rounded once."""
    wide = accumulator(target)
    dtype = target.dtype
    if letters == ("mk", "kn", "mn") and target.is_float:
        return lambda a, b, c: torch.addmm(c.to(wide), a.to(wide), b.to(wide)).to(dtype)
    if letters == ("bmk", "bkn", "bmn") and target.is_float:
        return lambda a, b, c: torch.baddbmm(c.to(wide), a.to(wide), b.to(wide)).to(dtype)
    equation = f"{letters[0]},{letters[1]}->{letters[2]}"
    return lambda a, b, c: (c.to(wide) + torch.einsum(equation, a.to(wide), b.to(wide))).to(dtype)


def _fill(op: Operation) -> TileFunction:
    out = op.results[0].type
    target = element(out)
    shape = tuple(out.get_shape())  # type: ignore[attr-defined]

    def fill(value: Any, out: Tensor) -> Tensor:
        extents = shape if DYNAMIC_INDEX not in shape else tuple(out.shape)
        if target.narrow:
            return torch.full(extents, value, dtype=torch.float32).to(target.dtype)
        return torch.full(extents, value, dtype=target.dtype)

    return fill


_ELEMENTWISE: dict[str, TileFunction] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "max": torch.maximum,
    "min": torch.minimum,
    "powf": torch.pow,
    "exp": torch.exp,
    "log": torch.log,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "square": lambda a: a * a,
    "reciprocal": torch.reciprocal,
    "negf": torch.neg,
    "abs": torch.abs,
    "ceil": torch.ceil,
    "floor": torch.floor,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "round": torch.round,
    "select": torch.where,
    "copy": lambda a: a,
}


def _divide(target: Element) -> TileFunction:
    if target.is_float:
        return torch.div
    return INTEGER["divsi"]


def linalg_function(op: Operation) -> TileFunction | None:
    """The function of a named linalg op on its operands (inputs, then outputs), or None for any other op."""
    if op.name in MATMULS:
        function = contraction(MATMULS[op.name], element(op.results[0].type))
        return lettered(function, MATMULS[op.name]) if is_dynamic(op) else function
    name = op.name.removeprefix("linalg.")
    match name:
        case "fill":
            return _fill(op)
        case "transpose":
            permutation = op.properties["permutation"].get_values()  # type: ignore[attr-defined]
            return lambda a, _: a.permute(permutation)
        case "broadcast":
            return _broadcast(op)
        case "div" | "div_unsigned":
            function = _named_division(name, op)
        case _ if name in _ELEMENTWISE:
            function = _ELEMENTWISE[name]
        case _:
            return None
    target = element(op.results[0].type)
    if is_dynamic(op):
        plain = function
        return alike(lambda *a: plain(*a[:-1]).to(target.dtype))
    if target.narrow:
        return lambda *a: function(*(v.to(torch.float32) for v in a[:-1])).to(target.dtype)
    return lambda *a: function(*a[:-1]).to(target.dtype)


def _named_division(name: str, op: Operation) -> TileFunction:
    return INTEGER["divui"] if name == "div_unsigned" else _divide(element(op.results[0].type))


def _broadcast(op: Operation) -> TileFunction:
    dims = sorted(op.properties["dimensions"].get_values())  # type: ignore[attr-defined]
    shape = tuple(op.results[0].type.get_shape())  # type: ignore[attr-defined]

    def broadcast(value: Tensor, out: Tensor) -> Tensor:
        extents = shape
        if DYNAMIC_INDEX in shape:
            extents = tuple(out.shape)
            require(value.shape, [n for axis, n in enumerate(extents) if axis not in dims])
        for dim in dims:
            value = value.unsqueeze(dim)
        return value.expand(extents)

    return broadcast
