"""Run a recorded call again, print it as Python, or widen it to the float64 oracle."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tracer.models.functions import function_of, is_property, parameter_names
from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch, Value, leaves, map_values, spell

_METHOD = "torch.Tensor."


def replay(call: OpCall, tensors: Sequence[torch.Tensor]) -> Any:
    """Run the op of `call` on `tensors` (one per entry of `call.tensors`; real or fake, any device).

    Returns what PyTorch returns. An op that works in place changes its tensor.
    """

    def concrete(value: Value) -> Any:
        if isinstance(value, TensorRef):
            return tensors[value.index]
        return _constant(value.spelling) if isinstance(value, Torch) else value

    args = [map_values(value, concrete) for value in call.args]
    kwargs = {key: map_values(value, concrete) for key, value in call.kwargs}
    return function_of(call.name)(*args, **kwargs)


@functools.cache
def _constant(spelling: str) -> Any:
    # Spellings are written by the recorder from torch's own repr; nothing else reaches this.
    return eval(spelling, {"torch": torch, "__builtins__": {}})


def render(call: OpCall, names: Sequence[str]) -> str:
    """The call as a Python expression over `names`, one per entry of `call.tensors`.

    The expression evaluates to the same call where `torch` and the names are in scope:
    `torch.nn.functional.silu(input)`, `input[..., :64]`, `input.index_copy_(2, index, source)`.
    """

    def tensor(index: int) -> str:
        return names[index]

    keywords = [f"{key}={spell(value, tensor)}" for key, value in call.kwargs]
    if is_property(call.name):
        return f"{spell(call.args[0], tensor)}.{call.name.removeprefix(_METHOD)}"
    if call.name == "torch.Tensor.__getitem__" and not keywords:
        return f"{spell(call.args[0], tensor)}[{_subscript(call.args[1], tensor)}]"
    method = call.name.removeprefix(_METHOD)
    if (
        method != call.name
        and call.args
        and isinstance(call.args[0], TensorRef)
        and not method.startswith("__")
    ):
        arguments = [spell(value, tensor) for value in call.args[1:]] + keywords
        return f"{spell(call.args[0], tensor)}.{method}({', '.join(arguments)})"
    arguments = [spell(value, tensor) for value in call.args] + keywords
    return f"{call.name}({', '.join(arguments)})"


def _subscript(value: Value, tensor: Callable[[int], str]) -> str:
    if isinstance(value, tuple) and value:
        return ", ".join(_index(part, tensor) for part in value) + ("," if len(value) == 1 else "")
    return _index(value, tensor)


def _index(value: Value, tensor: Callable[[int], str]) -> str:
    if not isinstance(value, slice):
        return spell(value, tensor)
    parts = ["" if part is None else spell(part, tensor) for part in (value.start, value.stop, value.step)]
    return ":".join(parts if parts[2] else parts[:2])


_WIDE = {
    **dict.fromkeys(
        ("torch.float16", "torch.bfloat16", "torch.float32", "torch.half", "torch.float"), "torch.float64"
    ),
    **dict.fromkeys(("torch.complex32", "torch.complex64"), "torch.complex128"),
}
_WIDE_CASTS = dict.fromkeys(
    ("torch.Tensor.half", "torch.Tensor.float", "torch.Tensor.bfloat16"), "torch.Tensor.double"
)


def float64(call: OpCall) -> OpCall:
    """The same call in float64: what `replay` or `render` of it computes is the oracle.

    The oracle is the PyTorch op itself on the same logical values, exact inputs widened, in float64, rounded
    once to the output's dtype by whoever compares. So every floating tensor becomes float64, and so does
    every floating dtype that the call names: `dtype=torch.float32` of a softmax is a precision to compute in,
    and the target of a cast is where the one rounding of the oracle falls anyway. Integer and bool tensors,
    and dtypes that are not floating, stay. Strides and offsets stay; they are in elements.

    Not widened: a call with nothing floating in it, whose result has PyTorch's default dtype (its numbers
    are exact or rounded once); an op that reinterprets bits (`view(dtype)`): its result depends on the width.
    """
    widened = tuple(
        dataclasses.replace(spec, dtype=_WIDE.get(spec.dtype, spec.dtype)) for spec in call.tensors
    )
    if call.name == "torch.Tensor.view" and any(isinstance(leaf, Torch) for leaf in leaves(call.args)):
        return call

    def wide(value: Value) -> Value:
        return Torch(_WIDE.get(value.spelling, value.spelling)) if isinstance(value, Torch) else value

    return OpCall(
        name=_WIDE_CASTS.get(call.name, call.name),
        tensors=widened,
        args=tuple(map_values(value, wide) for value in call.args),
        kwargs=tuple((key, map_values(value, wide)) for key, value in call.kwargs),
    )


def tensor_names(call: OpCall) -> tuple[str, ...]:
    """A name for every tensor of `call`, unique and stable: its parameter's (`input`, `tensors0` ...).

    `self` is called `input`; tensors whose parameter nobody states are `x0`, `x1` ...
    """
    parameters = () if is_property(call.name) else parameter_names(function_of(call.name))
    found: dict[int, str] = {}
    arguments: list[tuple[str, Value]] = [
        (parameters[position] if position < len(parameters) else "x", value)
        for position, value in enumerate(call.args)
    ]
    for name, value in arguments + list(call.kwargs):
        inside = [leaf.index for leaf in leaves(value) if isinstance(leaf, TensorRef)]
        # `out` and `buf` are what capture calls outputs and intermediates.
        base = "input" if name == "self" else "x" if name.startswith(("out", "buf")) else name
        for position, index in enumerate(inside):
            alone = isinstance(value, TensorRef) and base != "x"
            found.setdefault(index, base if alone else f"{base}{position if base != 'x' else index}")
    names: list[str] = []
    for index in range(len(call.tensors)):
        name = found.get(index, f"x{index}")
        names.append(name if name not in names else f"{name}_{index}")
    return tuple(names)


def empty_tensors(specs: Sequence[TensorSpec], device: str = "cpu") -> list[torch.Tensor]:
    """Uninitialised tensors of these layouts, each in a storage of its own (fake under a FakeTensorMode)."""
    return [
        torch.empty_strided(
            spec.shape, spec.stride, dtype=getattr(torch, spec.dtype.removeprefix("torch.")), device=device
        )
        for spec in specs
    ]
