"""Buffers in memory with guard elements around them, and what must not have changed there afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from tracer.validate.oracle import Layout, flat_memory, span_of

GUARD_BYTES = 256
"""Bytes on either side of a buffer that nobody may write: two sticks."""
_PATTERN = 0xA5


@dataclass(frozen=True)
class Placement:
    """Where a buffer lies: byte offset of its first element, and number of bytes from there to its last."""

    start: int
    length: int


def place(layouts: Mapping[str, Layout]) -> tuple[dict[str, Placement], int]:
    """Places for all buffers one after the other, each between guards; and the total size in bytes."""
    places: dict[str, Placement] = {}
    end = 0
    for name, (shape, stride, dtype) in layouts.items():
        length = span_of(shape, stride) * dtype.itemsize
        start = end + GUARD_BYTES
        places[name] = Placement(start, length)
        end = -(-(start + length + GUARD_BYTES) // GUARD_BYTES) * GUARD_BYTES
    return places, max(end, GUARD_BYTES)


class Buffers:
    """The buffers of one run, in one block of memory (a uint8 tensor).

    Inputs hold copies of the values given; everything else is poisoned: NaN in floating buffers, a bit
    pattern that no oracle gives in others.
    """

    def __init__(
        self,
        memory: torch.Tensor,
        layouts: Mapping[str, Layout],
        places: Mapping[str, Placement],
        inputs: Mapping[str, torch.Tensor],
    ):
        self.memory = memory
        self.layouts = layouts
        self.places = places
        self.inputs = inputs
        self.tensors = self._views()
        for name, at in places.items():
            memory[at.start - GUARD_BYTES : at.start] = _PATTERN
            memory[at.start + at.length : at.start + at.length + GUARD_BYTES] = _PATTERN
            flat = flat_memory(self.tensors[name])
            if name in inputs:
                flat.copy_(flat_memory(inputs[name]))
            else:
                poison(flat)

    def _views(self) -> dict[str, torch.Tensor]:
        views = {}
        for name, (shape, stride, dtype) in self.layouts.items():
            at = self.places[name]
            typed = self.memory[at.start : at.start + at.length].view(dtype)
            views[name] = typed.as_strided(tuple(shape), tuple(stride), typed.storage_offset())
        return views

    def fetch(self) -> None:
        """Bring the memory of another device to the CPU, where inputs and oracles are."""
        self.memory = self.memory.cpu()
        self.tensors = self._views()

    def disturbed(self, written: set[str]) -> str:
        """What changed that must not: guards, gaps between elements, inputs not in `written`. Empty if
        nothing."""
        for name, at in self.places.items():
            for side, start in (("before", at.start - GUARD_BYTES), ("after", at.start + at.length)):
                if bool((self.memory[start : start + GUARD_BYTES] != _PATTERN).any()):
                    return f"elements {side} buffer {name} were written"
            if name in self.inputs and name not in written:
                now = flat_memory(self.tensors[name])
                if not same_bits(now, flat_memory(self.inputs[name])):
                    return f"input {name}, which the op only reads, was written"
            elif (shape := self.tensors[name].shape) and self._has_gaps(name):
                before = self._before(name)
                after = flat_memory(self.tensors[name]).clone()
                for part in (before, after):
                    part.as_strided(shape, self.tensors[name].stride()).zero_()
                if not same_bits(before, after):
                    return f"gaps between the elements of buffer {name} were written"
        return ""

    def _before(self, name: str) -> torch.Tensor:
        if name in self.inputs:
            return flat_memory(self.inputs[name]).clone()
        return poison(torch.empty_like(flat_memory(self.tensors[name])))

    def _has_gaps(self, name: str) -> bool:
        tensor = self.tensors[name]
        return tensor.numel() < span_of(tensor.shape, tensor.stride())


def poison(flat: torch.Tensor) -> torch.Tensor:
    """Fill with what no kernel writes, in place."""
    if flat.dtype.is_floating_point:
        return flat.fill_(float("nan"))
    flat.view(torch.uint8).fill_(_PATTERN)
    return flat


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors of rank 1 have the same bytes."""
    return torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))
