"""Arguments of a run: tensors as linear memory, NumPy arrays as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.memory import Buffer


class ArgumentBuffer:
    """The memory behind a tensor argument, and the tensor that shows it afterwards.

    It runs from the tensor's first element to its last: what lies beyond in the same storage was not passed.
    Gaps between rows belong to it.
    """

    def __init__(self, name: str, value: Tensor, *, copy: bool):
        value = value.detach()
        flat = torch.as_strided(value, (span_of(value),), (1,), value.storage_offset())
        if copy:
            flat = flat.clone()
            value = torch.as_strided(flat, value.shape, value.stride())
        self.tensor = value
        self.buffer = Buffer(name, flat)


def span_of(tensor: Tensor) -> int:
    """Elements of memory from a tensor's first to its last."""
    if not tensor.numel():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def overlap(one: Tensor, other: Tensor) -> str:
    """How the memory of two tensors meets: `same` first element, last element and dtype; `part`; or
    nothing."""
    begin, start = one.data_ptr(), other.data_ptr()
    end = begin + span_of(one) * one.element_size()
    stop = start + span_of(other) * other.element_size()
    if max(begin, start) >= min(end, stop):
        return ""
    return "same" if (begin, end, one.dtype) == (start, stop, other.dtype) else "part"


def written_back(held: ArgumentBuffer | None, value: Any) -> ArgumentBuffer | None:
    """What a run on a copy stored, in the memory of the argument itself."""
    if held is None or not held.buffer.stored:
        return held
    target = ArgumentBuffer(held.buffer.name, arguments_of([value])[0], copy=False)
    target.buffer.data.copy_(held.buffer.data)
    target.buffer.writers, target.buffer.stored = held.buffer.writers, True
    return target


def arguments_of(values: Sequence[Any]) -> list[Any]:
    """Arguments with NumPy arrays as tensors."""
    return [torch.from_numpy(v) if isinstance(v, np.ndarray) else v for v in values]
