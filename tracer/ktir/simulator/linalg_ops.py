"""Named linalg ops on tiles: contractions, fills, transposes, broadcasts, elementwise names.

Contractions accumulate in float32 (float64 for f64, exact integers for integers), the output's start value
included, in the order of torch's matrix product, and round once to the output's type. Inputs of another type
are cast first, i1 being 0 and -1; an i1 output is the disjunction of conjunctions, as upstream. An
elementwise name is the operation of arith or math that the region of the upstream op holds, on operands of
one type: `round` is half away from zero, `add` of i1 is `or`, `max` of integers is signed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from tracer.ktir.dialect.extra_ops import CONTRACTIONS
from tracer.ktir.simulator.dtypes import Element, UnsupportedTypeError, element, rounder
from tracer.ktir.simulator.dynamic import alike, is_dynamic, lettered, require
from tracer.ktir.simulator.rounding import narrowed
from tracer.ktir.simulator.tensor_ops import element_function

TileFunction = Callable[..., Tensor]

MATMULS = {"linalg.matmul": ("mk", "kn", "mn"), **CONTRACTIONS}
"""Letters of the dims of both inputs and the output of every named contraction."""


def accumulator(target: Element) -> torch.dtype:
    """The dtype that contractions into `target` accumulate in."""
    if not target.is_float:
        return torch.int64
    return torch.float64 if target.bits == 64 else torch.float32


def widened(value: Tensor, target: Element) -> Tensor:
    """An operand of a contraction into `target`, in the accumulator's type."""
    wide = value.to(accumulator(target))
    return -wide if value.dtype == torch.bool and target.bits > 1 else wide


def contraction(letters: tuple[str, str, str], target: Element) -> TileFunction:
    """`(a, b, c) -> c + a x b`, rounded once."""

    def rounded(product: TileFunction) -> TileFunction:
        if target.is_float:
            return lambda *v: narrowed(product(*(widened(t, target) for t in v)), target.dtype)
        return lambda *v: product(*(widened(t, target) for t in v)).to(target.dtype)

    if letters == ("mk", "kn", "mn") and target.is_float:
        return rounded(lambda a, b, c: torch.addmm(c, a, b))
    if letters == ("bmk", "bkn", "bmn") and target.is_float:
        return rounded(lambda a, b, c: torch.baddbmm(c, a, b))
    equation = f"{letters[0]},{letters[1]}->{letters[2]}"
    return rounded(lambda a, b, c: c + torch.einsum(equation, a, b))


def _fill(op: Operation) -> TileFunction:
    out = op.results[0].type
    target = element(out)
    rounded = rounder(target) if target.is_float else int
    shape = tuple(out.get_shape())  # type: ignore[attr-defined]

    def fill(value: Any, out: Tensor) -> Tensor:
        extents = shape if DYNAMIC_INDEX not in shape else tuple(out.shape)
        return torch.full(extents, rounded(value), dtype=target.dtype)

    return fill


_ELEMENTWISE: dict[str, tuple[str, str]] = {
    "add": ("addf", "addi"),
    "sub": ("subf", "subi"),
    "mul": ("mulf", "muli"),
    "div": ("divf", "divsi"),
    "div_unsigned": ("divf", "divui"),
    "max": ("maximumf", "maxsi"),
    "min": ("minimumf", "minsi"),
    "square": ("mulf", "muli"),
    "abs": ("absf", "absi"),
    **{
        name: (name, "")
        for name in (
            "powf", "exp", "log", "sqrt", "rsqrt", "negf", "ceil", "floor", "tanh", "erf", "round",
        )
    },
}  # fmt: skip
"""Float and integer operation of every elementwise name."""


def _elementwise(name: str, el: Element) -> TileFunction | None:
    if name == "select":
        return torch.where
    if name == "copy":
        return lambda a: a
    if name == "reciprocal":
        divide = element_function("divf", el)
        return divide and (lambda a: divide(torch.ones((), dtype=a.dtype), a))
    if el.bits == 1 and name in ("add", "mul"):
        return element_function("ori" if name == "add" else "andi", el)
    if name not in _ELEMENTWISE:
        return None
    function = element_function(_ELEMENTWISE[name][not el.is_float], el)
    return function and ((lambda a: function(a, a)) if name == "square" else function)


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
            return _transpose(permutation) if is_dynamic(op) else lambda a, _: a.permute(permutation)
        case "broadcast":
            return _broadcast(op)
    target = element(op.results[0].type)
    compute = _elementwise(name, target)
    if compute is None:
        return None
    types = {element(v.type) for v in (op.operands[1:] if name == "select" else op.operands)}
    if len(types) > 1:
        names = " and ".join(sorted(t.name for t in types))
        raise UnsupportedTypeError(f"{op.name} casts nothing: its operands are {names}; cast them before it")
    if is_dynamic(op):
        return alike(lambda *a: compute(*a[:-1]))
    return lambda *a: compute(*a[:-1])


def _transpose(permutation: Sequence[int]) -> TileFunction:
    def transpose(value: Tensor, out: Tensor) -> Tensor:
        turned = value.permute(*permutation)
        require(out.shape, turned.shape)
        return turned

    return transpose


def _broadcast(op: Operation) -> TileFunction:
    dims = sorted(op.properties["dimensions"].get_values())  # type: ignore[attr-defined]
    shape, dynamic = tuple(op.results[0].type.get_shape()), is_dynamic(op)  # type: ignore[attr-defined]

    def broadcast(value: Tensor, out: Tensor) -> Tensor:
        extents = shape
        if dynamic:
            extents = tuple(out.shape)
            require(value.shape, [n for axis, n in enumerate(extents) if axis not in dims])
        for dim in dims:
            value = value.unsqueeze(dim)
        return value.expand(extents)

    return broadcast
