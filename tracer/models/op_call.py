"""What a model asked PyTorch to do: one recorded call, without data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, order=True)
class TensorSpec:
    """A tensor's layout. `shape`, `stride` and `offset` are in elements; `dtype` as in `torch.float16`."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}:{list(self.stride)}+{self.offset}"


@dataclass(frozen=True)
class Torch:
    """A constant by its spelling: `torch.float32`, `torch.strided`, `torch.device('cpu')`, `...`."""

    spelling: str


@dataclass(frozen=True)
class TensorRef:
    """The n-th distinct tensor argument of the call (two arguments may be one tensor)."""

    index: int


Value: TypeAlias = "Leaf | slice | tuple[Value, ...] | list[Value] | dict[str, Value]"
Leaf: TypeAlias = "bool | int | float | str | Torch | TensorRef | None"


@dataclass(frozen=True)
class OpCall:
    """One distinct operation: resolved name, tensor layouts, and every other argument.

    `name` is canonical (`torch.Tensor.add` and `operator.add` are `torch.add`). `tensors` are the
    distinct tensor arguments in order of first appearance; `args` and `kwargs` refer to them by
    TensorRef; `kwargs` is sorted by name.
    """

    name: str
    tensors: tuple[TensorSpec, ...]
    args: tuple[Value, ...]
    kwargs: tuple[tuple[str, Value], ...] = ()

    @property
    def identity(self) -> str:
        """Canonical text: equal exactly when two calls are the same operation.

        >>> half = TensorSpec((2, 3), (3, 1), 0, "torch.float16")
        >>> OpCall("torch.add", (half,), (TensorRef(0), 1.0)).identity
        'torch.add($0, 1.0); $0=torch.float16[2, 3]:[3, 1]+0'
        """
        arguments = [spell(value, "${}".format) for value in self.args]
        arguments += [f"{key}={spell(value, '${}'.format)}" for key, value in self.kwargs]
        tensors = [f"${index}={spec}" for index, spec in enumerate(self.tensors)]
        return "; ".join([f"{self.name}({', '.join(arguments)})", *tensors])

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready form; `from_json` is its inverse."""
        return {
            "name": self.name,
            "tensors": [[list(t.shape), list(t.stride), t.offset, t.dtype] for t in self.tensors],
            "args": [_encode(value) for value in self.args],
            "kwargs": {key: _encode(value) for key, value in self.kwargs},
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> OpCall:
        """The call that `to_json` described."""
        return cls(
            name=data["name"],
            tensors=tuple(TensorSpec(tuple(s), tuple(t), o, d) for s, t, o, d in data["tensors"]),
            args=tuple(_decode(value) for value in data["args"]),
            kwargs=tuple(sorted((key, _decode(value)) for key, value in data["kwargs"].items())),
        )


def spell(value: Value, tensor: Callable[[int], str]) -> str:
    """The Python expression of an argument; `tensor` names the n-th tensor.

    The expression evaluates to the argument where `torch` and the names of tensors are in scope.
    """
    if isinstance(value, Torch):
        return value.spelling
    if isinstance(value, TensorRef):
        return tensor(value.index)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, slice):
        return f"slice({', '.join(spell(part, tensor) for part in (value.start, value.stop, value.step))})"
    if isinstance(value, tuple):
        inner = ", ".join(spell(part, tensor) for part in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(spell(part, tensor) for part in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {spell(part, tensor)}" for key, part in value.items()) + "}"
    return repr(value)


def map_values(value: Value, change: Callable[[Value], Value]) -> Value:
    """`value` with `change` applied to every leaf (containers and slices are rebuilt)."""
    if isinstance(value, tuple):
        return tuple(map_values(part, change) for part in value)
    if isinstance(value, list):
        return [map_values(part, change) for part in value]
    if isinstance(value, dict):
        return {key: map_values(part, change) for key, part in value.items()}
    if isinstance(value, slice):
        return slice(*(map_values(part, change) for part in (value.start, value.stop, value.step)))
    return change(value)


def leaves(value: Value) -> Iterator[Value]:
    """Every leaf of an argument, in order."""
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, slice):
        for part in (value.start, value.stop, value.step):
            yield from leaves(part)
    else:
        yield value


def _encode(value: Value) -> Any:
    if isinstance(value, Torch):
        return {"torch": value.spelling}
    if isinstance(value, TensorRef):
        return {"tensor": value.index}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, slice):
        return {"slice": [_encode(part) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, tuple):
        return {"tuple": [_encode(part) for part in value]}
    if isinstance(value, list):
        return [_encode(part) for part in value]
    if isinstance(value, dict):
        return {"dict": [[key, _encode(part)] for key, part in value.items()]}
    return value


_DECODE: dict[str, Callable[[Any], Value]] = {
    "torch": Torch,
    "tensor": TensorRef,
    "float": float,
    "slice": lambda parts: slice(*(_decode(part) for part in parts)),
    "tuple": lambda parts: tuple(_decode(part) for part in parts),
    "dict": lambda pairs: {key: _decode(part) for key, part in pairs},
}


def _decode(data: Any) -> Value:
    if isinstance(data, list):
        return [_decode(part) for part in data]
    if isinstance(data, dict):
        ((kind, inner),) = data.items()
        return _DECODE[kind](inner)
    return data
