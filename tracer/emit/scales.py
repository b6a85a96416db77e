"""Which float inputs must be small, because what the op computes from them saturates otherwise.

An op of several steps may contract over hundreds of terms and take an exponential of the result: attention
with its projections does. With inputs of magnitude 1 the exponential is 0 or infinite, a softmax picks one
element, and whatever else the op reads leaves no trace in its result; or it magnifies what its argument may
be off by rounding, and nothing is wrong any more. Initialisers of models scale weights by 1/sqrt(K) for that
reason; so does this module, where an estimate of magnitudes says that it must.

The op runs on tensors without data. Beside each tensor goes its estimated root mean square: that of a
contraction over K independent terms is sqrt(K) times that of a product (Glorot and Bengio, 2010, section
4.2.1), a sum adds squares, data movement changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from tracer.capture.kernel import CapturedOp
from tracer.models.replay import empty_tensors, replay

INPUT = 1.25
"""Root mean square of magnitudes that are uniform in [1/4, 2), as `random_tensor` draws them."""

LIMIT = 8.0
"""From this magnitude on an argument saturates: exp(-8) is below the rounding unit of float16."""

TARGET = 0.5
"""Magnitude that is aimed at where something saturates: what the argument is off by is not magnified."""

ROUNDS = 16

SATURATING = frozenset({
    "_softmax", "_log_softmax", "_safe_softmax", "softmax", "exp", "exp2", "expm1", "tanh", "sigmoid", "erf",
    "sinh", "cosh",
})  # fmt: skip

CONTRACTIONS = {
    "mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "mv": 0, "addmv": 1, "dot": 0, "addbmm": 1, "convolution": 0,
}  # fmt: skip
"""Sums of products, and the position of their left factor."""

_COPIES = frozenset({"clone", "_to_copy", "contiguous", "cat", "stack", "constant_pad_nd"})


def input_scales(op: CapturedOp) -> dict[str, float]:
    """Factor of every input buffer that needs one, a power of two.

    Where something saturates, one factor of every contraction gets 1/sqrt(K): its weight. Then the weights
    that the argument is computed from, and what is added to their products, are halved until the argument is
    small. Data keeps its magnitude, so that it stays visible beside what is added to it.
    """
    if not _may_saturate(op):
        return {}
    scales = dict.fromkeys(range(len(op.call.tensors)), 1.0)
    try:
        found = _magnitudes(op, scales)
        if found.argument <= LIMIT:
            return {}
        weights = found.weights()
        for index, terms in weights.items():
            scales[index] = 2.0 ** -round(math.log2(terms) / 2)
        small = found.above & (weights.keys() | found.addends)
        for _ in range(ROUNDS):
            if _magnitudes(op, scales).argument <= TARGET:
                break
            for index in small:
                scales[index] /= 2
    except Exception:  # PyTorch raises anything where an op needs values to run.
        return {}
    names = [buffer.name for buffer in op.buffers if buffer.role == "input"]
    return {names[index]: scale for index, scale in scales.items() if scale < 1}


def _magnitudes(op: CapturedOp, scales: dict[int, float]) -> _Magnitudes:
    inputs = empty_tensors(op.call.tensors, "meta")
    mode = _Magnitudes(inputs, scales)
    with mode, torch.no_grad():
        replay(op.call, inputs)
    return mode


def _may_saturate(op: CapturedOp) -> bool:
    """A cheap look at the kernels, since hardly any op needs the run."""
    floats = sum("float" in spec.dtype for spec in op.call.tensors)
    text = "".join(kernel.source for kernel in op.kernels)
    sums = "tl.dot(" in text or "tl.sum(" in text
    return floats > 1 and sums and any(f"{name}(" in text for name in SATURATING)


@dataclass(frozen=True)
class _Estimate:
    """Root mean square; the input that the tensor is a copy of; the inputs that it is computed from."""

    size: float
    source: int | None = None
    above: frozenset[int] = frozenset()


class _Magnitudes(TorchDispatchMode):
    """Estimates beside tensors. `argument` is the largest argument of a saturating function, `above` the
    inputs that saturating arguments are computed from, `addends` those that contractions add."""

    def __init__(self, inputs: list[torch.Tensor], scales: dict[int, float]):
        super().__init__()
        self.argument = 0.0
        self.above: frozenset[int] = frozenset()
        self.addends: set[int] = set()
        self._inputs = inputs
        self._contractions: list[tuple[int, tuple[int, ...]]] = []
        self._estimates = WeakIdKeyDictionary()
        for index, tensor in enumerate(inputs):
            if tensor.is_floating_point():
                self._estimates[tensor] = _Estimate(INPUT * scales[index], index, frozenset([index]))

    def weights(self) -> dict[int, int]:
        """Inputs that are one factor of every contraction, and over how many terms.

        The one that most contractions share, then the largest.
        """
        shared = Counter(index for _, factors in self._contractions for index in factors)
        found: dict[int, int] = {}
        for terms, factors in self._contractions:
            if factors and not any(index in found for index in factors):
                found[max(factors, key=lambda i: (shared[i], self._inputs[i].numel()))] = terms
        return found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        estimate = self._estimate(func, func.overloadpacket.__name__, args)
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
                self._estimates[tensor] = estimate
        return out

    def _estimate(self, func: Any, name: str, args: tuple[Any, ...]) -> _Estimate:
        known = [self._of(t) for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
        above = frozenset[int]().union(*(k.above for k in known))
        size = max((k.size for k in known), default=0.0)
        if name in CONTRACTIONS:
            return _Estimate(self._contracted(name, args), None, above)
        if name in SATURATING:
            self.argument = max(self.argument, size)
            self.above |= above
            return _Estimate(1.0, None, above)
        if func.is_view or name in _COPIES:
            sources = {k.source for k in known}
            return _Estimate(size, sources.pop() if len(sources) == 1 else None, above)
        if name in ("mul", "div"):
            left, right = (self._of(arg).size for arg in args[:2])
            return _Estimate(left * right if name == "mul" else left / (right or 1.0), None, above)
        if name in ("add", "sub"):
            return _Estimate(math.hypot(*(self._of(arg).size for arg in args[:2])), None, above)
        return _Estimate(size, None, above)

    def _contracted(self, name: str, args: tuple[Any, ...]) -> float:
        first = CONTRACTIONS[name]
        left, right = self._of(args[first]), self._of(args[first + 1])
        whole = name == "convolution"
        terms = args[1].numel() // args[1].shape[0] if whole else args[first].shape[-1]
        factors = tuple(f.source for f in (left, right) if f.source is not None)
        self._contractions.append((max(1, int(terms)), factors))
        product = left.size * right.size * math.sqrt(max(1, int(terms)))
        addend = self._of(args[2] if whole else args[0]) if whole or first else _Estimate(0.0)
        if addend.source is not None:
            self.addends.add(addend.source)
        return math.hypot(product, addend.size)

    def _of(self, value: Any) -> _Estimate:
        if isinstance(value, torch.Tensor):
            found = self._estimates.get(value)
            return found if isinstance(found, _Estimate) else _Estimate(0.0)
        return _Estimate(abs(float(value))) if isinstance(value, int | float) else _Estimate(0.0)
