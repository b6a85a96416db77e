"""Buffers, pointers, views, and the maps that the sanitizer keeps beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from xdsl.ir.affine import AffineSet

from tracer.ktir.affine import Box
from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.faults import Fault

UNWRITTEN, SETTLED = 0, 1
"""Values of a writer map: nobody; the caller. Higher ones are those of `ordering`."""
FIRST_CORE = 2

UNBOUNDED = 1 << 62
"""The number of elements of memory that nobody gave, where a trace needs no more than addresses."""


class Buffer:
    """Linear memory of one element type.

    `data` is 1-D: element k of memory is `data[k]`. `stored` says that the function stores here, so that
    loads must copy and accesses are tracked. `writers` and `readers` hold one number per element; `reads`
    does so by core, where cores know of each other (see `ordering`). They hold `grain` numbers per element
    where buffers of several element types share the memory.
    """

    def __init__(
        self,
        name: str,
        data: Tensor,
        *,
        stored: bool = False,
        initialized: bool = True,
        core: int | None = None,
        grain: int = 1,
    ):
        self.name = name
        self.data = data
        self.base = int(data.storage_offset())
        self.numel = data.numel()
        self.stored = stored
        self.initialized = initialized
        self.core = core
        self.grain = grain
        self.loaded = True
        self.writers: Tensor | None = None
        self.readers: Tensor | None = None
        self.reads: dict[int, Tensor] = {}

    @property
    def settled(self) -> bool:
        """Whether all of it was there before and nobody stores to it."""
        return self.initialized and not self.stored

    @property
    def bounds(self) -> str:
        """Where it ends, as the rest of a sentence about it; where it begins if no end is known."""
        return f"which has {self.numel} elements" if self.numel != UNBOUNDED else "which begins at element 0"

    def track(self, dtype: torch.dtype) -> None:
        """Keep writer and reader maps from now on."""
        if self.writers is None:
            size = self.numel * self.grain
            self.writers = torch.zeros(size, dtype=dtype)
            self.readers = torch.zeros(size, dtype=dtype) if dtype == torch.int16 else None


class Pointer:
    """An element index into a buffer; index arithmetic on it is pointer arithmetic."""

    __slots__ = ("buffer", "offset")

    def __init__(self, buffer: Buffer, offset: int = 0):
        self.buffer = buffer
        self.offset = offset

    def __add__(self, other: object) -> Pointer:
        if isinstance(other, Tensor):
            other = other.numpy()
        if isinstance(other, Pointer):
            raise Fault("KT216", "two pointers cannot be added")
        return Pointer(self.buffer, self.offset + other)  # type: ignore[operator]

    __radd__ = __add__

    def __sub__(self, other: object) -> Pointer | int:
        if isinstance(other, Pointer):
            if other.buffer is not self.buffer:
                raise Fault("KT216", "difference of pointers into two buffers")
            return self.offset - other.offset
        if not isinstance(other, int):
            raise Fault("KT216", "not an offset")
        return Pointer(self.buffer, self.offset - other)

    def __eq__(self, other: object) -> bool:
        # The one of object tells a pointer from the same pointer computed anew.
        if isinstance(other, Pointer):
            return other.buffer is self.buffer and bool(other.offset == self.offset)
        return bool(self._number())

    __hash__ = object.__hash__

    def _number(self, *_: object) -> int:
        raise Fault("KT216", f"argument {self.buffer.name} is a pointer, but is used as a number")

    __mul__ = __rmul__ = __floordiv__ = __mod__ = __lt__ = __le__ = __gt__ = __ge__ = __neg__ = _number
    __index__ = __int__ = __rsub__ = __and__ = __or__ = __xor__ = _number


@dataclass
class View:
    """A strided view: axis i has `sizes[i]` elements `strides[i]` apart, from element `offset` of the buffer.

    `box` bounds the coordinates that its coordinate set allows, where that is narrower than the sizes;
    `points` tests sets that are no box. `held` is the whole set as a box, global coordinates of a
    partition included.
    """

    buffer: Buffer
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    inside: bool
    box: tuple[tuple[int, int], ...] | None = None
    points: tuple[AffineSet, tuple[int, ...]] | None = None
    held: Box | None = None
    plain: bool = False
    """Whether a load needs nothing but a bounds check: no set, no tracking, no flips."""
    first: int = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.offset + self.buffer.base

    def address(self, coordinates: Sequence[int]) -> int:
        """Element index in the buffer."""
        return self.offset + sum(c * s for c, s in zip(coordinates, self.strides, strict=True))


@dataclass
class DistributedView:
    """Several views, each with the smallest box around the global coordinates it holds.

    `sets` has the coordinates themselves for every view that does not hold its whole box. Such a view is
    stored as its box would be: element `c` lies at the local coordinate `c - lowest of the box`.
    """

    parts: tuple[View, ...]
    boxes: tuple[tuple[tuple[int, int], ...], ...]
    sizes: tuple[int, ...]
    sets: tuple[tuple[AffineSet, tuple[int, ...]] | None, ...]


def span(offset: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Lowest and highest element index of a strided box; (0, -1) where it is empty."""
    low = high = offset
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return 0, -1
        if stride >= 0:
            high += (extent - 1) * stride
        else:
            low += (extent - 1) * stride
    return low, high


def make_view(buffer: Buffer, offset: int, sizes: Sequence[int], strides: Sequence[int], el: Element) -> View:
    """A view over `buffer`; raises Fault KT216 where the element types do not agree."""
    if buffer.data.dtype != el.dtype:
        held = str(buffer.data.dtype).removeprefix("torch.")
        raise Fault("KT216", f"argument {buffer.name} holds {held}, the view {el.name}")
    low, high = span(offset, sizes, strides)
    return View(buffer, offset, tuple(sizes), tuple(strides), low >= 0 and high < buffer.numel)


def retyped(data: Tensor, el: Element) -> Tensor:
    """`data` under another one-byte type where KTIR allows it (i1 and i8 over bool, int8 and uint8)."""
    small = (torch.bool, torch.int8, torch.uint8)
    if data.dtype != el.dtype and data.dtype in small and el.dtype in small:
        return data.view(el.dtype)
    return data


def strided(data: Tensor, offset: int, shape: Sequence[int], strides: Sequence[int]) -> Tensor:
    """A strided window of 1-D `data` from its element `offset`, negative strides included (then a copy)."""
    if all(s >= 0 for s in strides):
        return torch.as_strided(data, tuple(shape), tuple(strides), data.storage_offset() + offset)
    start = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0 and n)
    window = torch.as_strided(
        data, tuple(shape), tuple(abs(s) for s in strides), data.storage_offset() + start
    )
    return window.flip([axis for axis, s in enumerate(strides) if s < 0])


def assign(data: Tensor, offset: int, shape: Sequence[int], strides: Sequence[int], value: Tensor) -> None:
    """Write `value` into a strided window of 1-D `data`."""
    flipped = [axis for axis, s in enumerate(strides) if s < 0]
    start = offset + sum((shape[axis] - 1) * strides[axis] for axis in flipped if shape[axis])
    window = torch.as_strided(
        data, tuple(shape), tuple(abs(s) for s in strides), data.storage_offset() + start
    )
    window.copy_(value.flip(flipped) if flipped else value)
