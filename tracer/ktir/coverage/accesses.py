"""Which elements a function reads and writes, over all cores and loop iterations, without running its
arithmetic.

Accesses are kept as boxes of the views they go through. Where all accesses of an argument go through
views of one layout, questions are answered on the grid that the boxes' edges cut out; only mixed layouts
and indirect accesses need a map of single elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.affine import Box, order_points, set_box, set_points
from tracer.ktir.diagnostics import KtirError, at
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.access import addresses_of, check_box, coordinates
from tracer.ktir.simulator.arguments import ArgumentBuffer
from tracer.ktir.simulator.compile import compile_function
from tracer.ktir.simulator.distributed import owners, pieces
from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.indirect import held
from tracer.ktir.simulator.memory import UNBOUNDED, Buffer, DistributedView, Pointer, View
from tracer.ktir.simulator.provenance import viewed_arguments
from tracer.ktir.simulator.schedule import run_cores
from tracer.ktir.simulator.session import MAX_STEPS, Session
from tracer.ktir.simulator.traceable import Traceable
from tracer.ktir.slices import addressing
from tracer.target import SPYRE

Layout = tuple[tuple[int, int], ...]
Boxes = list[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass(frozen=True)
class Missing:
    """Elements that a question found: how many, and the coordinates of the first. False where there are
    none.
    """

    count: int
    first: tuple[int, ...] | None

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass
class AccessMap:
    """Accesses to one argument: boxes by view geometry (offset, sizes, strides), and single
    element indices.
    """

    boxes: dict[tuple[int, tuple[int, ...], tuple[int, ...]], Boxes] = field(default_factory=dict)
    points: list[np.ndarray] = field(default_factory=list)
    element_bytes: int = 0

    def touched(self) -> int:
        """Number of distinct elements accessed."""
        if not self.points and len(self.boxes) == 1:
            ((_, sizes, strides),) = self.boxes
            if min(strides, default=0) > 0:
                return _product(sizes) - self._cells_missing(sizes)
        return int((self.element_counts(0) > 0).sum())

    def _cells_missing(self, sizes: tuple[int, ...]) -> int:
        ((offset, _, strides),) = self.boxes
        shifted = AccessMap({(0, sizes, strides): self.boxes[(offset, sizes, strides)]})
        return shifted.missing(sizes, strides).count

    def counts(
        self, shape: Sequence[int], stride: Sequence[int]
    ) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """Accesses per cell and the cells' extents per axis, where one view layout equals `shape` and
        `stride`.
        """
        if self.points or len(self.boxes) != 1:
            return None
        ((offset, sizes, strides),) = self.boxes
        if offset != 0 or coalesced(sizes, strides) != coalesced(shape, stride):
            return None
        boxes = self.boxes[(offset, sizes, strides)]
        cuts = [
            np.unique([0, n, *(b[0][a] for b in boxes), *(b[0][a] + b[1][a] for b in boxes)])
            for a, n in enumerate(sizes)
        ]
        if not cuts:
            return np.asarray(len(boxes)), cuts
        edges = []
        for axis, c in enumerate(cuts):
            begin, extent = (np.asarray([box[i][axis] for box in boxes]) for i in (0, 1))
            edges.append((np.searchsorted(c, begin), np.searchsorted(c, begin + extent)))
        # Every box adds 1 from its lowest corner on, and takes it back beyond its far sides.
        cells = np.zeros([len(c) for c in cuts], dtype=np.int32)
        for corner in product((0, 1), repeat=len(cuts)):
            places = tuple(edge[far] for edge, far in zip(edges, corner, strict=True))
            np.add.at(cells, places, (-1) ** sum(corner))
        for axis in range(len(cuts)):
            cells = np.cumsum(cells, axis=axis)
        return cells[(slice(-1),) * len(cuts)], cuts

    def element_counts(self, numel: int) -> Tensor:
        """Accesses per element of the memory, for any mixture of layouts."""
        out = torch.zeros(max(numel, self.reach()), dtype=torch.int16)
        for (offset, _, strides), boxes in self.boxes.items():
            for lo, extent in boxes:
                start = offset + sum(b * s for b, s in zip(lo, strides, strict=True))
                _bump(out, start, extent, strides)
        for addresses in self.points:
            out.index_add_(
                0, torch.from_numpy(np.array(addresses)), torch.ones(len(addresses), dtype=torch.int16)
            )
        return out

    def reach(self) -> int:
        """One more than the highest element index accessed."""
        top = 0
        for (offset, _, strides), boxes in self.boxes.items():
            for lo, extent in boxes:
                top = max(
                    top,
                    1
                    + offset
                    + sum(
                        (b + max(0, (n - 1) if s > 0 else 0)) * s
                        for b, n, s in zip(lo, extent, strides, strict=True)
                    ),
                )
        return max([top, *(int(p.max()) + 1 for p in self.points if len(p))])

    def missing(self, shape: Sequence[int], stride: Sequence[int], *, wanted: str = "zero") -> Missing:
        """Elements of a tensor of this shape and stride that have no access (`zero`) or several (`many`)."""
        size = int(np.prod(shape, dtype=np.int64))
        if size == 0:
            return Missing(0, None)
        if not self.boxes and not self.points:
            return Missing(size if wanted == "zero" else 0, (0,) * len(shape) if wanted == "zero" else None)
        if (found := self.counts(shape, stride)) is not None:
            cells, cuts = found
            bad = cells == 0 if wanted == "zero" else cells > 1
            if not bad.any():
                return Missing(0, None)
            volume = np.ones([1] * cells.ndim, dtype=np.int64)
            for axis, c in enumerate(cuts):
                volume = volume * np.diff(c).reshape([-1 if i == axis else 1 for i in range(cells.ndim)])
            ((_, _, strides),) = self.boxes
            cell = np.argwhere(bad)[0]
            address = sum(int(cuts[a][i]) * strides[a] for a, i in enumerate(cell))
            return Missing(int((volume * bad).sum()), coordinates(address, shape, stride))
        span = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        counts = torch.as_strided(self.element_counts(span), tuple(shape), tuple(stride))
        bad_elements = counts == 0 if wanted == "zero" else counts > 1
        count = int(bad_elements.sum())
        first = tuple(int(i) for i in torch.nonzero(bad_elements)[0]) if count else None
        return Missing(count, first)


def sticks(view: View, lo: Sequence[int], extent: Sequence[int], stick: int) -> int:
    """Distinct sticks that a box of a view touches; buffers begin on a stick."""
    size = view.buffer.data.element_size()
    axes = sorted((s, n) for s, n in zip(view.strides, extent, strict=True) if n > 1 and s)
    run = 1
    while axes and axes[0][0] == run:
        run *= axes.pop(0)[1]
    starts = np.asarray([view.address(lo)], dtype=np.int64)
    for stride, count in axes:
        starts = (starts[:, None] + np.arange(count) * stride).reshape(-1)
    starts = np.sort(starts)
    first, last = starts * size // stick, (starts + run - 1) * size // stick
    if len(first) == 1:
        return int(last[0] - first[0]) + 1
    seen = np.concatenate([[-1], np.maximum.accumulate(last)[:-1]])
    return int(np.maximum(0, last - np.maximum(first, seen + 1) + 1).sum())


def _product(values: Sequence[int]) -> int:
    return int(np.prod(values, dtype=np.int64))


def _bump(out: Tensor, start: int, shape: Sequence[int], strides: Sequence[int]) -> None:
    flipped = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if s < 0)
    kept = [(n, abs(s)) for n, s in zip(shape, strides, strict=True) if s]
    torch.as_strided(out, [n for n, _ in kept], [s for _, s in kept], start + flipped).add_(1)


def coalesced(shape: Sequence[int], stride: Sequence[int]) -> Layout:
    """(extent, stride) pairs, outermost first, unit axes dropped and contiguous neighbours merged."""
    pairs = sorted(((s, n) for n, s in zip(shape, stride, strict=True) if n != 1), reverse=True)
    out: list[tuple[int, int]] = []
    for s, n in pairs:
        if out and out[-1][1] == s * n:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return tuple(out)


@dataclass
class Coverage:
    """Reads and writes by argument position. Shapes and strides are those of the argument's tensor, in
    elements.
    """

    reads: dict[int, AccessMap] = field(default_factory=dict)
    writes: dict[int, AccessMap] = field(default_factory=dict)

    def uncovered_writes(self, arg: int, shape: Sequence[int], stride: Sequence[int]) -> Missing:
        """Elements that nobody writes."""
        return self.writes.get(arg, AccessMap()).missing(shape, stride)

    def repeated_writes(self, arg: int, shape: Sequence[int], stride: Sequence[int]) -> Missing:
        """Elements written more than once, by one core or several."""
        return self.writes.get(arg, AccessMap()).missing(shape, stride, wanted="many")

    def unread(self, arg: int, shape: Sequence[int], stride: Sequence[int]) -> Missing:
        """Elements that nobody reads."""
        return self.reads.get(arg, AccessMap()).missing(shape, stride)


class Tracer(Session):
    """A session that records accesses instead of making them."""

    def __init__(
        self,
        program: Any,
        grid: tuple[int, int, int],
        names: Sequence[str],
        *,
        max_steps: int = MAX_STEPS,
    ):
        super().__init__(program, grid, SPYRE, sanitize=False, max_steps=max_steps)
        self.positions = {name: i for i, name in enumerate(names)}
        self.coverage = Coverage()
        self._reads: set[Any] = set()
        self._anywhere: Buffer | None = None
        self._sets: dict[tuple[ktdp.ConstructAccessTileOp, tuple[int, ...]], Box | None] = {}

    def typed(self, buffer: Buffer, el: Element) -> Buffer:
        """As in `Session`, for memory of any size too."""
        if buffer.numel != UNBOUNDED:
            return super().typed(buffer, el)
        key = (id(buffer), el.name)
        if key not in self._typed:
            other = Buffer(buffer.name, torch.empty(0, dtype=el.dtype))
            other.numel = UNBOUNDED
            self._typed[key] = other
        return self._typed[key]

    def global_pointer(self, address: int, el: Element) -> Pointer:
        """As in `Session`, for whatever memory the caller has there."""
        if self._anywhere is None:
            self._anywhere = Buffer("memory", torch.empty(0))
            self._anywhere.numel = UNBOUNDED
        return Pointer(self.typed(self._anywhere, el), address)

    def trace(self, op: Operation, tile: Any) -> None:
        """Record the access of a load or store."""
        store = isinstance(op, ktdp.StoreOp)
        owner = op.operands[-1 if store else 0].owner
        if not isinstance(owner, ktdp.ConstructAccessTileOp):
            for part, addresses in held(*tile):
                self._points(op, part, addresses, store)
            return
        view, symbols, *subscripts = tile
        points = owner.access_tile_set.data
        box = self.box_of(owner, symbols)
        if isinstance(view, Tensor) or view is None:
            return
        if box is None:
            rows = order_points(set_points(points, tuple(symbols)), owner.access_tile_order.data)
            rows = rows + np.asarray(subscripts, dtype=np.int64)
            if isinstance(view, DistributedView):
                for part, _, local in owners(view, rows):
                    self._points(op, part, addresses_of(part, local), store)
            else:
                self._points(op, view, addresses_of(view, rows), store)
            return
        lo = tuple(s + b for s, b in zip(subscripts, box.lo, strict=True))
        if isinstance(view, DistributedView):
            for piece in pieces(view, lo, box.shape):
                if piece.rows is None:
                    self._box(op, piece.part, piece.lo, piece.shape, store)
                else:
                    self._points(op, piece.part, addresses_of(piece.part, piece.rows), store)
            return
        check_box(view, lo, box.shape)
        self._box(op, view, lo, box.shape, store)

    def box_of(self, tile: ktdp.ConstructAccessTileOp, symbols: Sequence[int]) -> Box | None:
        """The set of a tile as a box; None where it is none."""
        key = tile, tuple(symbols)
        if key not in self._sets:
            self._sets[key] = set_box(tile.access_tile_set.data, key[1])
        return self._sets[key]

    def _map(self, view: View, store: bool) -> AccessMap | None:
        position = self.positions.get(view.buffer.name)
        if position is None or view.buffer.core is not None:
            return None
        side = self.coverage.writes if store else self.coverage.reads
        size = view.buffer.data.element_size()
        return side.setdefault(position, AccessMap(element_bytes=size))

    def marked(self, op: Operation) -> None:
        """Hook: an operation that was asked for is next."""

    def moved_elements(self, op: Operation, sticks: int) -> None:
        """Hook: an access of the current core moves this many sticks."""

    stick = 0
    """Bytes of a stick, where sticks are to be counted."""

    def indexed(self, op: Operation | None, view: View, flat: np.ndarray) -> None:
        """Count the sticks of an index tensor's elements."""
        if self.stick and op is not None and view.buffer.core is None:
            self.moved_elements(op, len(np.unique(flat * view.buffer.data.element_size() // self.stick)))

    def partners(self, op: Operation) -> tuple[int, int] | None:
        """Ring hops and folds of the current core in a collective: one for every other producer of its
        group; None where it takes no part.
        """
        assert isinstance(op, ktdp.InterTileReduceOp)
        produce = op.future.owner
        assert isinstance(produce, ktdp.InterTileProduceOp)
        members, consumers = self.memberships(produce), self.consumers(op)
        group = consumers.get(self.core, members.get(self.core))
        if group is None:
            return None
        others = max(sum(g == group for g in members.values()) - 1, 0)
        return others, others if self.core in consumers else 0

    def _box(
        self, op: Operation, view: View, lo: tuple[int, ...], extent: tuple[int, ...], store: bool
    ) -> None:
        if self.stick and view.buffer.core is None:
            self.moved_elements(op, sticks(view, lo, extent, self.stick))
        found = self._map(view, store)
        if found is None or 0 in extent:
            return
        geometry = (view.offset, view.sizes, view.strides)
        if not store:
            key = (view.buffer.name, geometry, lo, extent)
            if key in self._reads:
                return
            self._reads.add(key)
        found.boxes.setdefault(geometry, []).append((lo, extent))

    def _points(self, op: Operation, view: View, addresses: np.ndarray, store: bool) -> None:
        self.indexed(op, view, addresses)
        found = self._map(view, store)
        if found is not None:
            found.points.append(addresses)


def coverage(
    function: Traceable,
    args: Sequence[Any] | None = None,
    *,
    grid: Sequence[int] | None = None,
    max_steps: int = MAX_STEPS,
) -> Coverage:
    """Trace the accesses of every core of a function.

    `args` and `max_steps` are as for `Function.run`; None, as a whole or for one pointer, stands for memory
    of any size. Tensors are needed only where addresses depend on their elements. Raises KtirError KT304
    where an access depends on data that is not given, and the KT2xx of an access outside its view.
    """
    return traced(function, args, Tracer, grid=grid, max_steps=max_steps).coverage


AnyTracer = TypeVar("AnyTracer", bound=Tracer)


def traced(
    function: Traceable,
    args: Sequence[Any] | None,
    kind: Callable[..., AnyTracer],
    *,
    grid: Sequence[int] | None,
    max_steps: int,
    marks: Set[Operation] = frozenset(),
) -> AnyTracer:
    """The tracer after it ran every core, as for `coverage`; it is told of `marks` before they run."""
    kept = addressing(function.op)
    program = compile_function(function.module.module, function.op, keep=kept, marks=marks)
    tracer = kind(program, function.on_grid(grid), function.argument_names, max_steps=max_steps)
    run_cores(tracer, passed_arguments(function, args))
    return tracer


def passed_arguments(function: Traceable, args: Sequence[Any] | None) -> list[Any]:
    """Runtime values for a trace: pointers to memory of any size where no tensor is given."""
    parameters = function.op.body.block.args
    given = list(args) if args is not None else [None] * len(parameters)
    if len(given) != len(parameters):
        raise KtirError(
            [at(function.op, "KT216", f"{len(parameters)} arguments are needed, {len(given)} given")]
        )
    pointers = set(viewed_arguments(function.op))
    passed: list[Any] = []
    for i, (name, value) in enumerate(zip(function.argument_names, given, strict=True)):
        if value is None:
            if i not in pointers:
                raise KtirError([at(function.op, "KT216", f"argument {name} is a number; pass its value")])
            buffer = Buffer(name, torch.empty(0))
            buffer.numel = UNBOUNDED
            passed.append(Pointer(buffer))
        elif isinstance(value, Tensor | np.ndarray):
            held = ArgumentBuffer(name, torch.as_tensor(value), copy=False)
            passed.append(Pointer(held.buffer))
        else:
            passed.append(function.number(value, parameters[i].type, name))
    return passed
