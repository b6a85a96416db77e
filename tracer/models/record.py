"""Record what a model asks of PyTorch, call by call.

Which calls count: the outermost call into torch, as the model wrote it (`torch.nn.functional.softmax` is one
op although it is written in Python over others). Calls that neither return a tensor nor write to one
(`shape`, `dim`, `size`, `is_floating_point` ...) are queries, not ops, and are not counted.

An op is a `view` when nothing was written and every tensor it returns shares the storage of one of its
inputs, or holds no element; that is read off the storages and version counters of the call itself, not off
its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch._subclasses.fake_tensor import DynamicOutputShapeException
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from tracer.errors import HarvestError
from tracer.models.describe import Describer, Layout, essential, is_strided, layout_of, overlapping
from tracer.models.errors import OverlappingArguments, TooManyCalls, UnknownShape
from tracer.models.functions import canonical_names, function_of
from tracer.models.number import number
from tracer.models.op_call import OpCall
from tracer.models.values import Values, tensors_in

__all__ = ["Kind", "RecordedOp", "Recorder", "number"]

Kind = Literal["compute", "view"]

MAX_CALLS = 500_000
"""Calls of one phase, queries included; some minutes of tracing."""


@dataclass(frozen=True)
class RecordedOp:
    """A distinct op of a model: its call, what it is, and where it occurs.

    `modules` are the qualified names of the modules that made the call, digits replaced by `*`, sorted.
    `refusal` says why the call could not be described exactly (then nothing can be made of it).
    """

    call: OpCall
    kind: Kind
    count: int
    phases: tuple[str, ...]
    modules: tuple[str, ...]
    refusal: HarvestError | None = None


@dataclass
class _Entry:
    call: OpCall
    kind: Kind
    refusal: HarvestError | None
    count: int = 0
    phases: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)


class Recorder(TorchFunctionMode):
    """Records every op made while it is active and not `paused`."""

    def __init__(self, values: Values, limit: int | None = None) -> None:
        super().__init__()
        self.values = values
        self.limit = MAX_CALLS if limit is None else limit
        self.phase = ""
        self.paused = False
        self.seen = 0
        self.module_names: dict[int, str] = {}
        self._reached: set[int] = set()
        self._stack: list[str] = []
        self._entries: dict[str, _Entry] = {}
        self._canonical: dict[tuple[Any, ...], tuple[str, bool]] = {}

    def enter_module(self, module: torch.nn.Module) -> None:
        """Note that `module` starts its forward pass."""
        self._reached.add(id(module))
        self._stack.append(self.module_names.get(id(module), ""))

    def leave_module(self) -> None:
        """Note that the innermost module has finished."""
        if self._stack:
            self._stack.pop()

    @property
    def reached(self) -> int:
        """How many modules started their forward pass."""
        return len(self._reached)

    @property
    def total(self) -> int:
        """How many calls were recorded."""
        return sum(entry.count for entry in self._entries.values())

    def merge(self, other: Recorder) -> None:
        """Add what `other` recorded after what is recorded here."""
        for identity, theirs in other._entries.items():
            entry = self._entries.setdefault(identity, _Entry(theirs.call, theirs.kind, theirs.refusal))
            entry.count += theirs.count
            entry.phases += [phase for phase in theirs.phases if phase not in entry.phases]
            entry.modules |= theirs.modules

    @property
    def ops(self) -> tuple[RecordedOp, ...]:
        """What was recorded so far, in order of first occurrence."""
        return tuple(
            RecordedOp(e.call, e.kind, e.count, tuple(e.phases), tuple(sorted(e.modules)), e.refusal)
            for e in self._entries.values()
        )

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the call and record it if it is an op.

        One that PyTorch cannot run because its result's shape depends on unknown values is recorded with a
        refusal, and what PyTorch raised goes on: nothing after it can be traced.
        """
        self.seen += 1
        if self.seen > self.limit:
            raise TooManyCalls(phase=self.phase, limit=self.limit)
        kwargs = dict(kwargs or {})
        inputs = tensors_in((args, kwargs))
        # Taken before the call: an in-place op may change the layout of its tensor.
        before = [] if self.paused else [layout_of(t) for t in inputs]
        layouts = {id(t): layout for t, layout in zip(inputs, before, strict=False)}
        try:
            result, outputs, written, by_value = self.values.call(func, args, kwargs, inputs)
        except DynamicOutputShapeException as error:
            if not self.paused:
                self._note(func, args, kwargs, layouts, "compute", UnknownShape(detail=str(error)))
            raise
        if self.paused or (not outputs and not written):
            return result
        storages = {t.untyped_storage()._cdata for t in inputs if is_strided(t)}
        aliased = all(
            t.numel() == 0 or (is_strided(t) and t.untyped_storage()._cdata in storages) for t in outputs
        )
        changed = written and not _assigns_itself(func, args)
        kind: Kind = "view" if aliased and not changed else "compute"
        if by_value or self._needs_value(func, args, kwargs, inputs):
            args, kwargs = self._with_numbers(func, args, kwargs)
        refusal = OverlappingArguments() if changed and overlapping(inputs, before) else None
        self._note(func, args, kwargs, layouts, kind, refusal)
        return result

    def _needs_value(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        inputs: list[torch.Tensor],
    ) -> bool:
        """Whether the call reads a size or a count from a tensor of rank 0, as PyTorch allows."""
        if not any(
            t.dim() == 0 and not t.is_floating_point() and self.values.number(t) is not None for t in inputs
        ):
            return False
        # It ran, so what it misses now is the value.
        return not _runs_without_values(func, args, kwargs)

    def _with_numbers(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with known sizes and counts as numbers: the call then has a static shape.

        The first argument is mostly what the op works on and stays, unless it is a size as well (`arange`).
        """

        def number(tensor: torch.Tensor) -> Any:
            value = self.values.number(tensor)
            return tensor if value is None else value

        named = tree_map_only(torch.Tensor, number, kwargs)
        counts = tree_map_only(torch.Tensor, number, args)
        rest = (*args[:1], *counts[1:])
        all_counts = not _runs_without_values(func, rest, named) and _runs_without_values(func, counts, named)
        return (counts if all_counts else rest), named

    def _note(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        layouts: dict[int, Layout],
        kind: Kind,
        refusal: HarvestError | None,
    ) -> None:
        describe = Describer(layouts)
        names = canonical_names(func)
        args, kwargs = essential(func, names[-1], args, kwargs)
        described = tuple(describe(value) for value in args)
        described_kwargs = tuple((key, describe(kwargs[key])) for key in sorted(kwargs))
        refusal = describe.refusal or refusal
        call = OpCall(names[-1], tuple(describe.specs), described, described_kwargs)
        if len(names) > 1 and describe.refusal is None:
            call = self._canonical_call(call, names[0], args, kwargs)
        entry = self._entries.setdefault(call.identity, _Entry(call, kind, refusal))
        entry.refusal = entry.refusal or refusal
        entry.count += 1
        if self.phase not in entry.phases:
            entry.phases.append(self.phase)
        entry.modules.add(re.sub(r"\d+", "*", self._stack[-1]) if self._stack else "")

    def _canonical_call(
        self, call: OpCall, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> OpCall:
        """`call` under its free function's name, when that function takes the arguments (packed or not)."""
        key = (call.name, name, tuple(type(value) for value in args), tuple(kwargs))
        if key not in self._canonical:
            self._canonical[key] = _accepts(name, args, kwargs) or (call.name, False)
        chosen, packed = self._canonical[key]
        described = (call.args[0], tuple(call.args[1:])) if packed else call.args
        return OpCall(chosen, call.tensors, described, call.kwargs)


def _assigns_itself(func: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether `x[i] = y` where y is x[i] itself: that is how Python ends `x[i] += z`, and nothing changes."""
    if func is not torch.Tensor.__setitem__ or not isinstance(args[2], torch.Tensor):
        return False
    target, index, value = args
    if not (is_strided(target) and is_strided(value)):
        return False
    if target.untyped_storage()._cdata != value.untyped_storage()._cdata:
        return False
    place = target[index]
    same_storage = place.untyped_storage()._cdata == value.untyped_storage()._cdata
    return same_storage and layout_of(place) == layout_of(value)


def _accepts(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, bool] | None:
    # In-place functions are never tried (they have no free twin), so trying changes nothing.
    for packed in (False, True):
        try:
            function_of(name)(*((args[0], args[1:]) if packed else args), **kwargs)
        except (TypeError, RuntimeError, IndexError, ValueError):
            continue
        return name, packed
    return None


def _runs_without_values(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        func(
            *tree_map_only(torch.Tensor, _valueless, args), **tree_map_only(torch.Tensor, _valueless, kwargs)
        )
    except Exception:
        return False
    return True


def _valueless(tensor: torch.Tensor) -> torch.Tensor:
    # Not empty_like: fake tensors that remember a constant pass one on.
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
