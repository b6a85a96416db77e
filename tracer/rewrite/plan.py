"""Block sizes and core division: a cost model over every legal tiling.

All candidate tilings are costed at once as NumPy arrays, one element per candidate. Cost is cycles of the
busiest core: memory traffic at the core's share of the bandwidth, arithmetic on the vector and systolic
units, and a fixed price per transfer. Constants are those of the public simulator's latency model.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from tracer.rewrite.access import MAX_RANK, Access
from tracer.rewrite.axes import MAX_EXTENT, Axis
from tracer.rewrite.contract import Contraction, contraction
from tracer.rewrite.errors import NoPlan, SplitReduction, SteppedReduction
from tracer.rewrite.ir import Compute, Index, Kernel, Load, Reduce, Scan, Statement, Store
from tracer.rewrite.spans import neighbours_reach, wide_accesses
from tracer.rewrite.types import BYTES, is_float
from tracer.target import SpyreTarget

Sizes: TypeAlias = "np.ndarray"

TRANSFER_CYCLES = 64
"""Price of starting one transfer: keeps tiles from becoming arbitrarily small."""
RAGGED_PENALTY = 0.03
"""A ragged axis costs a second, narrower copy of the tile body in KTIR."""
MAX_TILE_ELEMENTS = 1 << 20
"""Triton's limit on the elements of one tensor."""
MAX_BLOCK = 1 << 14
MAX_CANDIDATES = 60_000
MIN_CONTRACTION_BLOCK = 16
"""Least K block that `tl.dot` takes for 16-bit operands."""
MAX_CONTRACTION_BLOCK = 512
"""Above this a wider K block saves no traffic; it only fills the scratchpad (and a GPU's shared memory)."""
PASSING = 2
"""Copies that the lowered form of one statement holds for a moment: two operands made of one shape."""
PASSING_SCAN = 3
"""A scan holds its running result as well."""
PASSING_INTEGER = 3
"""Integer arithmetic holds the sum as well before it narrows it, all in 32 bits or more."""
WIDEST_INTEGER = 8
"""Bytes of the integers by which Triton sums and numbers elements."""


@dataclass(frozen=True)
class Tiling:
    """The chosen blocks (powers of two) and what they cost; `lx_bytes` bounds what lowering allocates.

    Sizes are in bytes, cost in cycles. `neighbours` says that each core takes tiles that follow each other,
    not every CORES-th.
    """

    blocks: dict[Axis, int]
    tiles: int
    lx_bytes: int
    hbm_bytes: int
    cycles: int
    looped: bool
    neighbours: bool
    reasons: tuple[str, ...]


def plan(
    kernel: Kernel,
    axes: tuple[Axis, ...],
    accesses: tuple[Access, ...],
    varies: dict[str, frozenset[Axis]],
    single: frozenset[Axis],
    target: SpyreTarget,
    fixed: dict[str, int] | None = None,
) -> Tiling:
    """The cheapest legal tiling; with `fixed` (axis name -> block) the tiling it names.

    Raises NoPlan where nothing fits the scratchpad with room for double buffering, SteppedReduction where a
    reduction that must see its axis whole can read it only element by element, SplitReduction where it would
    have to see several axes as one.
    """
    for axis in axes:
        if axis.extent > MAX_EXTENT:
            raise NoPlan(reason=f"{axis.name} has {axis.extent} elements, and a coordinate has 32 bits")
    model = _Model(kernel, axes, accesses, varies, target)
    if model.whole_only and len(model.reduced) > 1:
        raise SplitReduction(axes=" and ".join(axis.name for axis in model.reduced))
    loops = any(a.reduced for a in axes) and not model.whole_only
    for whole in (True, False) if loops else (True,):
        options = [_options(axis, axes, single, model, whole, fixed) for axis in axes]
        if any(not o for o in options):
            continue
        blocks = _grid(axes, options)
        legal = model.legal(blocks)
        if legal.any():
            near = legal & model.within_reach(blocks)
            legal = near if near.any() else legal
            cost = np.where(legal, model.cycles(blocks), np.inf)
            return model.report(blocks, _first_best(cost, blocks, axes), looped=bool(model.dots) or not whole)
    stepped = [axis.name for axis in axes if axis.reduced and axis in single]
    if stepped and model.whole_only:
        raise SteppedReduction(axis=stepped[0])
    raise NoPlan(reason=f"the smallest tile of `{kernel.name}` exceeds half of the scratchpad")


