"""Names of PyTorch functions: from a function to its canonical name and back.

A method and the free function of the same meaning are one op: `torch.Tensor.add`, `torch.Tensor.__add__`
and `torch.add` are all `torch.add`. A method without a free twin keeps its own name
(`torch.Tensor.index_copy_`, `torch.Tensor.__getitem__`); a property that returns tensors is named
without its getter (`torch.Tensor.mT`).
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import get_testing_overrides, resolve_name

from tracer.models.errors import UnknownOp

_OPERATORS = {
    "and": "bitwise_and",
    "floordiv": "floor_divide",
    "invert": "bitwise_not",
    "lshift": "bitwise_left_shift",
    "mod": "remainder",
    "or": "bitwise_or",
    "rshift": "bitwise_right_shift",
    "truediv": "div",
    "xor": "bitwise_xor",
    "div": "div",
    "radd": "add",
    "rmul": "mul",
    "rsub": "rsub",
}
"""Free functions of Python operators whose names differ; `__radd__` and `__rmul__` commute."""

_METHOD = "torch.Tensor."
_SELF = ("self", "input")


@functools.cache
def canonical_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names that may stand for `function`, the most canonical first; the last one always is right.

    Whether an earlier one accepts the same arguments is for the caller to find out by calling it.
    """
    name = resolve_name(function) or _own_name(function)
    if name.endswith(".__get__"):
        return (name.removesuffix(".__get__"),)
    if not name.startswith(_METHOD):
        return (name,)
    method = name.removeprefix(_METHOD)
    if method.startswith("__") and method.endswith("__"):
        operator = method.strip("_")
        if operator.startswith("i") and hasattr(torch.Tensor, f"{_operator(operator[1:])}_"):
            return (f"{_METHOD}{_operator(operator[1:])}_", name)
        method = _operator(operator)
    twin = getattr(torch, method, None)
    if method.endswith("_") or not callable(twin) or isinstance(twin, type) or not _takes_tensor_first(twin):
        return (name,)
    return (f"torch.{method}", name)


def _operator(name: str) -> str:
    return _OPERATORS.get(name, name)


def _own_name(function: Callable[..., Any]) -> str:
    packet = getattr(function, "_qualified_op_name", None) or getattr(function, "_name", None)
    if packet:
        return "torch.ops." + packet.replace("::", ".")
    own = getattr(function, "__name__", "")
    if getattr(torch, own, None) == function:
        return f"torch.{own}"
    module = getattr(function, "__module__", None) or "torch"
    return f"{module}.{getattr(function, '__qualname__', type(function).__name__)}"


def _takes_tensor_first(function: Callable[..., Any]) -> bool:
    # torch.where(condition, x, y) is not x.where(condition, y): a twin must take the tensor first.
    parameters = parameter_names(function)
    return not parameters or parameters[0] in _SELF


@functools.cache
def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Parameter names of a PyTorch function, `()` where nobody states them.

    Source: the signature, or for builtins the stand-ins that PyTorch's own override tests keep.
    """
    stand_in = get_testing_overrides().get(function)
    for candidate in (function, stand_in):
        if candidate is None:
            continue
        try:
            parameters = inspect.signature(candidate).parameters.values()
        except (TypeError, ValueError):
            continue
        names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        if names:
            return names
    return ()


@functools.cache
def function_of(name: str) -> Callable[..., Any]:
    """The function that a canonical name means.

    Raises:
        UnknownOp: `name` does not lead to a function or a property of torch.
    """
    first, *path = name.split(".")
    owner: Any = None
    found: Any = torch
    try:
        if first != "torch":
            raise AttributeError(first)
        for part in path:
            owner, found = found, getattr(found, part)
            # torch's modules hold imported ones (`torch.os`): those are no functions of torch.
            if isinstance(found, types.ModuleType) and not found.__name__.startswith("torch"):
                raise AttributeError(part)
    except AttributeError:
        raise UnknownOp(name=name) from None
    if not callable(found) and inspect.isdatadescriptor(found) and owner is torch.Tensor:
        getter: Any = found
        return getter.__get__
    if not callable(found):
        raise UnknownOp(name=name)
    return found


def is_property(name: str) -> bool:
    """Whether the name is that of a tensor's property (`torch.Tensor.mT`)."""
    return name.startswith(_METHOD) and not callable(getattr(torch.Tensor, name.removeprefix(_METHOD), None))
