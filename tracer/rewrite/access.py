"""Affine accesses -> descriptors: dims in memory order, what drives each, where it starts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.errors import OutsideBuffer, RankTooHigh, UnsupportedSyntax
from tracer.rewrite.guards import Interval, guards, value_bounds
from tracer.rewrite.intervals import Bounds, Intervals
from tracer.rewrite.ir import Kernel, Load, Store
from tracer.rewrite.types import BYTES, memory_dtype

MAX_RANK = 5
"""Triton's limit on descriptor dims."""
MIN_BLOCK_BYTES = 16
"""Triton's least size of a descriptor's last block dim."""


@dataclass(frozen=True)
class Dim:
    """One descriptor dim.

    `stride` is in elements. `axis` drives it, or the index value `value`, or nothing (one element).
    The coordinate is `start + axis` (`start + extent - 1 - axis` where `reverse`), or `start + value`; `size`
    is the number of valid coordinates: `start + extent`. Where `low` is set, the access is valid for
    `low <= axis < low + extent` only, and the axis is clamped into that interval. A dim with `steps` stands
    for several axes of block 1: its coordinate is `start` + the sum of `step * axis` over (axis, step).
    """

    stride: int
    axis: Axis | None = None
    value: str | None = None
    start: int = 0
    extent: int = 1
    reverse: bool = False
    low: int | None = None
    steps: tuple[tuple[Axis, int], ...] = ()

    @property
    def plain(self) -> bool:
        """Whether nothing but an axis that rises from its start drives the dim."""
        return self.axis is not None and not self.reverse and self.low is None

    @property
    def size(self) -> int:
        """Extent of the descriptor along this dim."""
        return self.start + self.extent


