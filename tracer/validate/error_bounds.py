"""A bound on the rounding error of every element that an oracle computes, from a running error analysis.

The oracle runs in float64. Beside each of its tensors goes a bound on how far a computation of the same
formula may be off that rounds every operation to the kernel's arithmetic (float32). The rules are the
textbook ones (Wilkinson's running error analysis; Higham, Accuracy and Stability of Numerical Algorithms,
chapters 2 to 4):

* data movement: the bound moves with the data; inputs are exact, so that copies, integers and bools stay
  exact;
* an elementwise function: how far the result moves when each operand moves by its bound, plus one rounding of
  the result (four units for functions that hardware only approximates: the CUDA programming guide's tables
  give at most 4 ulp for those that kernels call);
* a sum of n terms, or a contraction over n: gamma(n) times the sum of the terms' absolute values, plus what
  the terms' own bounds add up to; nothing where every partial sum is a number of the arithmetic.

Bounds say nothing about any kernel: a kernel is compared with the oracle, and the bound is of the oracle's
formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from tracer.validate.error_choices import (
    argument,
    collisions,
    magnitudes,
    reduction,
    selected,
    tree_tensors,
    worst_of,
)
from tracer.validate.error_formulas import formulas, in_float32
from tracer.validate.error_rules import (
    CONSTANTS,
    CONTRACTIONS,
    DOMAINS,
    EXACT,
    FILLERS,
    MOVES,
    ROUNDED_ONCE,
    SCALED_ARGUMENT,
    SCALED_OPERAND,
    SCATTERED,
    SELECTIONS,
    SUMS,
    TRANSCENDENTAL,
    UNINITIALISED,
    UNSCALED,
    WINDOWED_MAXIMA,
    covered,
)  # fmt: skip
from tracer.validate.float_grid import grid
from tracer.validate.oracle import flat_memory

APPROXIMATED = 4
"""Units in the last place that a function costs which hardware approximates."""

_UNBOUNDED = 1e30
"""Bound where the analysis overflows: above any value, and still finite after a sum in float32."""

_CONFIDENCE = 8.0
"""The lambda of Higham and Mary (2019), theorem 2.4: with it an error beyond lambda sqrt(n) u has a
probability below 2 exp(-lambda^2 / 2), 3e-14 per element, if roundings are independent."""


def gamma(terms: int, unit: float) -> float:
    """Relative bound for the accumulated rounding of `terms` additions in an arithmetic of rounding unit
    `unit`.

    The smaller of Higham's worst case n u / (1 - n u) and the probabilistic bound lambda sqrt(n) u.
    """
    worst = terms * unit / (1 - terms * unit) if terms * unit < 1 else math.inf
    return min(worst, _CONFIDENCE * math.sqrt(terms) * unit)


class ErrorBounds(TorchDispatchMode):
    """Runs what is inside as usual, and keeps a bound for every floating tensor it makes.

    `unit` is the rounding unit of the arithmetic (2**-24 for float32), `stored` that of buffers between
    kernels where it is coarser, else 0, `products` that of the products of contracted tiles before they are
    accumulated, where it is coarser. `guessed` names operations that no rule covers; they get gamma(n)
    times the result for absolute operands, n the number of elements per result. `exact_sums` counts the sums
    and contractions that round nothing in any order.
    """

    def __init__(self, unit: float = 2.0**-24, stored: float = 0.0, products: float = 0.0):
        super().__init__()
        self.unit = unit
        self.stored = stored
        self.products = products
        self.guessed: set[str] = set()
        self.exact_sums = 0
        self._bounds = WeakIdKeyDictionary()
        self._bases = WeakIdKeyDictionary()

    def bound(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The bound of a tensor, float64 of its shape; None where it is exact."""
        return self._bounds.get(tensor)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        mutates = func._schema.is_mutable
        pure = _functional(func) if mutates else func
        if not mutates and (wide := self._converted(func, name, args, kwargs)) is not None:
            with self:
                return func(*wide[0], **wide[1])
        rules = formulas().get(pure, ())
        # A formula of an op that writes some operands beside its result (batch_norm) writes them as well.
        writes = mutates and not name.endswith("_")
        if rules and (writes or not pure._schema.is_mutable):
            with self:
                result = self._widest([rule(*args, **kwargs) for rule in rules])
            if writes or not mutates:
                return result
            bounds = [self.bound(t) for t in tree_tensors(result)]
        elif (
            not mutates
            and not covered(name)
            and torch.Tag.pointwise not in func.tags
            and func._can_decompose()
        ):
            with self:
                return func.decompose(*args, **kwargs)
        else:
            bounds = self._of_result(pure, name.rstrip("_") if mutates else name, args, kwargs)
        out = func(*args, **kwargs)
        if name in UNINITIALISED:
            # No value is wrong there; the one that Inductor's kernels write makes runs repeat.
            out.zero_()
        for tensor, bound in zip(tree_tensors(out), bounds, strict=False):
            if bound is None:
                self._bounds.pop(tensor, None)
            else:
                known = torch.nan_to_num(bound, nan=0.0, posinf=_UNBOUNDED)
                if bool(torch.isposinf(bound).any()):
                    # An infinite result is what it is; a finite one may be off by anything.
                    known = torch.where(torch.isfinite(tensor), known, 0.0)
                self._bounds[tensor] = known
            base = self._bases.get(tensor) if mutates else None
            while base is not None:
                self._bounds[base] = self._written_through(base, tensor)
                base = self._bases.get(base)
        if func.is_view and not mutates:
            self._bases.update((view, args[0]) for view in tree_tensors(out) if view is not args[0])
        return out

    def _written_through(self, base: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
        """The bound of a tensor after what lies under a view of it was written."""
        memory = torch.zeros_like(flat_memory(base))
        memory.as_strided(base.shape, base.stride()).copy_(self._or_zero(base))
        start = view.storage_offset() - base.storage_offset()
        memory.as_strided(view.shape, view.stride(), start).copy_(self._or_zero(view))
        return memory.as_strided(base.shape, base.stride())

    def _converted(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The arguments, in float64, of an operation that makes floats of integers; None of any other.

        Kernels convert them first, and integers above 1 / unit are rounded there. Then the function is that
        of floats. Without this the oracle would be PyTorch's own function in float32.
        """
        operands = tree_tensors((args, kwargs))
        if not operands or any(t.is_floating_point() or t.is_complex() for t in operands):
            return None
        computes = torch.Tag.pointwise in func.tags or name in SUMS
        if name in MOVES or name in EXACT or not computes:
            return None
        if not any(t.is_floating_point() for t in tree_tensors(func(*args, **kwargs))):
            return None
        return tree_map_only(torch.Tensor, self._as_kernels_convert, (args, kwargs))

    def _as_kernels_convert(self, integers: torch.Tensor) -> torch.Tensor:
        floats = integers.to(torch.float64)
        rounding = self.unit * floats.abs()
        if bool((rounding > 1).any()):
            self._bounds[floats] = torch.where(rounding > 1, rounding, 0.0)
        return floats

    def _widest(self, results: Sequence[Any]) -> Any:
        """The first result; its bounds are the largest of all results' bounds."""
        first = results[0]
        for other in results[1:]:
            for kept, tensor in zip(tree_tensors(first), tree_tensors(other), strict=True):
                if (bound := self.bound(tensor)) is not None:
                    self._bounds[kept] = torch.maximum(self._or_zero(kept), bound)
        return first

    def _of_result(self, func: Any, name: str, args: Any, kwargs: Any) -> list[torch.Tensor | None]:
        operands = tree_tensors((args, kwargs))
        inexact = [t for t in operands if self.bound(t) is not None]
        floating = any(t.is_floating_point() for t in operands)
        added = reduction(func, args, kwargs) if name in SCATTERED and func is not None else ""
        if func is not None and not any("Tensor" in str(r.type) for r in func._schema.returns):
            return []
        if name in CONSTANTS:
            return []
        if not inexact and ((name in MOVES and not added) or name in EXACT or not floating):
            return []
        if func is None:
            self.guessed.add(name)
            worst = max((float(self._bounds[t].max()) for t in inexact if t.numel()), default=0.0)
            return [torch.full_like(args[0], worst)]
        if added:
            return [self._scattered(func, name, added, args, kwargs)]
        if name in MOVES:
            return self._moved(func, name, args, kwargs)
        if name in CONTRACTIONS:
            return [self._contracted(func, name, args, kwargs)]
        if name in SUMS:
            return [self._summed(func, args, kwargs)]
        if name in WINDOWED_MAXIMA:
            return self._moved(func, name, args, kwargs) if inexact else []
        if name in SELECTIONS and not (len(args) > 1 and isinstance(args[1], torch.Tensor)):
            return selected(self.bound, func, args, kwargs)
        named = (EXACT, SELECTIONS, ROUNDED_ONCE, TRANSCENDENTAL)
        elementwise = torch.Tag.pointwise in func.tags or any(name in family for family in named)
        if elementwise and len(func._schema.returns) == 1:
            return [self._elementwise(func, name, args, kwargs, operands)]
        return self._guess(func, name, args, kwargs, operands)

    def _moved(self, func: Any, name: str, args: Any, kwargs: Any) -> list[torch.Tensor | None]:
        args, kwargs = self._swap((args, kwargs), self._or_zero)
        if name in FILLERS:
            args = (*args[:-1], 0.0)
        return [t if t.is_floating_point() else None for t in tree_tensors(func(*args, **kwargs))]

    def _contracted(self, func: Any, name: str, args: Any, kwargs: Any) -> torch.Tensor:
        first = CONTRACTIONS[name]
        left, right = args[first], args[first + 1]
        terms = _terms(name, left, right) + 2
        size = self._products(func, first, args, kwargs, left, right)
        # What is added to the products (a bias) moves by its own bound alone.
        position = 0 if first else 2
        addend = args[position] if (first or name == "convolution") and len(args) > position else None
        if not kwargs and self._adds_exactly(size, (left, right), addend):
            return torch.zeros_like(size)
        # However a contraction is cut into tiles, the rounded sums of its parts are within `size` together.
        total = (gamma(terms, self.unit) + self.products) * size
        rest = list(args)
        if isinstance(addend, torch.Tensor):
            rest[position] = torch.zeros_like(addend)
            if (bound := self.bound(addend)) is not None:
                bound = bound if first else bound.reshape(-1, *[1] * (size.dim() - 2))
                total = total + abs(kwargs.get("beta", 1)) * bound
        if (bound := self.bound(left)) is not None:
            total = total + self._products(func, first, rest, kwargs, bound, right)
        if (bound := self.bound(right)) is not None:
            total = total + self._products(func, first, rest, kwargs, left, bound)
        if self.stored:
            # The sum passes through a coarser buffer; the products alone may do so before a bias is added.
            total = total + self._rounding(func(*args, **kwargs))
            if isinstance(addend, torch.Tensor):
                total = total + self._rounding(func(*rest, **kwargs))
        return total

    def _adds_exactly(self, size: torch.Tensor, factors: Sequence[torch.Tensor], addend: Any = None) -> bool:
        """Whether sums of products, their magnitudes adding up to `size`, round nothing in any order.

        All of them are integers times the product of the factors' grids; those below 1 / unit are numbers of
        the arithmetic, and so is every partial sum.
        """
        terms = [*factors, addend] if isinstance(addend, torch.Tensor) else factors
        if self.products or self.stored or any(self.bound(t) is not None for t in terms):
            return False
        step = math.prod(grid(t) for t in factors)
        if isinstance(addend, torch.Tensor):
            step = min(step, grid(addend))
            size = size + addend.abs().max()
        exact = size.numel() > 0 and float(size.max()) <= step / self.unit
        self.exact_sums += exact
        return exact

    def _products(
        self,
        func: Any,
        first: int,
        args: Sequence[Any],
        kwargs: Any,
        left: torch.Tensor,
        right: torch.Tensor,
    ) -> torch.Tensor:
        """The contraction of absolute values, in float32: a bound needs no more, and a weight of half a
        gigabyte half the memory."""
        changed = [*args[:first], left, right, *args[first + 2 :]]
        narrow = tree_map_only(torch.Tensor, lambda t: t.to(torch.float32, copy=True).abs_(), changed)
        return func(*narrow, **kwargs).abs().to(torch.float64)

    def _summed(self, func: Any, args: Any, kwargs: Any) -> torch.Tensor:
        name = func.overloadpacket.__name__
        size = func(args[0].abs(), *args[1:], **kwargs).abs()
        terms = max(1, args[0].numel() // max(1, size.numel())) + 2
        if name == "cumsum":
            terms = args[0].shape[args[1]] if args[0].dim() else 1
        divided = name == "mean"
        if (divided or name in UNSCALED) and self._adds_exactly(size * (terms if divided else 1), (args[0],)):
            # A quotient may be a product with a rounded reciprocal.
            return (3 * self.unit if divided else 0.0) * func(*args, **kwargs).abs()
        total = gamma(terms, self.unit) * size + self._rounding(size)
        if (bound := self.bound(args[0])) is not None:
            total = total + func(bound, *args[1:], **kwargs)
        return total

    def _scattered(self, func: Any, name: str, how: str, args: Any, kwargs: Any) -> torch.Tensor | None:
        if how in ("amax", "amin"):
            worst = worst_of(self.bound, (args, kwargs))
            return torch.full_like(args[0], worst) if worst else None
        absolute, named = magnitudes((args, kwargs))
        size = func(*absolute, **named)
        total = gamma(collisions(func, name, args, kwargs), self.unit) * size + self._rounding(size)
        if how == "prod":
            # Factors that are off magnify each other; the product of what they are off by is far less.
            moved, named = self._swap((args, kwargs), lambda t: t.abs() + self._or_zero(t))
            return total + (func(*moved, **named) - size)
        bounds, named = self._swap((args, kwargs), self._or_zero)
        return total + func(*bounds, **named).abs()

    def _elementwise(
        self, func: Any, name: str, args: Any, kwargs: Any, operands: Sequence[torch.Tensor]
    ) -> torch.Tensor:
        result = _as_float(func(*args, **kwargs))
        total = torch.zeros_like(result)
        for operand in operands:
            if not operand.is_floating_point():
                continue
            bound = self.bound(operand)
            if name in SCALED_ARGUMENT:
                # Hardware computes exp(x) as exp2(x log2 e): the argument is rounded once more.
                extra = self.unit * operand.abs()
                bound = extra if bound is None else bound + extra
            if bound is None:
                continue
            moved = [
                (_as_float(self._with(func, args, kwargs, operand, end)) - result).abs()
                for end in _ends(name, operand, bound)
            ]
            total = total + torch.maximum(*moved).nan_to_num(nan=0.0)
        if name in EXACT:
            return total
        if name in ROUNDED_ONCE:
            total = total + self._scaling(func, name, args, kwargs)
            return total + self.unit * result.abs() + self._rounding(result)
        total = total + APPROXIMATED * self.unit * result.abs() + self._rounding(result)
        if name not in TRANSCENDENTAL:
            # An activation made of several steps: intermediate results may be as large as its argument.
            total = total + APPROXIMATED * self.unit * sum(
                (o.abs() for o in operands if o.is_floating_point()), torch.zeros_like(result)
            )
        return total

    def _scaling(self, func: Any, name: str, args: Any, kwargs: Any) -> torch.Tensor | float:
        """The rounding of alpha, if it is none of float32's, and of its product with an operand."""
        alpha = argument(func, "alpha", args, kwargs) if name in SCALED_OPERAND else None
        if alpha is None or abs(alpha) == 1:
            return 0.0
        roundings = 1 if in_float32(alpha) == alpha else 2
        return roundings * self.unit * abs(args[SCALED_OPERAND[name]] * alpha)

    def _guess(
        self, func: Any, name: str, args: Any, kwargs: Any, operands: Sequence[torch.Tensor]
    ) -> list[torch.Tensor | None]:
        self.guessed.add(name)
        absolute = magnitudes((args, kwargs))
        count = sum(t.numel() for t in operands)
        found: list[torch.Tensor | None] = []
        for size, plain in zip(
            tree_tensors(func(*absolute[0], **absolute[1])), tree_tensors(func(*args, **kwargs)), strict=True
        ):
            terms = max(1, count // max(1, size.numel())) + 4
            scale = torch.maximum(_as_float(size).abs(), _as_float(plain).abs())
            found.append(gamma(terms, self.unit) * scale + self._rounding(scale))
        return found

    def _rounding(self, result: torch.Tensor) -> torch.Tensor:
        """The rounding of an intermediate result on its way through a coarser buffer."""
        return self.stored * result.abs()

    def _or_zero(self, tensor: torch.Tensor) -> torch.Tensor:
        bound = self.bound(tensor)
        return torch.zeros_like(tensor) if bound is None else bound

    @staticmethod
    def _swap(tree: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        return tree_map_only(torch.Tensor, lambda t: change(t) if t.is_floating_point() else t, tree)

    @staticmethod
    def _with(func: Any, args: Any, kwargs: Any, old: torch.Tensor, new: torch.Tensor) -> Any:
        args, kwargs = tree_map_only(torch.Tensor, lambda t: new if t is old else t, (args, kwargs))
        return func(*args, **kwargs)


def _ends(name: str, operand: torch.Tensor, bound: torch.Tensor) -> list[torch.Tensor]:
    """How far up and down an operand moves: by its bound, within the function's domain if it lies there."""
    low, high = DOMAINS.get(name, (-math.inf, math.inf))
    up, down = operand + bound, operand - bound
    return [
        torch.where(operand <= high, up.clamp(max=high), up),
        torch.where(operand >= low, down.clamp(min=low), down),
    ]


def _as_float(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


def _functional(func: Any) -> Any:
    """The overload without side effects of one that works in place; None where there is none.

    It may have another name (`transpose_` and `transpose.int`); it takes the same arguments.
    """
    name = func.overloadpacket.__name__.rstrip("_")
    packet = getattr(torch.ops.aten, name, None)
    if packet is None:
        return None
    wanted = [(a.name, str(a.type)) for a in func._schema.arguments]
    named = getattr(packet, func._overloadname, None)
    others = (getattr(packet, overload) for overload in packet.overloads())
    alike = (f for f in others if [(a.name, str(a.type)) for a in f._schema.arguments] == wanted)
    return named if named is not None else next(alike, None)


def _terms(name: str, left: torch.Tensor, right: torch.Tensor) -> int:
    """Products that a contraction adds up for each element."""
    if name == "convolution":
        return max(1, right.numel() // max(1, right.shape[0]))
    return int(left.shape[-1])
