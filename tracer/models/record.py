"""Record what a model asks of PyTorch, call by call.

Which calls count: the outermost call into torch, as the model wrote it (`torch.nn.functional.softmax` is one
op although it is written in Python over others). Calls that neither return a tensor nor write to one
(`shape`, `dim`, `size`, `is_floating_point` ...) are queries, not ops, and are not counted.

An op is a `view` when nothing was written and every tensor it returns shares the storage of one of its inputs, or
holds no element; that is read off the storages and version counters of the call itself, not off its name.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from tracer.errors import HarvestError
from tracer.models.errors import UnsupportedArgument
from tracer.models.functions import canonical_names, function_of
from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch, Value
from tracer.models.values import Values, tensors_in

Kind = Literal["compute", "view"]
Layout = tuple[torch.Size, tuple[int, ...], int, torch.dtype]


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

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.values = values
        self.phase = ""
        self.paused = False
        self.module_names: dict[int, str] = {}
        self._stack: list[str] = []
        self._entries: dict[str, _Entry] = {}
        self._canonical: dict[tuple[Any, ...], tuple[str, bool]] = {}

    def enter_module(self, module: torch.nn.Module) -> None:
        """Note that `module` starts its forward pass."""
        self._stack.append(self.module_names.get(id(module), ""))

    def leave_module(self) -> None:
        """Note that the innermost module has finished."""
        if self._stack:
            self._stack.pop()

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
        """Run the call and record it if it is an op."""
        kwargs = dict(kwargs or {})
        inputs = tensors_in((args, kwargs))
        # Taken before the call: an in-place op may change the layout of its tensor.
        before = [] if self.paused else [_layout(t) for t in inputs]
        result, outputs, written, by_value = self.values.call(func, args, kwargs, inputs)
        if self.paused or (not outputs and not written):
            return result
        storages = {t.untyped_storage()._cdata for t in inputs if _is_strided(t)}
        aliased = all(t.numel() == 0 or (_is_strided(t) and t.untyped_storage()._cdata in storages) for t in outputs)
        kind: Kind = "view" if aliased and not written else "compute"
        if by_value or self._needs_value(func, args, kwargs, inputs):
            args, kwargs = self._with_numbers(args, kwargs)
        self._note(func, args, kwargs, {id(t): layout for t, layout in zip(inputs, before, strict=True)}, kind)
        return result

    def _needs_value(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: list[torch.Tensor]
    ) -> bool:
        """Whether the call reads a size or a count from a tensor of rank 0 (PyTorch takes those for numbers)."""
        if not any(t.dim() == 0 and not t.is_floating_point() and self.values.number(t) is not None for t in inputs):
            return False
        try:
            func(*tree_map_only(torch.Tensor, _valueless, args), **tree_map_only(torch.Tensor, _valueless, kwargs))
        except Exception:
            # It ran, so what it misses now is the value.
            return True
        return False

    def _with_numbers(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with known sizes and counts as numbers: the call then has a static shape.

        The first argument stays what it is: it is what the op works on.
        """

        def number(tensor: torch.Tensor) -> Any:
            value = self.values.number(tensor)
            return tensor if value is None else value

        first = args[:1] if args and isinstance(args[0], torch.Tensor) else ()
        return (*first, *tree_map_only(torch.Tensor, number, args[len(first) :])), tree_map_only(torch.Tensor, number, kwargs)

    def _note(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], layouts: dict[int, Layout], kind: Kind
    ) -> None:
        describe = _Describer(layouts)
        names = canonical_names(func)
        args, kwargs = _essential(func, names[-1], args, kwargs)
        described = tuple(describe(value) for value in args)
        described_kwargs = tuple(sorted((key, describe(value)) for key, value in kwargs.items()))
        refusal = describe.refusal
        call = OpCall(names[-1], tuple(describe.specs), described, described_kwargs)
        if len(names) > 1 and refusal is None:
            call = self._canonical_call(call, names[0], args, kwargs)
        entry = self._entries.setdefault(call.identity, _Entry(call, kind, refusal))
        entry.count += 1
        if self.phase not in entry.phases:
            entry.phases.append(self.phase)
        entry.modules.add(re.sub(r"\d+", "*", self._stack[-1]) if self._stack else "")

    def _canonical_call(self, call: OpCall, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpCall:
        """`call` under its free function's name, when that function takes the arguments (packed or not)."""
        key = (call.name, name, tuple(type(value) for value in args), tuple(kwargs))
        if key not in self._canonical:
            self._canonical[key] = _accepts(name, args, kwargs) or (call.name, False)
        chosen, packed = self._canonical[key]
        described = (call.args[0], tuple(call.args[1:])) if packed else call.args
        return OpCall(chosen, call.tensors, described, call.kwargs)


def _accepts(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, bool] | None:
    # In-place functions are never tried (they have no free twin), so trying changes nothing.
    for packed in (False, True):
        try:
            function_of(name)(*((args[0], args[1:]) if packed else args), **kwargs)
        except (TypeError, RuntimeError, IndexError, ValueError):
            continue
        return name, packed
    return None


class _Describer:
    """Turns Python arguments into Values and collects the distinct tensors among them."""

    def __init__(self, layouts: dict[int, Layout]) -> None:
        self._known = layouts
        self._index: dict[int, int] = {}
        self.specs: list[TensorSpec] = []
        self.refusal: HarvestError | None = None

    def __call__(self, value: Any) -> Value:
        if isinstance(value, torch.Tensor) and id(value) in self._known:
            if id(value) not in self._index:
                self._index[id(value)] = len(self.specs)
                self.specs.append(_spec(*self._known[id(value)]))
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


def _essential(
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
    return value is default or (type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default)


def _valueless(tensor: torch.Tensor) -> torch.Tensor:
    # Not empty_like: fake tensors that remember a constant pass one on.
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)


def _layout(tensor: torch.Tensor) -> Layout:
    if not _is_strided(tensor):
        return tensor.shape, (), 0, tensor.dtype
    return tensor.shape, tensor.stride(), tensor.storage_offset(), tensor.dtype


def _spec(shape: torch.Size, stride: tuple[int, ...], offset: int, dtype: torch.dtype) -> TensorSpec:
    return TensorSpec(tuple(shape), tuple(stride), int(offset), str(dtype))


def _is_strided(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided


def number(calls: Iterable[OpCall], known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Names `torch.<op>.<n>` of `calls`, by identity.

    `known` maps identities to names given before (an earlier manifest); they are kept, and new identities
    get the next free number of their op in order of appearance.
    """
    names = dict(known or {})
    highest: dict[str, int] = {}
    for name in names.values():
        base, _, index = name.rpartition(".")
        highest[base] = max(highest.get(base, 0), int(index))
    found: dict[str, str] = {}
    for call in calls:
        identity = call.identity
        if identity not in names:
            highest[call.name] = highest.get(call.name, 0) + 1
            names[identity] = f"{call.name}.{highest[call.name]}"
        found[identity] = names[identity]
    return found
