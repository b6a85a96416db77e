"""Arguments of a run: tensors as linear memory, NumPy arrays as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.memory import Buffer


class ArgumentBuffer:
    """The memory behind a tensor argument, and the tensor that shows it afterwards."""

    def __init__(self, name: str, value: Tensor, *, copy: bool):
        value = value.detach()
        storage = value.untyped_storage().nbytes() // value.element_size()
        length = max(0, storage - value.storage_offset()) if value.numel() else 0
        flat = torch.as_strided(value, (length,), (1,), value.storage_offset())
        if copy:
            flat = flat.clone()
            value = torch.as_strided(flat, value.shape, value.stride())
        self.tensor = value
        self.buffer = Buffer(name, flat)


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
