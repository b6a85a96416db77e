"""Turn the arguments of a call into Values: what they are, without data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tracer.errors import HarvestError
from tracer.models.errors import UnsupportedArgument
from tracer.models.op_call import TensorRef, TensorSpec, Torch, Value

EXACT_ELEMENTS = 1 << 22
"""Larger tensors count as sharing elements where their stretches of the storage meet."""

Layout = tuple[torch.Size, tuple[int, ...], int, torch.dtype]
"""Shape, stride, storage offset (elements) and dtype of a tensor."""


class Describer:
    """Turns Python arguments into Values and collects the distinct tensors among them."""

    def __init__(self, layouts: dict[int, Layout]) -> None:
        self._known = layouts
        self._index: dict[int, int] = {}
        self.specs: list[TensorSpec] = []
        self.refusal: HarvestError | None = None

    def __call__(self, value: Any) -> Value:
        """Describe one argument; what has no spelling is noted in `refusal`."""
        if isinstance(value, torch.Tensor) and id(value) in self._known:
            if id(value) not in self._index:
                self._index[id(value)] = len(self.specs)
                self.specs.append(spec_of(*self._known[id(value)]))
            return TensorRef(self._index[id(value)])
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            return float(value)
        if value in (bool, int, float):
            return Torch({bool: "torch.bool", int: "torch.int64", float: "torch.float64"}[value])
        if value is Ellipsis:
            return Torch("...")
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return Torch(str(value))
        if isinstance(value, torch.device):
            return Torch(f"torch.device({value.type!r})")
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        if isinstance(value, (tuple, range)):
            return tuple(self(part) for part in value)
        if isinstance(value, list):
            return [self(part) for part in value]
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: self(part) for key, part in value.items()}
        if hasattr(value, "item") and getattr(value, "shape", None) == ():
            return self(value.item())
        if hasattr(value, "tolist"):
            return self(value.tolist())
        if self.refusal is None:
            self.refusal = UnsupportedArgument(kind=type(value).__name__)
        return Torch(f"<{type(value).__name__}>")


def essential(
    func: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments without those that say nothing: devices, and keywords at their default.

    An op is the same op on every device; where its tensors are decides where it runs.
    """
    defaults = _defaults(func)
    kwargs = {
        key: value
        for key, value in kwargs.items()
        if key != "device" and not (key in defaults and _same(value, defaults[key]))
    }
    if name == "torch.Tensor.to":
        args = (args[0], *(value for value in args[1:] if not isinstance(value, (torch.device, str))))
    return args, kwargs


@functools.cache
def _defaults(func: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):
        return {}
    return {name: p.default for name, p in parameters.items() if p.default is not p.empty}


def _same(value: Any, default: Any) -> bool:
    return value is default or (
        type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default
    )


def layout_of(tensor: torch.Tensor) -> Layout:
    """How a tensor lies in its storage (no strides and offset where it is not strided)."""
    if not is_strided(tensor):
        return tensor.shape, (), 0, tensor.dtype
    return tensor.shape, tensor.stride(), int(tensor.storage_offset()), tensor.dtype


def spec_of(shape: torch.Size, stride: tuple[int, ...], offset: int, dtype: torch.dtype) -> TensorSpec:
    """The same as a TensorSpec."""
    return TensorSpec(tuple(shape), tuple(stride), int(offset), str(dtype))


def overlapping(tensors: Sequence[torch.Tensor], layouts: Sequence[Layout]) -> bool:
    """Whether two of the tensors, of different layout, hold one element of one storage."""
    placed = [
        (tensor.untyped_storage()._cdata, layout)
        for tensor, layout in zip(tensors, layouts, strict=True)
        if is_strided(tensor) and tensor.numel()
    ]
    return any(
        storage == other_storage and layout != other and _meet(layout, other)
        for position, (storage, layout) in enumerate(placed)
        for other_storage, other in placed[:position]
    )


def _meet(one: Layout, other: Layout) -> bool:
    (low, high), (other_low, other_high) = _reach(one), _reach(other)
    if low > other_high or other_low > high:
        return False
    if max(one[0].numel(), other[0].numel()) > EXACT_ELEMENTS:
        return True
    return bool(np.intersect1d(_elements(one), _elements(other)).size)


def _reach(layout: Layout) -> tuple[int, int]:
    """First and last element of the storage that a tensor holds."""
    shape, stride, offset, _ = layout
    return offset, offset + sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))


def _elements(layout: Layout) -> np.ndarray:
    shape, stride, offset, _ = layout
    found = np.array(offset)
    for extent, step in zip(shape, stride, strict=True):
        found = np.add.outer(found, np.arange(extent) * step)
    return found.reshape(-1)


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether the tensor is an ordinary one (not sparse)."""
    return tensor.layout is torch.strided
