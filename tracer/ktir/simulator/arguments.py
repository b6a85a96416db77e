"""Arguments of a run: tensors as linear memory, NumPy arrays as tensors, numbers within their types."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from tracer.ktir.dialect.attributes import RuntimeArgType
from tracer.ktir.simulator.dtypes import element, rounder, wrap
from tracer.ktir.simulator.memory import Buffer


class UnfitArgumentError(ValueError):
    """An argument that a run cannot take; the text says why, as what follows its name."""


class ArgumentBuffer:
    """The memory behind a tensor argument, and the tensor that shows it afterwards.

    It runs from the tensor's first element to its last: what lies beyond in the same storage was not passed.
    Gaps between rows belong to it.
    """

    def __init__(self, name: str, value: Tensor, *, copy: bool):
        value = value.detach()
        flat = torch.as_strided(value, (span_of(value),), (1,), value.storage_offset())
        if copy:
            flat = flat.clone()
            value = torch.as_strided(flat, value.shape, value.stride())
        self.tensor = value
        self.buffer = Buffer(name, flat)


def span_of(tensor: Tensor) -> int:
    """Elements of memory from a tensor's first to its last."""
    if not tensor.numel():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def overlap(one: Tensor, other: Tensor) -> str:
    """How the memory of two tensors meets: `same` first element, last element and dtype; `part`; or
    nothing."""
    begin, start = one.data_ptr(), other.data_ptr()
    end = begin + span_of(one) * one.element_size()
    stop = start + span_of(other) * other.element_size()
    if max(begin, start) >= min(end, stop):
        return ""
    return "same" if (begin, end, one.dtype) == (start, stop, other.dtype) else "part"


def written_back(held: ArgumentBuffer | None, value: Any) -> ArgumentBuffer | None:
    """What a run on a copy stored, in the memory of the argument itself."""
    if held is None or not held.buffer.stored:
        return held
    target = ArgumentBuffer(held.buffer.name, arguments_of([value])[0], copy=False)
    target.buffer.data.copy_(held.buffer.data)
    target.buffer.writers, target.buffer.stored = held.buffer.writers, True
    return target


def listed(values: object, name: str, form: str) -> list[Any]:
    """The members of a sequence. Raises UnfitArgumentError, whose text is a sentence, for what is no row of
    values by position: text, a mapping, a tensor.
    """
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping | Tensor | np.ndarray):
        return list(values)
    raise UnfitArgumentError(
        f"{name}: {type(values).__name__} is no list of values by position; write {form}"
    )


def whole(value: object, name: str, what: str) -> int:
    """A whole number. Raises UnfitArgumentError, whose text is a sentence, for what is none."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UnfitArgumentError(f"{name}: {what} {value!r} is no whole number") from None


def arguments_of(values: Sequence[Any]) -> list[Any]:
    """Arguments with NumPy arrays as tensors on the same memory.

    Raises UnfitArgumentError for an array that no tensor can show, and a tensor without memory of its own.
    """
    return [_tensor(v) if isinstance(v, np.ndarray | Tensor) else v for v in values]


def _tensor(value: np.ndarray | Tensor) -> Tensor:
    if isinstance(value, np.ndarray):
        try:
            return torch.from_numpy(value)
        except (TypeError, ValueError) as error:
            why = "its byte order is not the machine's" if not value.dtype.isnative else "no tensor shows it"
            if any(stride < 0 for stride in value.strides):
                why = "a stride is negative"
            raise UnfitArgumentError(f"is an array of {value.dtype}; {why}, pass a plain copy") from error
    if value.layout is not torch.strided or value.is_meta:
        kind = "meta" if value.is_meta else str(value.layout).removeprefix("torch.")
        raise UnfitArgumentError(f"is a {kind} tensor, which has no elements in a row; pass a dense one")
    return value


def like_argument(found: Tensor, given: Any) -> Tensor | np.ndarray:
    """A stored tensor as what was passed: a NumPy array for one, on the same memory."""
    return found.numpy() if isinstance(given, np.ndarray) else found


def number_of(value: Any, declared: Attribute) -> int | float:
    """A number as the type of its argument holds it: integers in signed reading, floats rounded.

    An integer type of n bits takes -2**(n-1) to 2**n - 1, since its signless numbers are read both ways;
    index takes what 64 bits hold with a sign. Raises UnfitArgumentError for what is no number of the type,
    or would leave its range.
    """
    if hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, int | float | bool):
        raise UnfitArgumentError(f": {type(value).__name__} is no tensor or number")
    type_ = declared.value if isinstance(declared, RuntimeArgType) else declared
    kind = element(type_)
    if not isinstance(type_, IndexType | IntegerType):
        try:
            rounded = rounder(kind)(float(value))
        except OverflowError:
            rounded = math.inf
        if not math.isfinite(rounded) and rounded != value and value == value:
            end = f"{torch.finfo(kind.dtype).max:g}"
            raise UnfitArgumentError(f"is {value}, outside of {type_}, which holds -{end} to {end}")
        return rounded
    if isinstance(value, float):
        raise UnfitArgumentError(f"is {type_}, but a float is given")
    if isinstance(declared, RuntimeArgType):
        _promised(value, declared)
    least = -(1 << (kind.bits - 1))
    largest = (-least if isinstance(type_, IndexType) else 1 << kind.bits) - 1
    if not least <= value <= largest:
        raise UnfitArgumentError(f"is {value}, outside of {type_}, which holds {least} to {largest}")
    return wrap(int(value), kind.bits)


def _promised(value: int, declared: RuntimeArgType) -> None:
    """Raise UnfitArgumentError for a number that breaks what its type promises."""
    granularity, bound = declared.granularity.data, declared.upperbound.data
    broken = ""
    if granularity and value % granularity:
        broken = f"no multiple of its granularity {granularity}"
    elif bound and not 0 <= value <= bound:
        broken = f"not between 0 and its upperbound {bound}"
    if broken:
        raise UnfitArgumentError(f"is {value}, {broken}")
