"""What a call on fake tensors returned, for the next call like it.

A model of many layers makes the same calls over and over, and PyTorch computes shapes anew for each of the
ATen ops behind a call. What a call returns depends only on its arguments' metadata, and on the values of
those tensors that have known ones (widths of a padding), where its result is one new tensor, nothing was
written, and no argument is anything but a tensor or a plain value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily

_PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.memory_format, torch.layout)


class _Unlike(Exception):
    """An argument that says nothing of what the call returns."""


class Memo:
    """Shape, stride, dtype and device of results, by function and arguments.

    `value_of` gives the value of a fake tensor, None where it is not known.
    """

    def __init__(
        self,
        fake_mode: FakeTensorMode,
        value_of: Callable[[torch.Tensor], torch.Tensor | None] = lambda tensor: None,
    ) -> None:
        self.fake_mode = fake_mode
        self._value_of = value_of
        self._found: dict[Hashable, tuple[Any, ...]] = {}

    def key(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Hashable | None:
        """What a call is remembered by; None where it cannot be."""
        try:
            named = tuple((name, self._described(kwargs[name])) for name in kwargs)
            return func, self._described(args), named
        except _Unlike:
            return None

    def _described(self, value: Any) -> Hashable:
        if isinstance(value, FakeTensor):
            if not _is_plain(value):
                raise _Unlike
            known = self._value_of(value)
            return value.shape, value.stride(), value.dtype, value.device, known is not None and _bytes(known)
        if isinstance(value, _PLAIN):
            return type(value), value
        if isinstance(value, tuple | list):
            return type(value), tuple(self._described(part) for part in value)
        if isinstance(value, slice):
            return slice, self._described((value.start, value.stop, value.step))
        if value is Ellipsis:
            return value
        raise _Unlike

    def recall(self, key: Hashable) -> torch.Tensor | None:
        """A new fake tensor like the one that the call returned before; None if it is the first."""
        found = self._found.get(key)
        if found is None:
            return None
        shape, stride, dtype, device = found
        # As PyTorch makes one from its own cache of shapes; `empty_strided` would go through all of dispatch.
        with unset_fake_temporarily():
            meta = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        return FakeTensor(self.fake_mode, meta, device)

    def keep(self, key: Hashable, result: Any, inputs: list[torch.Tensor]) -> None:
        """Remember the result of a call that wrote nothing, if it is one new tensor."""
        if type(result) is not FakeTensor or not _is_plain(result):
            return
        if result.requires_grad or result.storage_offset():
            return
        storage = result.untyped_storage()
        whole = torch.empty_strided(result.shape, result.stride(), dtype=result.dtype, device=result.device)
        if storage.nbytes() != whole.untyped_storage().nbytes():
            return
        if any(t.untyped_storage()._cdata == storage._cdata for t in inputs):
            return
        self._found[key] = (result.shape, result.stride(), result.dtype, result.device)


def _is_plain(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_conj() and not tensor.is_neg()


def _bytes(tensor: torch.Tensor) -> bytes:
    with unset_fake_temporarily():
        # A copy: one element is contiguous under any stride, and `view` is particular about strides.
        copy = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
        return copy.view(torch.uint8).numpy().tobytes()
