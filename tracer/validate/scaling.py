"""A folder's op at another problem size, with the very source and blocks that were committed."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tracer.capture import CapturedOp, capture
from tracer.capture.kernel import Buffer
from tracer.emit.domains import positive_inputs
from tracer.emit.index_ranges import index_ranges
from tracer.emit.layout import definitions
from tracer.emit.orders import input_orders
from tracer.emit.scales import input_scales
from tracer.errors import HarvestError
from tracer.models.build import one_line
from tracer.models.op_call import OpCall
from tracer.models.quiet import quiet
from tracer.models.replay import float64, replay
from tracer.rewrite import SpyreKernel, rewrite
from tracer.target import SPYRE
from tracer.validate.call_text import parse_identity
from tracer.validate.inputs import random_tensor
from tracer.validate.oracle import Layout, flat_memory, rounded, span_of, widened
from tracer.validate.problem import Problem
from tracer.validate.sizes import axes_of, proportional, scalings
from tracer.validate.stage import Stage

ATTEMPTS = 24
"""Scalings that are tried before an op counts as one that has no other size."""

STEPS = 16_000
"""Operations, over all tiles, that a run at another size should not exceed: each costs the interpreter about
0.1 ms (0.04 to 0.12 on folders of Llama), and T1 runs five times or more."""

NEAR = dataclasses.replace(SPYRE, span_bytes=0)
"""A target whose cores reach nothing far away: its kernels deal tiles as those of the widest buffers do."""

LARGEST = 1 << 30
"""Bytes that the buffers of an op at another size may take; the oracle holds them in float64 besides."""


@dataclass(frozen=True)
class Scaled:
    """An op at another size: old extent -> new extent, the problem, and its kernels (for lowering)."""

    sizes: Mapping[int, int]
    problem: Problem
    kernels: tuple[SpyreKernel, ...]
    identity: str = ""

    def __str__(self) -> str:
        return ", ".join(f"{old} -> {new}" for old, new in sorted(self.sizes.items()) if old != new)


def scale(
    traced: Problem,
    identity: str,
    *,
    is_large: bool,
    multiples: Sequence[int] = (1, 8),
    objection: Callable[[Problem], str] = lambda _: "",
) -> Scaled | str:
    """The first scaling at which the op rewrites to the committed source; else why there is none.

    `traced` is the op `identity` at its own size, with the committed source.

    One whose run would take long is passed over, unless all are: then it is the shortest.

    `objection` may say of a problem why it will not do.
    """
    try:
        call = parse_identity(identity)
    except ValueError as error:
        return f"CALL is no op's identity: {error}"
    stages = traced.stages
    text = traced.source.read_text(encoding="utf-8")
    committed = definitions([text])
    blocks = [_blocks(stage) for stage in stages]
    reasons: list[str] = []
    if not any(n > 1 for spec in call.tensors for n in spec.shape) and not any(
        axis.extent > 1 for axis in axes_of(stages)
    ):
        # One element in, one out: the kernels take no size, so that there is none to change.
        return Scaled({}, traced, ())
    large: Scaled | None = None
    ragged = itertools.islice(scalings(call, stages, multiples, text), ATTEMPTS)
    for sizes, other in itertools.chain(ragged, () if is_large else proportional(call)):
        found = _at(traced, sizes, other, blocks, committed)
        if isinstance(found, Scaled) and (reason := objection(found.problem)):
            reasons.append(f"{dict(sizes)}: {reason}")
        elif isinstance(found, Scaled):
            if _steps(found) <= STEPS:
                return found
            large = found if large is None else min(large, found, key=_steps)
        else:
            reasons.append(f"{dict(sizes)}: {found}")
    if large is not None:
        return large
    return reasons[0] if reasons else "the op has no extent that could change"


def _steps(scaled: Scaled) -> int:
    """Operations that the interpreter performs: those in a kernel's text, for every tile."""
    total = 0
    for stage, kernel in zip(scaled.problem.stages, scaled.kernels, strict=True):
        tiles = math.prod(-(-axis.extent // axis.block) for axis in axes_of([stage]))
        total += tiles * _operations(kernel.source)
    return total


@functools.cache
def _operations(source: str) -> int:
    kinds = (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp)
    return sum(isinstance(node, kinds) for node in ast.walk(ast.parse(source)))


def canonical(source: str) -> str:
    """`source` with its temporaries `tmp0`, `tmp7_raw` ... renumbered in order of appearance.

    Inductor numbers them in order of creation; masks that it needs at one size and not at another take
    numbers too. Nothing else may differ between two sizes.
    """
    numbers: dict[str, int] = {}
    return re.sub(r"\btmp\d+", lambda m: f"tmp{numbers.setdefault(m[0], len(numbers))}", source)


def _blocks(stage: Stage) -> dict[str, int]:
    return {
        name.removesuffix("_BLOCK").lower(): value
        for name, value in stage.constexpr.items()
        if name.endswith("_BLOCK")
    }


def _at(
    traced: Problem,
    sizes: Mapping[int, int],
    call: OpCall,
    blocks: Sequence[dict[str, int]],
    committed: Sequence[str],
) -> Scaled | str:
    stages = traced.stages
    try:
        with quiet():
            captured = capture(call, SPYRE)
        taken = sum(_bytes(buffer) for buffer in captured.buffers)
        if taken > LARGEST:
            return f"its buffers take {taken} bytes"
        if len(captured.kernels) != len(stages):
            return f"Inductor makes {len(captured.kernels)} kernels there"
        candidates = [rewrite(captured, target, blocks=blocks) for target in (SPYRE, NEAR)]
    except HarvestError as error:
        return f"{error.code} {error.reason}"
    except Exception as error:  # PyTorch raises anything for sizes that an op does not take.
        return one_line(error)
    kernels: list[SpyreKernel] = []
    for stage, *dealt in zip(stages, *candidates, strict=True):
        named = [_named(kernel, stage.name) for kernel in dealt]
        same = [kernel for kernel in named if _is_committed(kernel, committed)]
        if not same:
            return f"the source of {stage.name} differs there"
        kernels.append(same[0])
    scaled = tuple(_stage(stage, kernel) for stage, kernel in zip(stages, kernels, strict=True))
    try:
        problem = _problem(traced.source, captured, scaled)
    except Exception as error:  # As above, and for what the op takes only with other values.
        return one_line(error)
    if problem is None:
        return "the oracle is not finite there"
    return Scaled(sizes, problem, tuple(kernels), call.identity)


def _named(kernel: SpyreKernel, name: str) -> SpyreKernel:
    return dataclasses.replace(
        kernel, name=name, source=kernel.source.replace(f"def {kernel.name}(", f"def {name}(")
    )


def _is_committed(kernel: SpyreKernel, committed: Sequence[str]) -> bool:
    return {canonical(text) for text in definitions([kernel.source])} <= {canonical(t) for t in committed}


def _bytes(buffer: Buffer) -> int:
    shape, stride, dtype = _layout(buffer)
    return span_of(shape, stride) * dtype.itemsize


def _stage(stage: Stage, kernel: SpyreKernel) -> Stage:
    args = {p.name: p.value for p in kernel.parameters if p.type != "constexpr"}
    constexpr = {p.name: int(p.value) for p in kernel.parameters if p.type == "constexpr"}
    return dataclasses.replace(stage, grid=(kernel.grid,), args=args, constexpr=constexpr)


def _problem(source: Path, captured: CapturedOp, stages: tuple[Stage, ...]) -> Problem | None:
    layouts = {b.name: _layout(b) for b in captured.buffers if b.base is None}
    views = {b.name: (b.base, *_layout(b), b.spec.offset) for b in captured.buffers if b.base is not None}
    names = [b.name for b in captured.buffers if b.role == "input"]
    oracle = float64(captured.call)
    bounds = input_bounds(captured)

    def run(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        x = widened(inputs)
        result = replay(oracle, [x[name] for name in names])
        return rounded(result, x, layouts, captured.outputs, views)

    for positive in (False, True):
        inputs = _inputs(names, layouts, bounds, positive)
        results = run(inputs)
        # Half of rsqrt of mixed signs is NaN, and NaN hides what is not written.
        if not any(t.is_floating_point() and bool(t.isnan().any()) for t in results):
            inputs = _from_the_end(inputs, bounds, run, results)
            return Problem(
                source,
                stages,
                layouts,
                tuple(captured.outputs),
                views,
                functools.partial(dict, inputs),
                run,
            )
    return None


def input_bounds(captured: CapturedOp) -> dict[str, dict[str, Any]]:
    """What `random_tensor` has to know of the op's input buffers beside their layouts, as its arguments."""
    orders = input_orders(captured)
    bounds: dict[str, dict[str, Any]] = {
        name: {"high": index.high, "distinct": index.distinct}
        for name, index in index_ranges(captured).items()
    }
    for name in orders.distinct:
        bounds.setdefault(name, {})["distinct"] = True
    for name in orders.ascending:
        bounds.setdefault(name, {})["ordered"] = True
    for name, scale in input_scales(captured).items():
        bounds.setdefault(name, {})["scale"] = scale
    dtypes = {buffer.name: _layout(buffer)[2] for buffer in captured.buffers}
    for name in positive_inputs(captured):
        if not dtypes[name].is_floating_point:
            bounds.setdefault(name, {})["positive"] = True
    return bounds


def _inputs(
    names: Sequence[str],
    layouts: Mapping[str, Layout],
    bounds: Mapping[str, Mapping[str, Any]],
    positive: bool,
) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        name: random_tensor(
            *layouts[name], generator=generator, **{"positive": positive, **bounds.get(name, {})}
        )
        for name in names
    }


def _from_the_end(
    inputs: dict[str, torch.Tensor],
    bounds: Mapping[str, Mapping[str, Any]],
    run: Callable[[dict[str, torch.Tensor]], Sequence[torch.Tensor]],
    results: Sequence[torch.Tensor],
) -> dict[str, torch.Tensor]:
    """The inputs with every other index counted from the end of its dim, where the op takes such indices.

    An op takes them if it gives the same `results` for i - n as for i: a wrap-around by an extent that was
    baked in gives others. Most ops refuse them (embedding, gather, index_copy_).
    """
    for name, known in bounds.items():
        if name not in inputs or "high" not in known:
            continue
        flat = flat_memory(inputs[name]).clone()
        flat[::2] -= known["high"]
        changed = {**inputs, name: flat.as_strided(inputs[name].shape, inputs[name].stride())}
        try:
            same = all(torch.equal(one, other) for one, other in zip(run(changed), results, strict=True))
        except (IndexError, RuntimeError):
            continue
        inputs = changed if same else inputs
    return inputs


def _layout(buffer: Any) -> Layout:
    spec = buffer.spec
    return spec.shape, spec.stride, getattr(torch, spec.dtype.removeprefix("torch."))
