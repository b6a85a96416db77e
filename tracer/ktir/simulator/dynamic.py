"""Tiles whose extents are known at run time only: their shapes, and checks that the parser cannot make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from tracer.ktir.simulator.dtypes import is_tensor
from tracer.ktir.simulator.faults import Fault

_ADDRESSABLE = 1 << 48

Shapes = tuple[tuple[int, ...] | None, ...]


def declared(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tile's type, -1 where dynamic."""
    return tuple(value.type.get_shape())  # type: ignore[attr-defined]


def is_dynamic(op: Operation) -> bool:
    """Whether an operand or result has an extent that is known at run time only."""
    return any(is_tensor(v.type) and DYNAMIC_INDEX in declared(v) for v in (*op.operands, *op.results))


def filled(shape: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """`shape` with its dynamic extents taken from `sizes`. Raises Fault KT225 for a negative one, KT207 where
    no machine could address the elements.
    """
    values = iter(sizes)
    out = tuple(next(values) if extent == DYNAMIC_INDEX else extent for extent in shape)
    if min(out, default=0) < 0:
        raise Fault("KT225", f"a tile of shape {list(out)}")
    if prod(out) > _ADDRESSABLE:
        raise Fault("KT207", f"a tile of shape {list(out)} has more elements than any memory")
    return out


def counted(extents: Sequence[int], dim: int) -> Tensor:
    """0, 1, ... along `dim` of a space, of extent 1 along the others."""
    return torch.arange(extents[dim]).reshape([-1 if d == dim else 1 for d in range(len(extents))])


def elements(value: Any) -> int:
    """Elements of a tile, or of the partial in a future; 0 where the executing core has none."""
    if isinstance(value, tuple):
        _, _, value, _ = value
    return value.numel() if isinstance(value, Tensor) else 0


def shapes_of(*values: Any) -> Shapes:
    """The shapes of tiles; None for what is none."""
    return tuple(tuple(v.shape) if isinstance(v, Tensor) else None for v in values)


def require(shape: Sequence[int], wanted: Sequence[int]) -> None:
    """Raise Fault KT225 unless `shape` is `wanted`, whose dynamic extents are free."""
    if len(shape) != len(wanted) or any(
        w not in (DYNAMIC_INDEX, s) for s, w in zip(shape, wanted, strict=True)
    ):
        shown = ["?" if w == DYNAMIC_INDEX else w for w in wanted]
        raise Fault("KT225", f"a tile of shape {list(shape)} where {shown} is needed")


def alike(function: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise function whose tiles must have one shape. Raises Fault KT225 where they have not."""

    def apply(*values: Any) -> Any:
        shapes = [tuple(v.shape) for v in values if isinstance(v, Tensor)]
        for shape in shapes[1:]:
            require(shape, shapes[0])
        return function(*values)

    return apply


def lettered(function: Callable[..., Any], letters: Sequence[str]) -> Callable[..., Any]:
    """A contraction whose operands have the dims that `letters` spell. Raises Fault KT225 otherwise."""

    def apply(*values: Tensor) -> Any:
        extents: dict[str, int] = {}
        for word, value in zip(letters, values, strict=True):
            require(value.shape, [extents.setdefault(c, n) for c, n in zip(word, value.shape, strict=True)])
        return function(*values)

    return apply
