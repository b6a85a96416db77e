"""From a Spyre-aware Triton kernel to KTIR: `lower` and `lower_source`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tracer.ktir.text.module import print_module
from tracer.lower.errors import GridError, PassError
from tracer.lower.ktir_text import Ktir
from tracer.lower.manager import Job, Pass, run_passes
from tracer.lower.passes.bound_accesses import BoundAccesses
from tracer.lower.passes.check_lowered import CheckLowered
from tracer.lower.passes.index_scalars import IndexScalars
from tracer.lower.passes.inline_loops import InlineLoops
from tracer.lower.passes.lower_dots import LowerDots
from tracer.lower.passes.lower_elementwise import LowerElementwise
from tracer.lower.passes.lower_function import LowerFunction
from tracer.lower.passes.lower_memory import LowerMemory
from tracer.lower.passes.lower_ranges import LowerRanges
from tracer.lower.passes.lower_reductions import LowerReductions
from tracer.lower.passes.lower_scans import LowerScans
from tracer.lower.passes.lower_shapes import LowerShapes
from tracer.lower.passes.narrow_tiles import NarrowTiles
from tracer.lower.passes.peel_tiles import PeelTiles
from tracer.lower.passes.portable_casts import PortableCasts
from tracer.lower.passes.private_starts import PrivateStarts
from tracer.lower.passes.separate_generators import SeparateGenerators
from tracer.lower.passes.simplify_scalars import SimplifyScalars
from tracer.lower.passes.tidy import Tidy
from tracer.lower.passes.tile_scalars import TileScalars
from tracer.lower.reader import parse_ttir
from tracer.lower.ttir import generate_ttir
from tracer.rewrite.kernel import SpyreKernel
from tracer.target import SPYRE, SpyreTarget

Profile = Literal["current", "ktir_cpu"]
"""`current` is the dialect as it is; `ktir_cpu` avoids operations that the public simulator lacks."""


def pipeline(profile: Profile = "current") -> tuple[Pass, ...]:
    """The passes in order: fold, exact tiles, memory, compute, tidy."""
    fold = (InlineLoops(), SimplifyScalars(), SeparateGenerators())
    exact_tiles = (PeelTiles(), BoundAccesses(), NarrowTiles(), SimplifyScalars(), LowerRanges())
    memory = (IndexScalars(), LowerMemory())
    compute = (
        LowerShapes(),
        LowerReductions(),
        LowerScans(),
        LowerDots(),
        LowerElementwise(plain_exp2=profile == "ktir_cpu"),
        LowerFunction(),
        TileScalars(),
        PortableCasts(narrow_fptosi=profile == "ktir_cpu"),
    )
    tidy = (CheckLowered(), Tidy(), PrivateStarts())
    return (*fold, *exact_tiles, *memory, *compute, *tidy)


def lower(kernel: SpyreKernel, target: SpyreTarget = SPYRE, *, profile: Profile = "current") -> Ktir:
    """KTIR of a kernel at its traced values.

    The function has the kernel's name and takes its pointers, in signature order, as `index` arguments of
    the same names; all numbers are specialised away. Raises a refusal of HV4xx.
    """
    values = {p.name: p.value for p in kernel.parameters if not p.type.startswith("*")}
    return lower_source(
        kernel.source, kernel.name, kernel.signature, values, kernel.grid, target, profile=profile
    )


def lower_source(
    source: str,
    name: str,
    signature: Mapping[str, str],
    values: Mapping[str, Any],
    grid: int,
    target: SpyreTarget = SPYRE,
    *,
    profile: Profile = "current",
) -> Ktir:
    """KTIR of the `@triton.jit` function `name` in `source`, launched on `grid` programs.

    `signature` maps every parameter to its Triton type, in order; `values` gives all that are no pointers.
    """
    if not 0 < grid <= target.cores:
        raise GridError(op=name, grid=grid, cores=target.cores)
    ttir = generate_ttir(source, name, signature, values)
    return lower_ttir(ttir.text, name, source, grid, target, profile=profile)


def lower_ttir(
    text: str,
    name: str,
    source: str,
    grid: int,
    target: SpyreTarget = SPYRE,
    *,
    profile: Profile = "current",
) -> Ktir:
    """KTIR of TTIR text whose numbers are already constants; `source` serves diagnostics.

    The module that is read and the module that is written are verified. Only if the latter is invalid is all
    done again with a verification after every pass, which takes twice the time, to name the pass to blame.
    """
    job, passes = Job(name, source, grid, target), pipeline(profile)
    module = parse_ttir(text)
    try:
        run_passes(module, job, passes)
    except PassError:
        run_passes(parse_ttir(text), job, passes, verify_each=True)
        raise
    return Ktir(name, print_module(module))
