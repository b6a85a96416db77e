"""The product of the rewrite: one Spyre-aware Triton kernel and how it is launched."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Parameter:
    """One kernel parameter in kernel order: pointers, then integers, then constexprs.

    `type` is `*fp16` (pointer), `i32`/`i64` (runtime integer) or `constexpr`. `value` is the buffer's
    name for a pointer and a number otherwise.
    """

    name: str
    type: str
    value: str | int


@dataclass(frozen=True)
class Plan:
    """Why the kernel is tiled as it is. Sizes in bytes."""

    tiles: int
    cores: int
    lx_bytes: int
    hbm_bytes: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class SpyreKernel:
    """Source text of one `@triton.jit` function (no imports), its parameters and its plan.

    The last constexpr is `CORES`; the launch grid is `(grid,)`, `grid = min(cores, tiles)`, and `CORES`
    equals it.
    """

    name: str
    source: str
    parameters: tuple[Parameter, ...]
    grid: int
    plan: Plan
    origins: tuple[str, ...] = field(default=())

    @property
    def signature(self) -> dict[str, str]:
        """Parameter name to Triton type, in kernel order."""
        return {p.name: p.type for p in self.parameters}
