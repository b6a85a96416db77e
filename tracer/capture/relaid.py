"""Ops that give one of their inputs another layout in place: `t_`, `squeeze_`, `resize_`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tracer.capture.errors import RelaidInput
from tracer.models.op_call import TensorSpec


class Operations(TorchDispatchMode):
    """Runs what is inside as usual, and tells whether any of it touches elements."""

    def __init__(self) -> None:
        super().__init__()
        self._others: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if not func.is_view and torch.Tag.inplace_view not in func.tags:
            self._others.append(str(func))
        return func(*args, **(kwargs or {}))

    def relay(self, specs: Sequence[TensorSpec], inputs: Sequence[torch.Tensor]) -> bool:
        """Whether what was run gave an input another layout than that of its spec, and nothing else.

        Raises RelaidInput where it also computed, or where the layout takes more memory than the input has.
        """
        relaid = False
        for index, (spec, tensor) in enumerate(zip(specs, inputs, strict=True)):
            start = tensor.storage_offset()
            if (tuple(tensor.shape), tensor.stride(), start) == (spec.shape, spec.stride, 0):
                continue
            relaid = True
            if self._others:
                raise RelaidInput(position=index, detail=f"and runs {', '.join(self._others)}")
            if start + _span(tensor.shape, tensor.stride()) > _span(spec.shape, spec.stride):
                raise RelaidInput(position=index, detail="which takes more memory than it has")
        return relaid


def _span(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to the last."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
