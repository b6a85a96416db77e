"""The rewrite as a whole: parse, refine axes, find descriptors, plan, emit."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp
from tracer.rewrite.access import accesses_of, forced_single
from tracer.rewrite.axes import refine
from tracer.rewrite.contract import axes_of, form_contractions
from tracer.rewrite.emit import Emitter
from tracer.rewrite.kernel import Plan, SpyreKernel
from tracer.rewrite.layout import call
from tracer.rewrite.parse import parse
from tracer.rewrite.plan import plan
from tracer.rewrite.signature import descriptors_of, parameters_of
from tracer.rewrite.simplify import simplify
from tracer.rewrite.types import from_torch
from tracer.target import SPYRE, SpyreTarget

HELPERS = {"multiply": ["@triton.jit", "def multiply(a, b):", "    return a * b", "", ""]}


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
    captured: CapturedKernel, buffers: dict[str, Buffer], target: SpyreTarget = SPYRE, *, blocks: dict[str, int] | None = None
) -> SpyreKernel:
    """One kernel in Spyre-aware form; see `rewrite`."""
    pointers = {name: value for name, value in captured.arguments if isinstance(value, str)}
    memory = {name: from_torch(buffers[value].spec.dtype) for name, value in pointers.items()}
    numel = {name: _span(buffers[value]) for name, value in pointers.items()}
    kernel = simplify(parse(captured.name, captured.source, memory), memory)
    axes, kernel = refine(kernel)
    kernel = simplify(form_contractions(kernel, axes), memory)
    varies = axes_of(kernel, axes)
    accesses = accesses_of(kernel, axes, memory, numel)
    single = forced_single(accesses, kernel, varies)
    tiling = plan(kernel, axes, accesses, varies, single, target, blocks)
    descriptors = descriptors_of(accesses, tiling.blocks)
    unique = list({d.name: d for d in descriptors.values()}.values())
    grid = min(target.cores, tiling.tiles)
    params = {name: (value, memory[name]) for name, value in pointers.items()}
    parameters = parameters_of(params, axes, unique, tiling.blocks, grid)
    emitter = Emitter(kernel, axes, accesses, varies, tiling.blocks, tiling.looped, descriptors)
    body = [*(line for d in unique for line in d.text(1)), *emitter.body()]
    head = call(
        f"def {captured.name}",
        [f"{p.name}: tl.constexpr" if p.type == "constexpr" else p.name for p in parameters],
        ":",
        0,
    )
    helpers = [line for name in sorted(emitter.helpers) for line in HELPERS[name]]
    source = "\n".join([*helpers, "@triton.jit", *head, *body, ""])
    report = Plan(tiling.tiles, grid, tiling.lx_bytes, tiling.hbm_bytes, tiling.reasons)
    return SpyreKernel(captured.name, source, parameters, grid, report, captured.origins)


def _span(buffer: Buffer) -> int:
    """Elements of memory from the buffer's first element to its last."""
    spec = buffer.spec
    if 0 in spec.shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(spec.shape, spec.stride, strict=True))
