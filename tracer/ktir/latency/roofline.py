"""The roofline plot of a latency report. Needs matplotlib, which nothing else here does."""

# ruff: noqa: D102 - what latency says of these members holds
from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Protocol

_MEMORY, _COMPUTE, _UNITS, _POINT = "#1f4e79", "#2e8b57", "#8a8a8a", "#c0392b"

_APART = 1.3
"""Ratio of intensities from which two marks do not cover each other."""


class Rates(Protocol):
    """The rates that the roofs show, per cycle; those of `latency.HardwareConfig`."""

    @property
    def memory_bytes_per_cycle(self) -> float: ...
    @property
    def systolic_flops_per_cycle(self) -> float: ...
    @property
    def simd_elements_per_cycle(self) -> float: ...


class Report(Protocol):
    """What the plot shows of a kernel; `latency.LatencyReport` has it all."""

    @property
    def function(self) -> str: ...
    @property
    def config(self) -> Rates: ...
    @property
    def pipeline(self) -> str: ...
    @property
    def cores(self) -> Sized: ...
    @property
    def cycles(self) -> float: ...
    @property
    def flops(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def compulsory_bytes(self) -> int: ...

    def roofline(self) -> Mapping[str, float | None]:
        """Place and roofs, as `LatencyReport.roofline` gives them."""


def draw(report: Report, path: str) -> None:
    """Write the plot; the suffix of `path` picks SVG or PNG.

    Axes: operations per byte of memory traffic, operations per cycle of the chip, both logarithmic. Solid:
    the roof of memory, and that of computing for the kernel's own mix of units. Dashed: the units alone. The
    open mark is where the kernel would be under its roof if it moved the compulsory bytes only.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: the suffix is no format that it writes.
        OSError: the file cannot be written.
    """
    from matplotlib.figure import Figure

    place, config, cores = report.roofline(), report.config, len(report.cores)
    compute, bandwidth = place["compute_roof"], config.memory_bytes_per_cycle
    assert compute is not None
    units = {
        "matrix unit": config.systolic_flops_per_cycle * cores,
        "vector unit": config.simd_elements_per_cycle * cores,
    }
    intensity, rate = place["flops_per_byte"], place["flops_per_cycle"]
    placed = bool(intensity and rate)
    ideal = report.flops / report.compulsory_bytes if placed and report.compulsory_bytes else None

    ridge = compute / bandwidth
    marks = [value for value in (intensity, ideal) if placed and value]
    low = min([ridge, *marks]) / 16
    high = max([ridge, max(units.values()) / bandwidth, *marks]) * 16
    figure = Figure(figsize=(8, 5.6), layout="constrained")
    axes = figure.add_subplot()
    axes.loglog(
        [low, ridge],
        [low * bandwidth, compute],
        color=_MEMORY,
        linewidth=2,
        label=f"memory: {bandwidth:g} bytes/cycle",
    )
    axes.loglog(
        [ridge, high],
        [compute, compute],
        color=_COMPUTE,
        linewidth=2,
        label=f"compute{', this mix of units' if report.flops else ''}: {compute:,.0f} operations/cycle",
    )
    for (name, roof), style in zip(units.items(), ("--", ":"), strict=True):
        axes.loglog(
            [roof / bandwidth, high],
            [roof, roof],
            color=_UNITS,
            linewidth=1.2,
            linestyle=style,
            zorder=1,
            label=f"{name} alone: {roof:,.0f} operations/cycle on {cores} cores",
        )
    lines = [
        f"{report.cycles:,.0f} cycles ({report.pipeline}), {report.flops:,} operations,"
        f" {report.bytes:,} bytes"
    ]
    if placed:
        assert intensity is not None
        assert rate is not None
        roof = min(compute, intensity * bandwidth)
        text = f"{intensity:.3g} operations/byte\n{rate:,.3g} operations/cycle\n{rate / roof:.0%} of its roof"
        axes.plot([intensity], [rate], "o", color=_POINT, markersize=9, zorder=3, label=report.function)
        # Beside the point and below the roofs, which lie above it and to its left.
        axes.annotate(
            text,
            (intensity, rate),
            xytext=(12, -8),
            textcoords="offset points",
            verticalalignment="top",
            color=_POINT,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
        if ideal and ideal > intensity * _APART:
            axes.plot(
                [ideal],
                [min(compute, ideal * bandwidth)],
                "o",
                color=_POINT,
                markerfacecolor="white",
                markersize=8,
                zorder=3,
                label=f"with the compulsory {report.compulsory_bytes:,} bytes: {ideal:.3g} operations/byte",
            )
    else:
        lines.append(
            "no operations to place" if not rate else "no memory traffic: its roof is that of computing"
        )
    bottom = min([low * bandwidth, *([rate] if placed and rate else [])])
    axes.set_xlim(low, high)
    axes.set_ylim(bottom / 8, max(*units.values(), compute) * 4)
    axes.set_xlabel("arithmetic intensity (operations / byte of memory traffic)")
    axes.set_ylabel("throughput of the chip (operations / cycle)")
    axes.set_title("\n".join([report.function, *lines]), fontsize=10)
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside lower center", ncols=1, fontsize=9, frameon=False)
    figure.savefig(path, dpi=150)