def power_of_two_at_least(number: int) -> int:
    """The least power of two that is no less than `number`."""
    return 1 << max(number - 1, 0).bit_length()


def counted(number: int, noun: str) -> str:
    """`1 tile`, `2 tiles`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _options(
    axis: Axis,
    axes: tuple[Axis, ...],
    single: frozenset[Axis],
    model: _Model,
    whole: bool,
    fixed: dict[str, int] | None,
) -> list[int]:
    cover = power_of_two_at_least(axis.extent)
    if fixed is not None:
        block = fixed.get(axis.name, 1)
        if axis.reduced and not model.dots and whole:
            return [block] if block >= axis.extent else []
        return [block]
    if axis in single:
        alone = whole and axis.reduced and not model.dots and axis.extent > 1
        return [] if alone else [1]
    powers = [1 << e for e in range(cover.bit_length()) if 1 << e <= MAX_BLOCK]
    if not axis.reduced:
        return powers
    if model.dots:
        wide = [p for p in powers if MIN_CONTRACTION_BLOCK <= p <= MAX_CONTRACTION_BLOCK]
        alone = sum(a.reduced for a in axes) == 1
        return ([] if alone else [1]) + (wide or [MIN_CONTRACTION_BLOCK])
    return [cover] if whole else powers[3:] or powers


def _grid(axes: tuple[Axis, ...], options: list[list[int]]) -> dict[Axis, Sizes]:
    """The product of the options, thinned evenly (small blocks first) until it is affordable."""
    options = [list(o) for o in options]
    while math.prod(len(o) for o in options) > MAX_CANDIDATES:
        longest = max(range(len(options)), key=lambda i: len(options[i]))
        options[longest] = [
            o for i, o in enumerate(options[longest]) if i % 2 == (len(options[longest]) - 1) % 2
        ]
    rows = np.array(list(itertools.product(*options)), dtype=np.int64)
    return {axis: rows[:, i] for i, axis in enumerate(axes)}


def _first_best(cost: Sizes, blocks: dict[Axis, Sizes], axes: tuple[Axis, ...]) -> int:
    """The cheapest candidate; among equals the one with the widest innermost blocks."""
    best = np.flatnonzero(cost <= cost.min() * (1 + 1e-9))
    keys = [[-int(blocks[axis][i]) for axis in reversed(axes)] for i in best]
    return int(best[min(range(len(keys)), key=keys.__getitem__)])


def _wide(role: tuple[Axis, ...], blocks: dict[Axis, Sizes]) -> Sizes:
    """How many axes of a contraction role have a block above 1."""
    return sum(((blocks[a] > 1).astype(np.int64) for a in role), np.zeros_like(next(iter(blocks.values()))))


class _Model:
    def __init__(
        self, kernel: Kernel, axes: tuple[Axis, ...], accesses: tuple[Access, ...],
        varies: dict[str, frozenset[Axis]], target: SpyreTarget,
    ) -> None:  # fmt: skip
        self.kernel, self.axes, self.accesses, self.varies, self.target = (
            kernel,
            axes,
            accesses,
            varies,
            target,
        )
        self.dtypes = {s.name: s.dtype for s in kernel.body if not isinstance(s, Store)}
        self.reduced = [a for a in axes if a.reduced]
        self.parallel = [a for a in axes if not a.reduced]
        self.wide = wide_accesses(accesses, target)
        self.dots: list[Contraction] = [
            contraction(s, varies, axes) for s in kernel.body if isinstance(s, Reduce) and s.kind == "dot"
        ]
        self.whole_only = any(
            isinstance(s, Scan) or (isinstance(s, Reduce) and s.kind in ("argmax", "argmin"))
            for s in kernel.body
        )

    def exact(self, axis: Axis, blocks: dict[Axis, Sizes]) -> Sizes:
        """Elements of one tile along `axis`: KTIR tiles are never wider than the extent."""
        return np.minimum(blocks[axis], axis.extent)

    def elements(self, axes: frozenset[Axis] | tuple[Axis, ...], blocks: dict[Axis, Sizes]) -> Sizes:
        total = np.ones_like(next(iter(blocks.values())))
        for axis in axes:
            total = total * self.exact(axis, blocks)
        return total

    def padded(self, access: Access, blocks: dict[Axis, Sizes]) -> Sizes:
        total = np.ones_like(next(iter(blocks.values())))
        for axis in access.axes:
            total = total * blocks[axis]
        return total

    # Legality

    def legal(self, blocks: dict[Axis, Sizes]) -> Sizes:
        named, peak = self.live_bytes(blocks)
        ok = (named <= self.target.lx_bytes // 2) & (peak <= self.target.lx_bytes)
        for access in self.accesses:
            ok &= self.padded(access, blocks) * 8 <= MAX_TILE_ELEMENTS * 8
            ok &= self.rank(access, blocks) <= MAX_RANK
        for statement in self.kernel.body:
            if statement.name:
                padded = np.ones_like(next(iter(blocks.values())))
                for axis in self.varies[statement.name]:
                    padded = padded * blocks[axis]
                ok &= padded <= MAX_TILE_ELEMENTS
        for dot in self.dots:
            for role in (dot.m, dot.n, dot.batch):
                ok &= _wide(role, blocks) <= 1
            ok &= _wide(dot.k, blocks) == 1
        return ok

    def within_reach(self, blocks: dict[Axis, Sizes]) -> Sizes:
        """Whether neighbouring tiles keep each core within its address span of every buffer."""
        ok = next(iter(blocks.values())) > 0
        for access in self.wide:
            ok &= self.reach(access, blocks) <= self.target.span_bytes
        return ok

    def reach(self, access: Access, blocks: dict[Axis, Sizes]) -> Sizes:
        return neighbours_reach(access, self.parallel, blocks, self.target.cores)

    def rank(self, access: Access, blocks: dict[Axis, Sizes]) -> Sizes:
        """Descriptor dims that the access needs once dims of block 1 are joined (see `Access.settled`)."""
        zero = np.zeros_like(next(iter(blocks.values())))
        wide, lanes = zero, zero + (not access.open_last)
        for dim in access.dims:
            if dim.axis is not None and dim.stride == 1:
                lanes = np.where(blocks[dim.axis] >= access.min_block, 0, lanes)
            wide = wide + (blocks[dim.axis] > 1 if dim.axis is not None and dim.plain else 1)
        full = zero + len(access.dims)
        joined = wide + (wide < full)
        return np.where(full + lanes <= MAX_RANK, full, joined) + lanes

    def live_bytes(self, blocks: dict[Axis, Sizes]) -> tuple[Sizes, Sizes]:
        """Peak bytes of named values alive at once, and the same with what lowering adds for a moment.

        Each statement's operands and result are counted together. Where a reduction is looped, its
        accumulators live as long as the loop.
        """
        last: dict[str, int] = {}
        for position, statement in enumerate(self.kernel.body):
            for operand in statement.operands:
                if isinstance(operand, str):
                    last[operand] = position
        size = {
            s.name: self.elements(self.varies[s.name], blocks) * BYTES[s.dtype]
            for s in self.kernel.body
            if not isinstance(s, Store)
        }
        zero = np.zeros_like(next(iter(blocks.values())))
        carried = sum((size[s.name] for s in self.kernel.body if isinstance(s, Reduce)), zero)
        live: dict[str, Sizes] = {}
        named, peak = zero, zero
        for position, statement in enumerate(self.kernel.body):
            scratch = zero
            if statement.name:
                live[statement.name] = size[statement.name]
            if isinstance(statement, Compute):
                # an operand that is broadcast is materialised at the result's shape
                for operand in statement.args:
                    if isinstance(operand, str) and self.varies[operand] != self.varies[statement.name]:
                        scratch = (
                            scratch
                            + self.elements(self.varies[statement.name], blocks) * BYTES[statement.dtype]
                        )
            elif isinstance(statement, Reduce) and statement.kind == "dot":
                scratch = scratch + size[str(statement.args[1])]  # the transposed second operand
            held = sum(live.values(), zero)
            named = np.maximum(named, held + scratch)
            peak = np.maximum(peak, held + carried + np.maximum(scratch, self.passing(statement, blocks)))
            live = {name: tile for name, tile in live.items() if last.get(name, -1) > position}
        return named, peak

    def passing(self, statement: Statement, blocks: dict[Axis, Sizes]) -> Sizes:
        """Bound of the bytes that the lowered form of one statement holds besides its operands and result.

        These are copies over all axes of the statement, in the widest dtype of the statement and of what it
        passes through: broadcast or permuted operands, widened integers, element numbers.
        """
        names = [o for o in (*statement.operands, statement.name) if isinstance(o, str) and o]
        dtypes = {self.dtypes[name] for name in names}
        if isinstance(statement, Reduce) and statement.kind == "dot":
            return self.elements(self.varies[str(statement.args[1])], blocks) * max(BYTES[d] for d in dtypes)
        axes = frozenset[Axis]().union(*(self.varies[name] for name in names))
        spread = isinstance(statement, Reduce) and not axes.issuperset(self.reduced)
        if spread:
            axes = axes.union(self.reduced)
        if isinstance(statement, Load | Store):
            axes = axes.union(axis for axis in self.axes if statement.index.has(axis.symbol))
        plain = isinstance(statement, Load | Store) and "int1" not in dtypes
        if plain and not (isinstance(statement, Load) and statement.mask):
            return self.elements(axes, blocks) * max([BYTES[d] for d in dtypes], default=1)  # permuted
        width = max([BYTES[d] for d in dtypes], default=1)
        if isinstance(statement, Reduce) and is_float(statement.dtype) and not spread:
            # The operand once more, permuted; what is left after one of several axes is smaller.
            operand = statement.args[0]
            return self.elements(axes, blocks) * BYTES[self.dtypes.get(str(operand), statement.dtype)]
        if isinstance(statement, Index | Reduce) or any(d.startswith("uint") for d in dtypes):
            width = WIDEST_INTEGER  # Triton sums and numbers elements in up to 64 bits
        copies = PASSING_SCAN if isinstance(statement, Scan) else PASSING
        if isinstance(statement, Compute) and statement.dtype != "int1" and not is_float(statement.dtype):
            width, copies = max(width, BYTES["int32"]), PASSING_INTEGER
        return self.elements(axes, blocks) * width * copies

    # Cost

    def trips(self, blocks: dict[Axis, Sizes]) -> Sizes:
        total = np.ones_like(next(iter(blocks.values())))
        for axis in self.reduced:
            total = total * -(-axis.extent // blocks[axis])
        return total

    def tiles(self, blocks: dict[Axis, Sizes]) -> Sizes:
        total = np.ones_like(next(iter(blocks.values())))
        for axis in self.axes:
            if not axis.reduced:
                total = total * -(-axis.extent // blocks[axis])
        return total

    def traffic(self, blocks: dict[Axis, Sizes]) -> tuple[Sizes, Sizes]:
        """Bytes in whole sticks, and transfers, of one parallel tile."""
        stick = self.target.stick_bytes
        total = np.zeros_like(next(iter(blocks.values())))
        transfers = total
        trips = self.trips(blocks)
        for access in self.accesses:
            elements = self.elements(access.axes, blocks)
            run = self.run(access, blocks)
            sticks = (elements // np.maximum(run, 1)) * -(-run * access.bytes // stick)
            repeats = np.where(any(a.reduced for a in access.axes), trips, 1)
            total = total + sticks * stick * repeats
            transfers = transfers + repeats
        return total, transfers

    def run(self, access: Access, blocks: dict[Axis, Sizes]) -> Sizes:
        """Elements of one tile that follow each other in memory."""
        run = np.ones_like(next(iter(blocks.values())))
        whole = run > 0
        expected = 1
        for dim in sorted(access.dims, key=lambda d: (d.stride, -d.extent)):
            if dim.axis is None or dim.stride != expected:
                break
            run = np.where(whole, run * self.exact(dim.axis, blocks), run)
            whole &= blocks[dim.axis] >= dim.axis.extent
            expected = dim.stride * dim.axis.extent
        return run

    def arithmetic(self, blocks: dict[Axis, Sizes]) -> Sizes:
        """Cycles of one parallel tile on the vector and systolic units."""
        trips = self.trips(blocks)
        cycles = np.zeros(len(trips), dtype=np.float64)
        for statement in self.kernel.body:
            if isinstance(statement, Compute | Scan | Index | Reduce):
                touched = frozenset().union(
                    *(self.varies[a] for a in statement.operands if isinstance(a, str))
                )
                touched |= self.varies.get(statement.name, frozenset())
                elements = self.elements(touched, blocks)
                if isinstance(statement, Reduce) and statement.kind == "dot":
                    cycles = cycles + trips * elements * 2 / self.target.systolic_flop_per_cycle
                else:
                    repeats = trips if any(a.reduced for a in touched) else 1
                    cycles = cycles + repeats * -(-elements // self.target.simd_elements_per_cycle)
        return cycles

    def cycles(self, blocks: dict[Axis, Sizes]) -> Sizes:
        per_core = -(-self.tiles(blocks) // self.target.cores)
        moved, transfers = self.traffic(blocks)
        memory = moved / (self.target.memory_bytes_per_cycle / self.target.cores)
        tile = memory + self.arithmetic(blocks) + transfers * TRANSFER_CYCLES
        ragged = sum(
            ((blocks[a] < a.extent) & (a.extent % np.maximum(blocks[a], 1) != 0)).astype(np.float64)
            for a in self.axes
        )
        return per_core * tile * (1 + RAGGED_PENALTY * ragged)

    def report(self, blocks: dict[Axis, Sizes], best: int, looped: bool) -> Tiling:
        chosen = {axis: int(blocks[axis][best]) for axis in self.axes}
        one = {axis: blocks[axis][best : best + 1] for axis in self.axes}
        tiles = int(self.tiles(one)[0])
        moved = int(self.traffic(one)[0][0]) * tiles
        compulsory = sum(math.prod(a.extent for a in access.axes) * access.bytes for access in self.accesses)
        per_core = -(-tiles // self.target.cores)
        named, peak = (int(found[0]) for found in self.live_bytes(one))
        reasons: tuple[str, ...] = (
            f"{counted(tiles, 'tile')} on {counted(min(tiles, self.target.cores), 'core')},"
            f" {per_core} on the busiest",
            f"at most {peak} bytes of scratchpad, {named} of them in named tiles",
            f"{moved} bytes moved, {compulsory} compulsory",
            "one block per reduction"
            if self.reduced and not looped
            else "reduction looped"
            if looped
            else "no reduction",
        )
        if self.wide:
            reach = max(int(self.reach(access, one)[0]) for access in self.wide)
            reasons += (f"neighbouring tiles on a core, which reaches over {reach} bytes of a buffer",)
        cycles = int(self.cycles(one)[0])
        return Tiling(chosen, tiles, peak, moved, cycles, looped, bool(self.wide), reasons)
