"""An analytic latency model: sticks moved, operations per unit, communication; no timing of anything real.

Constants are the code defaults of the public simulator (`HardwareConfig`). Memory bandwidth is shared by
the cores of the grid. `mode="ktir_cpu"` gives the public simulator's cycles; `ops` and `model` say
where `strict` differs, and why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xdsl.ir import Operation

from tracer.ktir.coverage.accesses import AccessMap, Tracer, passed_arguments
from tracer.ktir.diagnostics import KtirError, at, location
from tracer.ktir.latency.ops import Cost, cost_of
from tracer.ktir.latency.roofline import draw
from tracer.ktir.latency.sizes import measured_costs, unsized
from tracer.ktir.simulator.compile import compile_function
from tracer.ktir.simulator.compiler import Unsupported
from tracer.ktir.simulator.memory import View
from tracer.ktir.simulator.run import Function
from tracer.ktir.simulator.schedule import guarded
from tracer.ktir.simulator.session import MAX_STEPS
from tracer.ktir.slices import addressing
from tracer.ktir.text.module import with_source
from tracer.target import SPYRE, SPYRE_TIMING

MODES = ("strict", "ktir_cpu")
PIPELINES = ("serial", "overlapped", "overlapped_3way")


@dataclass(frozen=True)
class HardwareConfig:
    """Rates of the modelled accelerator; bytes and operations per cycle."""

    cores: int = SPYRE.cores
    clock_ghz: float = SPYRE_TIMING.clock_ghz
    memory_bytes_per_cycle: float = SPYRE.memory_bytes_per_cycle
    """Of the whole chip, shared by the cores of the grid."""
    ring_bytes_per_cycle: float = SPYRE_TIMING.ring_bytes_per_cycle
    simd_elements_per_cycle: float = SPYRE.simd_elements_per_cycle
    systolic_flops_per_cycle: float = SPYRE.systolic_flop_per_cycle
    transcendental_penalty: float = SPYRE_TIMING.transcendental_penalty
    stick_bytes: int = SPYRE.stick_bytes


@dataclass
class CoreCost:
    """Cycles of one core by resource, and what they were spent on."""

    compute: float = 0.0
    memory: float = 0.0
    comm: float = 0.0
    flops: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    def cycles(self, pipeline: str) -> float:
        """Cycles under a pipeline: one after the other; compute over all data movement, which shares one
        pipe; or all three over each other.
        """
        if pipeline == "serial":
            return self.compute + self.memory + self.comm
        if pipeline == "overlapped":
            return max(self.compute, self.memory + self.comm)
        return max(self.compute, self.memory, self.comm)


@dataclass(frozen=True)
class OpRow:
    """One source operation, summed over cores."""

    line: int
    op: str
    executions: int
    cycles: float
    flops: int
    bytes: int


@dataclass(frozen=True)
class LatencyReport:
    """Costs per core and per operation of one function on one grid."""

    function: str
    config: HardwareConfig
    pipeline: str
    cores: tuple[CoreCost, ...]
    rows: tuple[OpRow, ...]
    compulsory_bytes: int
    """Bytes if every element read were read once and every element written written once, chip-wide."""

    @property
    def critical(self) -> CoreCost:
        """The slowest core."""
        return max(self.cores, key=lambda c: c.cycles(self.pipeline))

    @property
    def cycles(self) -> float:
        """Cycles of the kernel: those of its slowest core."""
        return self.critical.cycles(self.pipeline)

    @property
    def microseconds(self) -> float:
        """Kernel time at the configured clock."""
        return self.cycles / (self.config.clock_ghz * 1e3)

    @property
    def bottleneck(self) -> str:
        """The resource that costs the slowest core most."""
        core = self.critical
        return max(
            ("compute", core.compute), ("memory", core.memory), ("comm", core.comm), key=lambda p: p[1]
        )[0]

    @property
    def bytes(self) -> int:
        """Bytes moved between memory and all cores, whole sticks."""
        return sum(c.bytes for c in self.cores)

    @property
    def flops(self) -> int:
        """Operations of all cores and units."""
        return sum(sum(c.flops.values()) for c in self.cores)

    @property
    def balance(self) -> float:
        """Mean over slowest core; 1 where all work equally long."""
        times = [c.cycles(self.pipeline) for c in self.cores]
        return sum(times) / len(times) / max(times) if max(times) else 1.0

    def roofline(self) -> dict[str, float | None]:
        """Operations per byte and per cycle, chip-wide, beside the two roofs in operations per cycle.

        The roof of computing is that of the kernel's own mix of units, each busy for its own operations: a
        kernel of both matrix and vector operations reaches neither unit's peak. None where no byte is moved.
        """
        config, count = self.config, len(self.cores)
        busy = sum(c.compute for c in self.cores)
        intensity = self.flops / self.bytes if self.bytes else None
        return {
            "flops_per_byte": intensity,
            "flops_per_cycle": self.flops / self.cycles if self.cycles else 0.0,
            "compute_roof": self.flops / busy * count if busy else config.simd_elements_per_cycle * count,
            "memory_roof": intensity * config.memory_bytes_per_cycle if intensity is not None else None,
        }

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "function": self.function,
            "pipeline": self.pipeline,
            "cycles": self.cycles,
            "microseconds": self.microseconds,
            "bottleneck": self.bottleneck,
            "balance": self.balance,
            "flops": self.flops,
            "bytes": self.bytes,
            "compulsory_bytes": self.compulsory_bytes,
            "roofline": self.roofline(),
            "cores": [asdict(c) | {"cycles": c.cycles(self.pipeline)} for c in self.cores],
            "ops": [asdict(r) for r in self.rows],
            "config": asdict(self.config),
        }

    def table(self) -> str:
        """A summary for people: totals, then operations by cost."""
        excess = self.bytes / self.compulsory_bytes if self.compulsory_bytes else 0.0
        core = self.critical
        lines = [
            f"{self.function}: {self.cycles:,.1f} cycles ({self.microseconds:,.2f} us, {self.pipeline}),"
            f" bound by {self.bottleneck}",
            f"slowest core: compute {core.compute:,.1f}, memory {core.memory:,.1f}, comm {core.comm:,.1f};"
            f" balance {self.balance:.2f} over {len(self.cores)} cores",
            f"{self.flops:,} operations, {self.bytes:,} bytes"
            f" ({excess:.2f} x the compulsory {self.compulsory_bytes:,})",
            self._place(),
            f"{'line':>6} {'operation':<28} {'runs':>10} {'cycles':>14} {'operations':>14} {'bytes':>14}",
        ]
        lines += [
            f"{r.line:>6} {r.op:<28} {r.executions:>10,} {r.cycles:>14,.1f} {r.flops:>14,} {r.bytes:>14,}"
            for r in sorted(self.rows, key=lambda r: -r.cycles)
        ]
        return "\n".join(lines)

    def _place(self) -> str:
        """Where the kernel lies under the roofline, in words."""
        place = self.roofline()
        intensity, rate = place["flops_per_byte"], place["flops_per_cycle"]
        if not rate:
            return "roofline: no operations to place"
        name, roof = min(
            ((part, value) for part in ("memory", "compute") if (value := place[f"{part}_roof"]) is not None),
            key=lambda pair: pair[1],
        )
        ratio = "no memory traffic" if intensity is None else f"{intensity:,.3g} operations/byte"
        return f"roofline: {ratio}, {rate:,.1f} operations/cycle, {rate / roof:.0%} of the {name} roof"

    def save_roofline(self, path: str) -> None:
        """Write the roofline plot, as `roofline.draw` does."""
        draw(self, path)


class _Meter(Tracer):
    """A tracer that also counts the sticks of every access of the current core, and in accesses to views that
    are spread over global memory and scratchpads, the bytes of the latter and the cycles that these take
    longer.
    """

    def __init__(self, *args: Any, config: HardwareConfig, share: float, max_steps: int):
        super().__init__(*args, max_steps=max_steps)
        self.stick = config.stick_bytes
        self.rates = share, config.ring_bytes_per_cycle
        self.moved: Counter[Operation] = Counter()
        self.local: Counter[Operation] = Counter()
        self.late: Counter[Operation] = Counter()
        self._spread = 0

    def moved_elements(self, op: Operation, sticks: int) -> None:
        self.moved[op] += sticks * self.stick

    def trace(self, op: Operation, tile: Any) -> None:
        before, self._spread = self.moved[op], 0
        super().trace(op, tile)
        moved = self.moved[op] - before
        if moved and self._spread:
            self.local[op] += self._spread
            late = self._spread / self.rates[1] - moved / self.rates[0]
            self.late[op] += max(late, 0)  # type: ignore[assignment]

    def _box(
        self, op: Operation, view: View, lo: tuple[int, ...], extent: tuple[int, ...], store: bool
    ) -> None:
        if view.buffer.core is not None:
            self._spread += math.prod(extent) * view.buffer.data.element_size()
        super()._box(op, view, lo, extent, store)


def latency(
    function: Function,
    args: Sequence[Any] | None = None,
    *,
    grid: Sequence[int] | None = None,
    config: HardwareConfig | None = None,
    pipeline: str = "serial",
    mode: str = "strict",
    max_steps: int = MAX_STEPS,
) -> LatencyReport:
    """Cost of a function from its accesses and shapes. Its arithmetic is run where only that can tell the
    extents of a tile, which takes a tensor for every pointer.

    `args` and `max_steps` as for `coverage`. `mode="ktir_cpu"` counts as the public simulator does. Beside
    what `ops` says, a collective then sends a partial once around the whole grid; strict sends it to
    the partners in its group, as no other core needs it. An access to a view that is spread over global
    memory and scratchpads then takes as long as its slower side, scratchpad bytes moving at the ring's rate
    and counting as moved; in strict mode scratchpads are free there as everywhere else.

    Raises ValueError for an unknown pipeline or mode, KtirError as `coverage` does, as `Function.run`
    does where the arithmetic is run, and KT117 where that lacks an argument or memory at a literal address.
    """
    for name, value, known in (("pipeline", pipeline, PIPELINES), ("mode", mode, MODES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {value}")
    config = config or HardwareConfig()
    program = compile_function(function.module.module, function.op, keep=addressing(function.op), counts=True)
    x, y, z = function.on_grid(grid)
    share = config.memory_bytes_per_cycle / (x * y * z)
    meter = _Meter(
        program, (x, y, z), function.argument_names, config=config, share=share, max_steps=max_steps
    )
    values = passed_arguments(function, args)
    cores: list[CoreCost] = []
    costs: dict[Operation, Cost | None] = {}
    sizes: dict[tuple[int, Operation], Cost] | None = None
    totals: dict[Operation, list[float]] = {}
    for core in range(meter.cores):
        meter.core = core
        meter.moved, meter.local, meter.late = Counter(), Counter(), Counter()
        counts: Counter[Operation] = Counter()
        place = meter.coordinates(core)
        guarded(meter, lambda c=counts, p=place: program.run(meter, c, *p, *values))  # type: ignore[misc]
        spent: dict[Operation, Cost] = {}
        for op, runs in counts.items():
            if op not in costs:
                try:
                    costs[op] = None if unsized(op, mode) else cost_of(op, mode)
                    if costs[op] is None and sizes is None:
                        sizes = measured_costs(function, args, (x, y, z), mode, max_steps)
                except Unsupported as reason:
                    found = with_source(at(op, "KT117", str(reason)), function.module.lines)
                    raise KtirError([found]) from None
            cost = costs[op]
            spent[op] = cost * runs if cost is not None else (sizes or {}).get((core, op), Cost())
        cores.append(_core(counts, spent, meter, config, mode, totals))
    return LatencyReport(
        function.name, config, pipeline, tuple(cores), _rows(totals), _compulsory(meter.coverage, function)
    )


def _core(
    counts: Mapping[Operation, int],
    spent: Mapping[Operation, Cost],
    meter: _Meter,
    config: HardwareConfig,
    mode: str,
    totals: dict[Operation, list[float]],
) -> CoreCost:
    out = CoreCost()
    for op, runs in counts.items():
        cost = spent[op]
        compute = (
            cost.simd / config.simd_elements_per_cycle
            + cost.transcendental * config.transcendental_penalty / config.simd_elements_per_cycle
            + cost.systolic / config.systolic_flops_per_cycle
        )
        part = meter.partners(op) if cost.ring_bytes else None
        hops, folds = part or (0, 0)
        if mode == "ktir_cpu" and part:
            hops = meter.cores - 1
        comm = hops * cost.ring_bytes / config.ring_bytes_per_cycle
        compute += folds * cost.fold / config.simd_elements_per_cycle
        moved = meter.moved.get(op, 0)
        memory = moved / meter.rates[0]
        if mode == "ktir_cpu":
            moved, memory = moved + meter.local[op], memory + meter.late[op]
        for unit, amount in (
            ("systolic", cost.systolic),
            ("transcendental", cost.transcendental),
            ("simd", cost.simd + folds * cost.fold),
        ):
            if amount:
                out.flops[unit] = out.flops.get(unit, 0) + amount
        out.compute += compute
        out.comm += comm
        out.memory += memory
        out.bytes += moved
        row = totals.setdefault(op, [0, 0.0, 0, 0])
        row[0] += runs
        row[1] += compute + comm + memory
        row[2] += cost.flops + folds * cost.fold
        row[3] += moved
    return out


def _rows(totals: Mapping[Operation, Sequence[float]]) -> tuple[OpRow, ...]:
    rows = [
        OpRow(location(op)[1], op.name, int(runs), cycles, int(flops), int(moved))
        for op, (runs, cycles, flops, moved) in totals.items()
        if cycles or flops or moved
    ]
    return tuple(sorted(rows, key=lambda r: (r.line, r.op)))


def _compulsory(found: Any, function: Function) -> int:
    total = 0
    for side in (found.reads, found.writes):
        for position, accesses in side.items():
            assert isinstance(accesses, AccessMap)
            total += accesses.touched() * accesses.element_bytes
            _ = position
    return total
