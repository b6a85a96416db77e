"""An analytic latency model: sticks moved, operations per unit, communication; no timing of anything real.

Constants are the code defaults of the public simulator (`HardwareConfig`). Memory bandwidth is shared by
the cores of the grid. Against the public model, `batch_matmul` counts its batch and a generic reduction
counts its body once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from xdsl.ir import Operation

from tracer.ktir.coverage import AccessMap, Tracer, passed_arguments
from tracer.ktir.diagnostics import location
from tracer.ktir.latency_ops import Cost, cost_of
from tracer.ktir.simulator.compile import compile_function
from tracer.ktir.simulator.run import Function
from tracer.ktir.simulator.schedule import guarded
from tracer.ktir.simulator.slices import addressing
from tracer.target import SPYRE, SPYRE_TIMING

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
        """Cycles under a pipeline: one after the other, compute over memory, or all three over each other."""
        if pipeline == "serial":
            return self.compute + self.memory + self.comm
        if pipeline == "overlapped":
            return max(self.compute, self.memory) + self.comm
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

    def roofline(self) -> dict[str, float]:
        """Operations per byte and per cycle, chip-wide, beside the two roofs."""
        config = self.config
        systolic = sum(c.flops.get("systolic", 0) for c in self.cores)
        rate = (
            config.systolic_flops_per_cycle if 2 * systolic > self.flops else config.simd_elements_per_cycle
        )
        peak = rate * len(self.cores)
        intensity = self.flops / self.bytes if self.bytes else 0.0
        return {
            "flops_per_byte": intensity,
            "flops_per_cycle": self.flops / self.cycles if self.cycles else 0.0,
            "compute_roof": peak,
            "memory_roof": intensity * config.memory_bytes_per_cycle,
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
            f"{self.function}: {self.cycles:,.1f} cycles ({self.microseconds:,.2f} us),"
            f" bound by {self.bottleneck}",
            f"slowest core: compute {core.compute:,.1f}, memory {core.memory:,.1f}, comm {core.comm:,.1f};"
            f" balance {self.balance:.2f} over {len(self.cores)} cores",
            f"{self.flops:,} operations, {self.bytes:,} bytes"
            f" ({excess:.2f} x the compulsory {self.compulsory_bytes:,})",
            f"{'line':>6} {'operation':<28} {'runs':>10} {'cycles':>14} {'operations':>14} {'bytes':>14}",
        ]
        lines += [
            f"{r.line:>6} {r.op:<28} {r.executions:>10,} {r.cycles:>14,.1f} {r.flops:>14,} {r.bytes:>14,}"
            for r in sorted(self.rows, key=lambda r: -r.cycles)
        ]
        return "\n".join(lines)

    def save_roofline(self, path: str) -> None:
        """Write the roofline plot; the suffix of `path` picks SVG or PNG. Needs matplotlib."""
        from matplotlib.figure import Figure

        place = self.roofline()
        figure = Figure(figsize=(6, 4))
        axes = figure.add_subplot()
        ridge = place["compute_roof"] / self.config.memory_bytes_per_cycle
        points = [ridge / 64, ridge, ridge * 64]
        axes.loglog(
            points, [min(p * self.config.memory_bytes_per_cycle, place["compute_roof"]) for p in points]
        )
        axes.loglog([max(place["flops_per_byte"], points[0])], [max(place["flops_per_cycle"], 1e-3)], "o")
        axes.set_xlabel("operations per byte")
        axes.set_ylabel("operations per cycle")
        axes.set_title(self.function)
        figure.savefig(path)


class _Meter(Tracer):
    """A tracer that also counts the sticks of every access of the current core."""

    def __init__(self, *args: Any, stick: int):
        super().__init__(*args)
        self.stick = stick
        self.moved: Counter[Operation] = Counter()

    def moved_elements(self, op: Operation, sticks: int) -> None:
        self.moved[op] += sticks * self.stick


def latency(
    function: Function,
    args: Sequence[Any] | None = None,
    *,
    grid: Sequence[int] | None = None,
    config: HardwareConfig | None = None,
    pipeline: str = "serial",
) -> LatencyReport:
    """Cost of a function from its accesses and shapes; its arithmetic is not run.

    `args` as for `coverage`. Raises ValueError for an unknown pipeline, KtirError as `coverage` does.
    """
    if pipeline not in PIPELINES:
        raise ValueError(f"pipeline must be one of {', '.join(PIPELINES)}, not {pipeline}")
    config = config or HardwareConfig()
    program = compile_function(function.module.module, function.op, keep=addressing(function.op), counts=True)
    x, y, z = (*grid, 1, 1, 1)[:3] if grid is not None else function.grid
    meter = _Meter(program, (x, y, z), function.argument_names, stick=config.stick_bytes)
    values = passed_arguments(function, args)
    costs: dict[Operation, Cost] = {op: cost_of(op) for op in function.op.walk()}
    cores: list[CoreCost] = []
    totals: dict[Operation, list[float]] = {}
    share = config.memory_bytes_per_cycle / (x * y * z)
    for core in range(meter.cores):
        meter.core = core
        meter.moved = Counter()
        counts: Counter[Operation] = Counter()
        place = meter.coordinates(core)
        guarded(meter, lambda c=counts, p=place: program.run(meter, c, *p, *values))  # type: ignore[misc]
        cores.append(_core(counts, costs, meter, config, share, totals))
    return LatencyReport(
        function.name, config, pipeline, tuple(cores), _rows(totals), _compulsory(meter.coverage, function)
    )


def _core(
    counts: Mapping[Operation, int],
    costs: Mapping[Operation, Cost],
    meter: _Meter,
    config: HardwareConfig,
    share: float,
    totals: dict[Operation, list[float]],
) -> CoreCost:
    out = CoreCost()
    for op, runs in counts.items():
        cost = costs.get(op) or cost_of(op)
        compute = runs * (
            cost.simd / config.simd_elements_per_cycle
            + cost.transcendental * config.transcendental_penalty / config.simd_elements_per_cycle
            + cost.systolic / config.systolic_flops_per_cycle
        )
        hops, folds = meter.partners(op) if cost.ring_bytes else (0, 0)
        comm = runs * hops * cost.ring_bytes / config.ring_bytes_per_cycle
        compute += runs * folds * cost.fold / config.simd_elements_per_cycle
        moved = meter.moved.get(op, 0)
        memory = moved / share
        for unit, amount in (
            ("systolic", cost.systolic),
            ("transcendental", cost.transcendental),
            ("simd", cost.simd + folds * cost.fold),
        ):
            if amount:
                out.flops[unit] = out.flops.get(unit, 0) + runs * amount
        out.compute += compute
        out.comm += comm
        out.memory += memory
        out.bytes += moved
        row = totals.setdefault(op, [0, 0.0, 0, 0])
        row[0] += runs
        row[1] += compute + comm + memory
        row[2] += runs * (cost.flops + folds * cost.fold)
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
