"""The two halves of every oracle: inputs widened to float64 before the op, its result rounded once after
it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

Layout = tuple[Sequence[int], Sequence[int], torch.dtype]
View = tuple[str, Sequence[int], Sequence[int], torch.dtype, int]
"""Name of the buffer that it is a view of, shape, stride, dtype, offset in elements."""

_WIDE = {
    torch.float16: torch.float64, torch.bfloat16: torch.float64, torch.float32: torch.float64,
    torch.float64: torch.float64, torch.complex64: torch.complex128, torch.complex128: torch.complex128,
}  # fmt: skip

_LARGEST = torch.finfo(torch.float64).max

Observer = Callable[[list[torch.Tensor]], None]
_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Inside, `observer` gets what every oracle computed, before it is rounded."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.pop()


def span_of(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements of memory from a tensor's first element to its last."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def flat_memory(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from a tensor's first element to its last, gaps included, as a tensor of rank 1 (no
    copy)."""
    span = span_of(tensor.shape, tensor.stride())
    return tensor.as_strided((span,), (1,), tensor.storage_offset())


def widened(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Fresh copies, floating ones in float64 (complex ones in complex128); shapes and strides stay."""
    return {
        name: flat_memory(tensor)
        .to(_WIDE.get(tensor.dtype, tensor.dtype), copy=True)
        .as_strided(tensor.shape, tensor.stride())
        for name, tensor in inputs.items()
    }


def round_once(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`values` in `dtype`, rounded once, to nearest even.

    The largest float64 is a limit of the arithmetic that the oracle runs in (`nan_to_num` of an infinity),
    and becomes that of `dtype`: no other result is so large.

    PyTorch converts float64 to float16 and bfloat16 by way of float32, which rounds twice. Here the first
    step rounds to odd instead, which leaves the second step's result right (Boldo and Melquiond, 2008: round
    to odd needs two more bits than the target; float32 has 13 more than float16 and 16 more than bfloat16).
    """
    if values.dtype != torch.float64 or not dtype.is_floating_point:
        return values.to(dtype)
    # Without a temporary where all are smaller, as nearly always.
    if values.numel() and not all(float(end.abs()) < _LARGEST for end in values.aminmax()):
        values = values.where(values.abs() != _LARGEST, values.sign() * torch.finfo(dtype).max)
    if dtype not in (torch.float16, torch.bfloat16):
        return values.to(dtype)
    near = values.to(torch.float32)
    exact = near.to(torch.float64)
    inexact = (exact != values) & torch.isfinite(near)
    bits = near.view(torch.int32)
    toward_zero = torch.where(exact.abs() > values.abs(), bits - 1, bits)
    odd = torch.where(inexact, toward_zero | 1, bits)
    return odd.view(torch.float32).to(dtype)


def leaves(result: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result, depth first: of a tensor, a tuple, a list, a mapping, or nothing at all."""
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from leaves(part)
    elif isinstance(result, (tuple, list)):
        for part in result:
            yield from leaves(part)


def rounded(
    result: Any,
    x: Mapping[str, torch.Tensor],
    buffers: Mapping[str, Layout],
    outputs: Sequence[str],
    views: Mapping[str, View] | None = None,
) -> tuple[torch.Tensor, ...]:
    """What the op returned as one tensor per output, in the output's dtype, rounded once.

    `x` are the widened inputs after the op: outputs beyond those that the op returned are taken from there,
    being inputs that it writes.
    """
    found = list(leaves(result))
    found += [x[name] for name in outputs[len(found) :]]
    for observer in _observers:
        observer(found)
    dtypes = [views[name][3] if views and name in views else buffers[name][2] for name in outputs]
    return tuple(round_once(value, dtype) for value, dtype in zip(found, dtypes, strict=True))
