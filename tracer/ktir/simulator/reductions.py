"""Reductions: one known combiner at a time where torch has it, any combiner as a pairwise tree.

16-bit and narrower floats combine pairwise in halves with a rounding after every step, as the public
simulator does; f32 and f64 sums use torch's own pairwise order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from xdsl.ir import Block, BlockArgument, Operation

from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.float_ops import has_zero

Combiner = Callable[[Tensor, Tensor], Tensor]


def combiner_name(block: Block) -> str | None:
    """`arith.addf` for a body that only combines its two block arguments with that op and yields
    the result.
    """
    ops = list(block.ops)
    if len(ops) != 2 or len(block.args) != 2:
        return None
    op, end = ops
    if set(op.operands) != set(block.args) or len(op.operands) != 2 or list(end.operands) != list(op.results):
        return None
    return op.name


def tree(value: Tensor, axis: int, combine: Combiner) -> Tensor:
    """Fold one axis by combining halves, an odd tail carried over."""
    size = value.shape[axis]
    while size > 1:
        half = size // 2
        folded = combine(value.narrow(axis, 0, half), value.narrow(axis, half, half))
        if size % 2:
            folded = torch.cat([folded, value.narrow(axis, size - 1, 1)], dim=axis)
        value = folded
        size = value.shape[axis]
    return value.squeeze(axis)


def regroups(block: Block) -> bool:
    """Whether partial results of a body may be combined with each other, in any grouping.

    Granted for one associative operation, and for bodies that only compare and select; anything else, such
    as a sum of squares, takes one element and the result so far, in that order.
    """
    if (name := combiner_name(block)) is not None:
        return name in _ASSOCIATIVE
    return all(op.name in _SELECTING for op in list(block.ops)[:-1])


def in_order(
    values: Sequence[Tensor], inits: Sequence[Tensor], axes: Sequence[int], combine: Callable[..., object]
) -> tuple[Tensor, ...]:
    """Fold `axes` element by element, the first axis outermost: `combine(*elements, *so_far)`."""
    count = len(axes)
    rows = [torch.movedim(v, tuple(axes), tuple(range(count))).flatten(0, count - 1) for v in values]
    so_far = tuple(inits)
    for i in range(rows[0].shape[0]):
        found = combine(*(r[i] for r in rows), *so_far)
        so_far = found if isinstance(found, tuple) else (found,)
    return so_far


def _ignoring_nan(fold: Callable[[Tensor, Sequence[int]], Tensor], neutral: float) -> Callable[..., Tensor]:
    def apply(value: Tensor, axes: Sequence[int]) -> Tensor:
        out = fold(value, axes)
        if not bool(torch.isnan(out).any()):
            return out
        missing = torch.isnan(value)
        out = fold(torch.where(missing, neutral, value), axes)
        every = missing
        for axis in sorted(axes, reverse=True):
            every = every.all(dim=axis)
        return torch.where(every, torch.nan, out)

    return apply


def _amax(value: Tensor, axes: Sequence[int]) -> Tensor:
    return torch.amax(value, dim=tuple(axes))


def _amin(value: Tensor, axes: Sequence[int]) -> Tensor:
    return torch.amin(value, dim=tuple(axes))


def _signed_zero(fold: Callable[[Tensor, Sequence[int]], Tensor], sign: bool) -> Callable[..., Tensor]:
    """`fold` that gives a zero of that sign bit where one is among what is folded; torch takes any zero."""

    def apply(value: Tensor, axes: Sequence[int]) -> Tensor:
        out = fold(value, axes)
        if not has_zero(out):
            return out
        found = ((value == 0) & (torch.signbit(value) == sign)).any(dim=tuple(axes))
        zero = torch.zeros((), dtype=value.dtype)
        signed = torch.where(found == sign, -zero, zero)
        return torch.where(out == 0, signed, out)

    return apply


def _sum(value: Tensor, axes: Sequence[int]) -> Tensor:
    return torch.sum(value, dim=tuple(axes), dtype=value.dtype)


def _fold(name: str, el: Element) -> Callable[[Tensor, Sequence[int]], Tensor] | None:
    if el.bits == 1 or el.narrow:
        return None
    match name:
        case "arith.maximumf":
            return _signed_zero(_amax, False)
        case "arith.minimumf":
            return _signed_zero(_amin, True)
        case "arith.maxnumf":
            return _ignoring_nan(_signed_zero(_amax, False), -torch.inf)
        case "arith.minnumf":
            return _ignoring_nan(_signed_zero(_amin, True), torch.inf)
        case "arith.maxsi":
            return _amax
        case "arith.minsi":
            return _amin
        case "arith.addi":
            return _sum
        case "arith.addf" if el.bits >= 32:
            return _sum
    return None


Fold = Callable[[Combiner, Tensor, Sequence[int]], "Tensor | None"]


def reducer(block: Block, el: Element, *, by_halves: bool = False) -> Fold:
    """`fold(combine, tile, axes)` with the body of a reduction; None where an axis is empty."""
    name = combiner_name(block)
    fold = _fold(name, el) if name and not by_halves else None

    def apply(combine: Combiner, value: Tensor, axes: Sequence[int]) -> Tensor | None:
        if any(value.shape[a] == 0 for a in axes):
            return None
        if fold is not None:
            return fold(value, axes) if axes else value
        for axis in sorted(axes, reverse=True):
            value = tree(value, axis, combine)
        return value

    return apply


def folds_output(block: Block, out: BlockArgument) -> tuple[Operation, int] | None:
    """The last op of a generic's body where it combines `out` with a value that does not depend on it.

    Returns the op and the operand position of the value. Only then may the body run once on whole tiles.
    """
    uses = list(out.uses)
    end = block.last_op
    if len(uses) != 1 or end is None or len(end.operands) != 1:
        return None
    op = uses[0].operation
    if len(op.operands) != 2 or op.parent is not block or end.operands[0].owner is not op:
        return None
    if op.name not in _ASSOCIATIVE or len(list(op.results[0].uses)) != 1:
        return None
    return op, 1 - uses[0].index


_ASSOCIATIVE = {
    f"arith.{name}"
    for name in (
        "addf", "addi", "mulf", "muli", "maximumf", "minimumf", "maxnumf", "minnumf", "maxsi", "minsi",
        "maxui",
        "minui", "andi", "ori", "xori",
    )
}  # fmt: skip
_SELECTING = _ASSOCIATIVE - {"arith.addf", "arith.addi", "arith.mulf", "arith.muli"} | {
    "arith.cmpf",
    "arith.cmpi",
    "arith.select",
}
