"""The worker's view of the memory that it shares with its client: one array per buffer, by address."""

from __future__ import annotations

import contextlib
import mmap
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np


class OutsideBufferError(IndexError):
    """An access reaches beyond the memory of the buffer that it starts from."""


class Memory:
    """Shared memory with the byte ranges of its buffers.

    A kernel's pointers are real addresses, so that the interpreter's own loads and stores work on them too.
    """

    def __init__(self, descriptor: int, size: int):
        self._map = mmap.mmap(descriptor, size)
        self._bytes = np.frombuffer(self._map, dtype=np.uint8)
        self.base = int(self._bytes.ctypes.data)
        self._ranges: list[tuple[int, int]] = []

    def register(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Byte ranges (start, length) of the buffers; accesses outside of them are errors."""
        self._ranges = sorted(set(ranges))

    def array(self, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> np.ndarray:
        """The elements at `address`; strides in bytes. Raises OutsideBufferError."""
        offset = address - self.base
        position = bisect_right(self._ranges, (offset, 1 << 62)) - 1
        if position < 0:
            raise OutsideBufferError(f"address {offset} is in no buffer")
        start, length = self._ranges[position]
        try:
            return np.ndarray(
                tuple(shape), dtype, self._bytes[start : start + length], offset - start, tuple(strides)
            )
        except (ValueError, TypeError):
            itemsize = np.dtype(dtype).itemsize
            last = (
                offset
                - start
                + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s > 0)
                + itemsize
            )
            raise OutsideBufferError(f"a tile reaches byte {last} of a buffer of {length} bytes") from None

    def close(self) -> None:
        """Drop the mapping; arrays that are still referenced keep it alive."""
        del self._bytes
        with contextlib.suppress(BufferError):
            self._map.close()
