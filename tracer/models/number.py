"""Names of ops: `torch.<op>.<n>`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tracer.models.op_call import OpCall


def number(tensor: torch.Tensor) -> Any:
            value = self.values.number(tensor)
            return tensor if value is None else value

        first = args[:1] if args and isinstance(args[0], torch.Tensor) else ()
        return (*first, *tree_map_only(torch.Tensor, number, args[len(first) :])), tree_map_only(
            torch.Tensor, number, kwargs
        )

    def _note(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        layouts: dict[int, Layout],
        kind: Kind,
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
    return value is default or (
        type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default
    )


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
