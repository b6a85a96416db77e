"""Which inputs must be sorted, and which must hold no value twice, because an op's result depends on it.

A binary search has no defined result on a sequence that is not sorted. A sort, a top-k or an order statistic
returns places as well as values, and leaves open which of two equal elements comes first: the oracle may pick
the other. The arguments' and results' names in the schema of an ATen op say which kind it is.

The op runs on tensors without data, and every tensor is followed back to the input that it is a copy of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from tracer.capture.kernel import CapturedOp
from tracer.models.replay import empty_tensors, replay

SORTED = frozenset({"sorted_sequence", "sorter", "boundaries"})
"""Arguments that have to ascend along their last dim. A sorter picks from a sequence that ascends itself."""

FIRST = frozenset({"max", "min"})
"""Ops whose documentation says which of several equal elements they find: the first."""

_COPIES = frozenset({"clone", "_to_copy", "contiguous"})


@dataclass(frozen=True)
class Orders:
    """Input buffers by what their values must be: `ascending` along the last dim, or `distinct`."""

    ascending: frozenset[str] = frozenset()
    distinct: frozenset[str] = frozenset()


def input_orders(op: CapturedOp) -> Orders:
    """What the order of values in every input buffer of the op must be, where it must be anything.

    Bools cannot be distinct, and are left out.
    """
    inputs = empty_tensors(op.call.tensors, "meta")
    mode = _Sources(inputs)
    try:
        with mode, torch.no_grad():
            replay(op.call, inputs)
    except Exception:  # PyTorch raises anything where an op needs values to run: what ran before it counts.
        pass
    names = [buffer.name for buffer in op.buffers if buffer.role == "input"]
    distinct = {index for index in mode.distinct if inputs[index].dtype != torch.bool}
    return Orders(
        frozenset(names[index] for index in mode.ascending),
        frozenset(names[index] for index in distinct - mode.ascending),
    )


class _Sources(TorchDispatchMode):
    """Indices of inputs that reach an argument that must be sorted, or an op that leaves ties open."""

    def __init__(self, inputs: list[torch.Tensor]):
        super().__init__()
        self.ascending: set[int] = set()
        self.distinct: set[int] = set()
        self._source = WeakIdKeyDictionary()
        for index, tensor in enumerate(inputs):
            self._source[tensor] = index

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        named = _by_name(func, args, kwargs)
        for name in SORTED & named.keys():
            self._note(self.ascending, named[name])
        if _leaves_ties_open(func, named):
            self._note(self.distinct, named["self"])
        out = func(*args, **kwargs)
        if (func.is_view or func.overloadpacket.__name__ in _COPIES) and args:
            source = self._source.get(args[0]) if isinstance(args[0], torch.Tensor) else None
            for tensor in tree_leaves(out):
                if isinstance(tensor, torch.Tensor) and source is not None:
                    self._source[tensor] = source
        return out

    def _note(self, found: set[int], tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor) and (source := self._source.get(tensor)) is not None:
            found.add(source)


def _by_name(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _leaves_ties_open(func: Any, named: dict[str, Any]) -> bool:
    """Whether an op returns values with their places, and nothing says which of equal ones it finds."""
    results = {result.name for result in func._schema.returns}
    return (
        {"values", "indices"} <= results
        and "self" in named
        and func.overloadpacket.__name__ not in FIRST
        and not named.get("stable")
    )
