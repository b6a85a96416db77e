"""Bounds of operations that choose among elements, or add elements to where an index says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from tracer.validate.error_rules import ADDING, SCATTERED

BoundOf = Callable[[torch.Tensor], torch.Tensor | None]


def selected(bound_of: BoundOf, func: Any, args: Any, kwargs: Any) -> list[torch.Tensor | None]:
    """Bounds of the floating results of an operation whose results are elements of its first operand.

    An element of any rank among others that move by at most E moves by at most E itself.
    """
    bound = bound_of(args[0])
    dims = argument(func, "dim", args, kwargs)
    dims = [dims] if isinstance(dims, int) else list(dims if dims is not None else ())
    found: list[torch.Tensor | None] = []
    for result in tree_tensors(func(*args, **kwargs)):
        if bound is None or not result.is_floating_point():
            found.append(None)
        elif not dims:
            found.append(bound.amax().expand(result.shape))
        else:
            worst = bound.amax(dims, keepdim=True)
            found.append((worst if worst.dim() == result.dim() else worst.squeeze(dims)).expand(result.shape))
    return found


def reduction(func: Any, args: Any, kwargs: Any) -> str:
    """What a scattering operation does where two elements meet: `sum`, `mean`, `prod`, `amax`, `amin`; empty
    where the last one stays."""
    if "accumulate" in (names := [a.name for a in func._schema.arguments]):
        return "sum" if argument(func, "accumulate", args, kwargs) else ""
    return str(argument(func, "reduce", args, kwargs)) if "reduce" in names else "sum"


def collisions(func: Any, name: str, args: Any, kwargs: Any) -> int:
    """The largest number of elements that a scattering operation brings to one place, its own one
    included."""
    place = SCATTERED[name]
    if name in ADDING:
        args, func = args[: place + 1], getattr(torch.ops.aten, ADDING[name]).default
    ones = [*args[:place], torch.ones_like(args[place]), *args[place + 1 :]]
    ones[0] = torch.zeros_like(args[0])
    if "reduce" in (names := [a.name for a in func._schema.arguments]):
        ones[names.index("reduce")] = "sum"
    named = {k: v for k, v in kwargs.items() if k not in ("alpha", "include_self")}
    return int(func(*ones, **named).max()) + 1


def worst_of(bound_of: BoundOf, tree: Any) -> float:
    """The largest bound of any tensor in `tree`; 0 where all are exact."""
    bounds = [b for t in tree_tensors(tree) if (b := bound_of(t)) is not None and b.numel()]
    return max((float(b.max()) for b in bounds), default=0.0)


def magnitudes(tree: Any) -> Any:
    """`tree` with absolute values in place of its floating tensors."""
    return tree_map_only(torch.Tensor, lambda t: t.abs() if t.is_floating_point() else t, tree)


def tree_tensors(tree: Any) -> list[torch.Tensor]:
    """The tensors among the leaves of `tree`, depth first."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def argument(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """The value that a call gives the argument `name` of an ATen operation; its default, or None."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            if name in kwargs:
                return kwargs[name]
            return args[position] if position < len(args) else argument.default_value
    return None