@dataclass(frozen=True)
class Access:
    """One load or store as a descriptor access. `dims` are outermost first."""

    statement: Load | Store
    dims: tuple[Dim, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory."""
        return BYTES[memory_dtype(self.dtype)]

    @property
    def min_block(self) -> int:
        """Least block of a descriptor's last dim."""
        return max(MIN_BLOCK_BYTES // self.bytes, 1)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Axes that drive a dim, in memory order."""
        return tuple(a for d in self.dims for a in ([d.axis] if d.axis else [a for a, _ in d.steps]))

    def settled(self, blocks: dict[Axis, int]) -> Access:
        """The access as it is written under `blocks`.

        The widest of its dims of stride 1 is last (overlapping windows have several). Where there are more
        dims than a descriptor may have, those of block 1 are one dim.
        """
        ties = [dim for dim in self.dims if dim.stride == 1]
        ties.sort(key=lambda dim: blocks[dim.axis] if dim.axis else 1)
        ordered = replace(self, dims=(*self.dims[: len(self.dims) - len(ties)], *ties))
        if len(ordered.dims) + bool(ordered.lanes(blocks) and not ordered.open_last) <= MAX_RANK:
            return ordered
        single = [dim for dim in ordered.dims if dim.plain and dim.axis and blocks[dim.axis] == 1]
        rest = [dim for dim in ordered.dims if dim not in single]
        return replace(self, dims=(_joined(single), *rest))

    @property
    def open_last(self) -> bool:
        """Whether the last dim has stride 1 and nothing drives it, so that it can hold the padding lanes."""
        last = self.dims[-1] if self.dims else None
        return last is not None and last.stride == 1 and not (last.axis or last.value or last.steps)

    def lanes(self, blocks: dict[Axis, int]) -> int:
        """Block of the last dim of extent 1 that this access needs under `blocks`; 0 where it needs none.

        Triton wants a last stride of 1 and a last block of at least 16 bytes. An access whose own last dim
        cannot give that gets one more dim, whose padding is clipped. (A last dim that nothing drives serves
        as that dim.)
        """
        last = self.dims[-1] if self.dims else None
        wide = last is not None and last.axis is not None and blocks[last.axis] >= self.min_block
        return 0 if last is not None and last.stride == 1 and wide else self.min_block


def _joined(dims: list[Dim]) -> Dim:
    """One dim that walks all of `dims`, element by element."""
    stride = math.gcd(*(dim.stride for dim in dims))
    steps = tuple((dim.axis, dim.stride // stride) for dim in dims if dim.axis)
    start = sum(dim.start * dim.stride // stride for dim in dims)
    extent = 1 + sum((dim.extent - 1) * dim.stride // stride for dim in dims)
    return Dim(stride, start=start, extent=extent, steps=steps)


def accesses_of(
    kernel: Kernel, axes: tuple[Axis, ...], memory: dict[str, str], numel: dict[str, int]
) -> tuple[Access, ...]:
    """Every load and store of the kernel as a descriptor access, in statement order.

    `memory` gives the Triton dtype of each pointer's elements, `numel` how many elements lie behind it.
    Raises OutsideBuffer or RankTooHigh.
    """
    intervals = Intervals.of(kernel, axes)
    found = []
    for statement in kernel.body:
        if isinstance(statement, Load | Store):
            mask = statement.mask if isinstance(statement, Load) else None
            limits, bounds = guards(kernel, axes, mask), value_bounds(kernel, axes, mask)
            dtype, elements = memory[statement.param], numel[statement.param]
            found.append(_access(statement, axes, dtype, elements, intervals, limits, bounds))
    return tuple(found)


def forced_single(
    accesses: tuple[Access, ...], kernel: Kernel, varies: dict[str, frozenset[Axis]]
) -> frozenset[Axis]:
    """Axes whose block must be 1: reversed ones, and those along which an index value varies."""
    single: set[Axis] = set()
    for access in accesses:
        for dim in access.dims:
            if (dim.reverse or dim.low is not None) and dim.axis is not None:
                single.add(dim.axis)
            if dim.value is not None:
                single |= varies[dim.value]
    return frozenset(single)


def _access(
    statement: Load | Store,
    axes: tuple[Axis, ...],
    dtype: str,
    numel: int,
    intervals: Intervals,
    limits: dict[Axis, Interval],
    bounds: dict[str, Bounds],
) -> Access:
    by_symbol = {axis.symbol: axis for axis in axes}
    constant, terms = statement.index.as_coeff_Add()
    dims: list[Dim] = []
    below: dict[str, int] = {}
    offset = int(constant)
    for term in sympy.Add.make_args(terms):
        if term == 0:
            continue
        coefficient, symbol = term.as_coeff_Mul()
        if not symbol.is_Symbol or not coefficient.is_Integer:
            raise UnsupportedSyntax(what=f"the index term `{term}`", line=statement.line)
        stride, axis = int(coefficient), by_symbol.get(symbol)
        if axis is None:
            low, high = bounds.get(symbol.name) or intervals.operand(symbol.name) or (0, -1)
            below[symbol.name] = min(low, 0)
            offset += stride * below[symbol.name]
            dims.append(Dim(stride, value=symbol.name, extent=high + 1))
            continue
        interval = limits.get(axis) or Interval(0, axis.extent)
        first = interval.low if axis in limits else None
        offset += stride * (interval.high - 1 if stride < 0 else interval.low)
        extent = interval.high - interval.low
        dims.append(Dim(abs(stride), axis=axis, extent=extent, reverse=stride < 0, low=first))
    order = {axis: position for position, axis in enumerate(axes)}
    dims.sort(key=lambda d: (-d.stride, order[d.axis] if d.axis else -1))
    dims = [replace(d, start=d.start - below.get(d.value or "", 0)) for d in _place(dims, offset)]
    dims = _bound_values(dims, numel)
    _check_bounds(statement, dims, offset, numel)
    if len(dims) > MAX_RANK and sum(not dim.plain for dim in dims) + 2 > MAX_RANK:
        raise RankTooHigh(param=statement.param, rank=len(dims), limit=MAX_RANK, line=statement.line)
    return Access(statement, tuple(dims), dtype)


def _place(dims: list[Dim], offset: int) -> list[Dim]:
    """Spread a constant offset over the dims, widest stride first; what is left becomes a dim of stride 1."""
    placed: list[Dim] = []
    for dim in dims:
        start, offset = divmod(offset, dim.stride) if offset >= 0 else (0, offset)
        placed.append(replace(dim, start=start))
    if offset > 0:
        placed.append(Dim(1, start=offset))
    return placed


def _bound_values(dims: list[Dim], numel: int) -> list[Dim]:
    """An index value stays inside the buffer; where nothing bounds it, inside the next wider dim as well."""
    bounded: list[Dim] = []
    for position, dim in enumerate(dims):
        if dim.value is not None and dim.extent > 0:
            dim = replace(dim, extent=min(dim.extent, max((numel - 1) // dim.stride + 1 - dim.start, 1)))
        elif dim.value is not None:
            wider = [d.stride for d in dims[:position] if d.stride > dim.stride]
            limit = wider[-1] if wider else numel
            dim = replace(dim, extent=max(limit // dim.stride, 1) - dim.start)
        bounded.append(dim)
    return bounded


def _check_bounds(statement: Load | Store, dims: list[Dim], offset: int, numel: int) -> None:
    last = sum(dim.stride * (dim.size - 1) for dim in dims)
    direct = all(dim.value is None for dim in dims)
    if offset < 0 or (direct and last >= numel):
        raise OutsideBuffer(param=statement.param, first=offset, last=last, numel=numel, line=statement.line)
