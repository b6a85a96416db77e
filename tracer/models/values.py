"""Real values beside fake tensors, where they follow from Python alone.

A model run on fake tensors stops where Python asks for a value (`if position_ids.max() > n`, `.item()`,
`.tolist()`, `nonzero`). Most such values do not depend on weights: they come from shapes, from token ids we
chose, from `arange`. `Values` computes those on the side, on small real tensors, and answers from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only
from torch.utils.weak import WeakIdKeyDictionary

from tracer.models.memo import Memo

LIMIT = 1 << 16
"""Tensors of more elements than this are not followed."""

MAX_ASSUMED = 10_000
"""So many unknown branches mean a loop that no value will ever end."""


class Values(TorchFunctionMode):
    """Follows the values of small tensors that do not depend on weights or activations.

    A truth value that is unknown is taken as false and counted in `assumed`: such branches guard against
    overflow, padding or early exits. Any other question about an unknown value raises what PyTorch raises.
    """

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        super().__init__()
        self.fake_mode = fake_mode
        self.assumed = 0
        self._memo = Memo(fake_mode, self._value)
        self.parameters: set[int] = set()
        """Identities of the parameters that were arguments of calls."""
        self._known: Any = WeakIdKeyDictionary()
        self._stale: dict[int, Any] = {}

    def follow(self, real: torch.Tensor) -> torch.Tensor:
        """A fake tensor with the values of `real`."""
        fake = self.fake_mode.from_tensor(real)
        self._known[fake] = real
        return fake

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the call as `call` does."""
        kwargs = dict(kwargs or {})
        return self.call(func, args, kwargs, tensors_in((args, kwargs)))[0]

    def call(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[torch.Tensor],
    ) -> tuple[Any, list[torch.Tensor], bool, bool]:
        """Run a call on fake tensors, and on real ones beside it where all are known.

        `inputs` are the tensors among its arguments. Returns the result, the tensors in it, whether an input
        was written, and whether the result could only be had from values.
        """
        if func is torch.Tensor.__deepcopy__ and isinstance(args[0], FakeTensor):
            # PyTorch copies the storage, which for fake tensors corrupts the heap now and then (2.13).
            func, args, kwargs = torch.Tensor.clone, args[:1], {}
        self.parameters.update(id(tensor) for tensor in inputs if isinstance(tensor, torch.nn.Parameter))
        # A call whose values are followed, or may be asked for, is run.
        key = None if self._all_known(inputs) else self._memo.key(func, args, kwargs)
        if key is not None and (known := self._memo.recall(key)) is not None:
            return known, [known], False, False
        versions = [tensor._version for tensor in inputs]
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            if any(self._value(tensor) is None for tensor in inputs):
                return self._assume(func, inputs, error), [], False, True
            real = self._run(func, args, kwargs)
            result = tree_map_only(torch.Tensor, self.follow, real)
            return result, tensors_in(result), False, True
        outputs = tensors_in(result)
        written = [t for t, version in zip(inputs, versions, strict=True) if t._version != version]
        if not outputs and not written:
            return result, outputs, False, False
        if self._all_known(inputs) and all(t.numel() <= LIMIT for t in (*outputs, *written)):
            self._follow(func, args, kwargs, outputs, written)
        elif written:
            self._forget(written)
        elif key is not None:
            self._memo.keep(key, result, inputs)
        return result, outputs, bool(written), False

    def _all_known(self, inputs: list[torch.Tensor]) -> bool:
        return all(self._value(tensor) is not None for tensor in inputs)

    def number(self, tensor: torch.Tensor) -> int | None:
        """The value of an integer tensor of one element, if it is known."""
        real = self._value(tensor)
        if real is None or real.numel() != 1 or real.is_floating_point() or real.is_complex():
            return None
        with unset_fake_temporarily():
            return int(real.item())

    def _value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if not isinstance(tensor, FakeTensor):
            return tensor if tensor.numel() <= LIMIT else None
        real = self._known.get(tensor)
        if real is None or real.untyped_storage()._cdata in self._stale:
            return None
        return real

    def _run(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        real_args, real_kwargs = tree_map_only(torch.Tensor, self._value, (args, kwargs))
        with unset_fake_temporarily():
            return func(*real_args, **real_kwargs)

    def _follow(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outputs: list[torch.Tensor],
        written: list[torch.Tensor],
    ) -> None:
        try:
            real = tensors_in(self._run(func, args, kwargs))
        except Exception:
            # Fake tensors accept more than real ones (uninitialised parameters, say): the value is unknown.
            self._forget(written)
            return
        if [t.shape for t in real] != [t.shape for t in outputs]:
            self._forget(written)
            return
        for fake, value in zip(outputs, real, strict=True):
            self._known[fake] = value

    def _forget(self, written: list[torch.Tensor]) -> None:
        for tensor in written:
            real = self._known.get(tensor)
            if real is not None:
                # Its views share the storage, so they are stale as well; keeping it keeps its address taken.
                storage = real.untyped_storage()
                self._stale[storage._cdata] = storage

    def _assume(self, func: Callable[..., Any], inputs: list[torch.Tensor], error: Exception) -> bool:
        unknown = isinstance(error, (DataDependentOutputException, DynamicOutputShapeException))
        name = getattr(func, "__name__", "")
        asks = name == "__bool__" or (name == "item" and inputs[0].dtype == torch.bool)
        if not unknown or not asks or self.assumed >= MAX_ASSUMED:
            raise error
        self.assumed += 1
        return False


def tensors_in(tree: Any) -> list[torch.Tensor]:
    """Every tensor in nested tuples, lists and dicts, in order."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, (tuple, list)):
        return [tensor for part in tree for tensor in tensors_in(part)]
    if isinstance(tree, dict):
        return [tensor for part in tree.values() for tensor in tensors_in(part)]
    return []
