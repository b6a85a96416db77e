"""The hardware that kernels are written for; the one place for its numbers.

Public sources: the torch-spyre work-division notes (32 cores, 2 MiB scratchpad, 128-byte sticks,
256 MiB address span per core), the back end's reserve of a fifth of the scratchpad, and the defaults of the
public simulator's latency model for the rates.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpyreTarget:
    """Limits of one accelerator. Sizes are in bytes."""

    cores: int = 32
    lx_bytes: int = 2 * 1024 * 1024
    """Scratchpad (LX) of one core: what its live tiles must fit."""
    lx_warn_bytes: int = 1587 * 1024
    """Above this the back end's own reserve begins."""
    stick_bytes: int = 128
    """Unit of memory traffic."""
    span_bytes: int = 256 * 1024 * 1024
    """Widest address range that one core reaches in one buffer."""

    memory_bytes_per_cycle: int = 128
    """Off-chip bandwidth of the whole chip, shared by its cores."""
    simd_elements_per_cycle: int = 64
    """Vector unit of one core."""
    systolic_flop_per_cycle: int = 1024
    """Matrix unit of one core (a multiply-add is two)."""


SPYRE = SpyreTarget()


@dataclass(frozen=True)
class SpyreTiming:
    """Numbers of the latency model that no plan depends on (a folder's digest covers the target alone)."""

    ring_bytes_per_cycle: int = 64
    """Link between two neighbouring cores, each way."""
    transcendental_penalty: int = 4
    """How many times an exponential costs what an addition does on the vector unit."""
    clock_ghz: float = 1.0
    """Of every unit."""


SPYRE_TIMING = SpyreTiming()
