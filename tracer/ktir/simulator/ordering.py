"""Which accesses of other cores come before what a core does now.

Cores are ordered by inter-tile operations only. `Apart` is for functions without any; `Clocks` keeps a vector
clock per core (Fidge, Mattern), and for every element the last write and each core's last read, as FastTrack
(Flanagan and Freund, 2009) does. Both mark writes with one number per element.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from tracer.ktir.simulator.memory import FIRST_CORE, Buffer, assign, strided

SEVERAL = -1
"""Value of a reader map: more than one core."""


class Window(Protocol):
    """Some elements of the maps beside a buffer."""

    def get(self, held: Tensor) -> Tensor:
        """Their values."""

    def put(self, held: Tensor, value: Tensor | int) -> None:
        """Set them."""


class BoxWindow:
    """A strided box from element `offset` on; the `grain` numbers of an element are the last axis."""

    def __init__(self, offset: int, shape: Sequence[int], strides: Sequence[int], grain: int = 1):
        self.place = offset, tuple(shape), tuple(strides)
        if grain > 1:
            self.place = offset * grain, (*shape, grain), (*(s * grain for s in strides), 1)

    def get(self, held: Tensor) -> Tensor:
        """Values in the shape of the box."""
        return strided(held, *self.place)

    def put(self, held: Tensor, value: Tensor | int) -> None:
        """Set them; a number holds for all. Coordinates of one element must have one value."""
        offset, shape, strides = self.place
        # torch writes to no window with a stride of 0, of whose elements the first stands for all.
        shape = tuple(min(n, 1) if stride == 0 else n for n, stride in zip(shape, strides, strict=True))
        filled = (
            torch.full(shape, value, dtype=held.dtype)
            if isinstance(value, int)
            else value[tuple(map(slice, shape))]
        )
        assign(held, offset, shape, strides, filled)


class ElementWindow:
    """Elements by index, a 1-D tensor; `grain` as for a box."""

    def __init__(self, indices: Tensor, grain: int = 1):
        self.indices = indices if grain == 1 else indices[:, None] * grain + torch.arange(grain)

    def get(self, held: Tensor) -> Tensor:
        """Values in the order of the indices."""
        return held[self.indices]

    def put(self, held: Tensor, value: Tensor | int) -> None:
        """Set them; a number holds for all."""
        held[self.indices] = torch.as_tensor(value, dtype=held.dtype)


class Apart:
    """No core ever knows of another."""

    dtype = torch.int16

    def mark(self, core: int) -> int:
        """The number that stands for a write of this core now."""
        return core + FIRST_CORE

    def writer(self, mark: int) -> int:
        """The core behind a mark."""
        return mark - FIRST_CORE

    def foreign(self, writers: Tensor, core: int) -> Tensor | None:
        """Where another core wrote, unordered with what `core` does now; None for nowhere."""
        found = (writers >= FIRST_CORE) & (writers != core + FIRST_CORE)
        return found if bool(found.any()) else None

    def read(self, buffer: Buffer, window: Window, core: int) -> None:
        """Note that `core` reads."""
        assert buffer.readers is not None
        me = core + FIRST_CORE
        readers = window.get(buffer.readers)
        window.put(buffer.readers, torch.where((readers == 0) | (readers == me), me, SEVERAL))

    def unordered_reads(self, buffer: Buffer, window: Window, core: int) -> Tensor | None:
        """Where another core read, unordered with what `core` does now; None for nowhere."""
        assert buffer.readers is not None
        readers = window.get(buffer.readers)
        found = (readers != 0) & (readers != core + FIRST_CORE)
        return found if bool(found.any()) else None


class Clocks:
    """Vector clocks of the cores of a grid."""

    dtype = torch.int32

    def __init__(self, cores: int):
        self.cores = cores
        self.known = np.zeros((cores, cores), dtype=np.int64)
        """`known[d, c]`: the last epoch of core c that is before what core d does now."""
        self.epochs = np.ones(cores, dtype=np.int64)

    def publish(self, core: int) -> np.ndarray:
        """What another core will know that waits for `core` to come here."""
        seen = self.known[core].copy()
        seen[core] = self.epochs[core]
        self.epochs[core] += 1
        return seen

    def deliver(self, core: int, seen: Iterable[np.ndarray]) -> None:
        """`core` has waited for those who published this."""
        for one in seen:
            np.maximum(self.known[core], one, out=self.known[core])

    def meet(self, cores: Iterable[int]) -> None:
        """These cores have waited for each other."""
        together = list(cores)
        seen = [self.publish(core) for core in together]
        for core in together:
            self.deliver(core, seen)

    def mark(self, core: int) -> int:
        """The number that stands for a write of this core now."""
        return FIRST_CORE + core + self.cores * int(self.epochs[core])

    def writer(self, mark: int) -> int:
        """The core behind a mark."""
        return (mark - FIRST_CORE) % self.cores

    def foreign(self, writers: Tensor, core: int) -> Tensor | None:
        """Where another core wrote, unordered with what `core` does now; None for nowhere."""
        marks = writers - FIRST_CORE
        if not bool((marks >= 0).any()):
            return None
        limits = torch.from_numpy(self.known[core].astype(np.int32))
        limits[core] = torch.iinfo(torch.int32).max
        found = (marks >= 0) & (marks // self.cores > limits[marks % self.cores])
        return found if bool(found.any()) else None

    def read(self, buffer: Buffer, window: Window, core: int) -> None:
        """Note that `core` reads."""
        if core not in buffer.reads:
            buffer.reads[core] = torch.zeros(buffer.numel * buffer.grain, dtype=torch.int32)
        window.put(buffer.reads[core], int(self.epochs[core]))

    def unordered_reads(self, buffer: Buffer, window: Window, core: int) -> Tensor | None:
        """Where another core read, unordered with what `core` does now; None for nowhere."""
        found: Tensor | None = None
        for other, epochs in buffer.reads.items():
            late = window.get(epochs) > int(self.known[core, other])
            if other != core and bool(late.any()):
                found = late if found is None else found | late
        return found
