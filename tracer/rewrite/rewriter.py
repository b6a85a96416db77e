"""The rewrite as a whole: parse, refine axes, split into regions, find descriptors, plan, emit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.rewrite.access import Access, accesses_of, forced_single
from tracer.rewrite.axes import Axis, lift_opaque, refine
from tracer.rewrite.clamp import clamp_sums
from tracer.rewrite.contract import axes_of, form_contractions
from tracer.rewrite.emit import Tiles, cut_of, region_comment, region_lines
from tracer.rewrite.extents import name_extents
from tracer.rewrite.functions import HELPERS
from tracer.rewrite.ir import Kernel
from tracer.rewrite.kernel import Plan, SpyreKernel
from tracer.rewrite.layout import define
from tracer.rewrite.parse import parse
from tracer.rewrite.plan import Tiling, plan
from tracer.rewrite.signature import Descriptor, descriptors_of, grouped, parameters_of
from tracer.rewrite.simplify import check_aliases, simplify
from tracer.rewrite.split import split
from tracer.rewrite.types import from_torch
from tracer.target import SPYRE, SpyreTarget


def rewrite(
    op: CapturedOp, target: SpyreTarget = SPYRE, *, blocks: Sequence[dict[str, int]] | None = None
) -> tuple[SpyreKernel, ...]:
    """Every kernel of an op in Spyre-aware form, in launch order.

    `blocks`, where given, fixes the block of each axis per kernel (axis name -> block, 1 where absent), so
    that the source made for one problem size can be made again at another. Raises a subclass of
    HarvestError that names the kernel's source line.
    """
    buffers = {buffer.name: buffer for buffer in op.buffers}
    return tuple(
        rewrite_kernel(kernel, buffers, target, blocks=blocks[i] if blocks is not None else None)
        for i, kernel in enumerate(op.kernels)
    )


def rewrite_kernel(
    captured: CapturedKernel,
    buffers: dict[str, Buffer],
    target: SpyreTarget = SPYRE,
    *,
    blocks: dict[str, int] | None = None,
) -> SpyreKernel:
    """One kernel in Spyre-aware form; see `rewrite`."""
    pointers = {name: value for name, value in captured.arguments if isinstance(value, str)}
    memory = {name: from_torch(buffers[value].spec.dtype) for name, value in pointers.items()}
    numel = {name: _span(buffers[value]) for name, value in pointers.items()}
    kernel = simplify(parse(captured.name, captured.source, memory), memory)
    check_aliases(kernel, pointers)
    regions = [
        _region(axes, simplify(part, memory), memory, numel, target, blocks)
        for axes, part in split(*_contracted(kernel, memory))
    ]
    grid = min(target.cores, max(region.tiling.tiles for region in regions))
    count: dict[str, int] = {}
    helpers: set[str] = set()
    noted: set[str] = set()
    cut = cut_of([region.accesses for region in regions]) if len(regions) > 1 else ""
    lines: list[str] = []
    made: list[Descriptor] = []
    for region in regions:
        tiling = region.tiling
        found = descriptors_of(region.accesses, tiling.blocks, count)
        unique = list({d.name: d for d in found.values()}.values())
        made += unique
        kernel = name_extents(region.kernel, region.axes, found, numel)
        tiles = Tiles(
            kernel,
            region.axes,
            region.accesses,
            axes_of(kernel, region.axes),
            tiling.blocks,
            tiling.looped,
            tiling.neighbours,
            found,
            helpers,
            noted,
        )
        if len(regions) > 1:
            lines += [*([""] if lines else []), region_comment(region.accesses, found, region.axes, cut)]
        lines += [line for d in unique for line in d.text(1)] + region_lines(tiles)
    params = {name: (value, memory[name]) for name, value in pointers.items()}
    parameters = parameters_of(
        params, made, {a: b for r in regions for a, b in r.tiling.blocks.items()}, grid
    )
    head = define(captured.name, grouped(parameters, made))
    preamble = [line for name in sorted(helpers) for line in HELPERS[name]]
    source = "\n".join([*preamble, "@triton.jit", *head, *lines, ""])
    tilings = [region.tiling for region in regions]
    report = Plan(
        tiles=sum(t.tiles for t in tilings),
        cores=grid,
        lx_bytes=max(t.lx_bytes for t in tilings),
        hbm_bytes=sum(t.hbm_bytes for t in tilings),
        reasons=tuple(reason for region in regions for reason in _reasons(region, len(regions) > 1)),
    )
    return SpyreKernel(captured.name, source, parameters, grid, report, captured.origins)


@dataclass(frozen=True)
class _Region:
    """One tile loop of a kernel and its plan."""

    axes: tuple[Axis, ...]
    kernel: Kernel
    varies: dict[str, frozenset[Axis]]
    accesses: tuple[Access, ...]
    tiling: Tiling


def _reasons(region: _Region, named: bool) -> tuple[str, ...]:
    first, *rest = region.tiling.reasons
    return (f"region {region.axes[0].name[0]}: {first}" if named else first, *rest)


def _contracted(kernel: Kernel, memory: dict[str, str]) -> tuple[Kernel, tuple[Axis, ...]]:
    axes, kernel = refine(kernel)
    return simplify(form_contractions(kernel, axes), memory), axes


def _region(
    axes: tuple[Axis, ...],
    kernel: Kernel,
    memory: dict[str, str],
    numel: dict[str, int],
    target: SpyreTarget,
    blocks: dict[str, int] | None,
) -> _Region:
    kernel = clamp_sums(lift_opaque(kernel), axes, numel)
    varies = axes_of(kernel, axes)
    accesses = accesses_of(kernel, axes, memory, numel)
    single = forced_single(accesses, kernel, varies)
    tiling = plan(kernel, axes, accesses, varies, single, target, blocks)
    return _Region(axes, kernel, varies, tuple(a.settled(tiling.blocks) for a in accesses), tiling)


def _span(buffer: Buffer) -> int:
    """Elements of memory from the buffer's first element to its last."""
    spec = buffer.spec
    if 0 in spec.shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.stride, strict=True))
