"""T0 on a GPU: the committed Triton source, compiled by stock Triton, against the oracle.

Descriptors on a GPU want rows of whole 16 bytes, and ignore accesses silently where they are not. Where the
traced size breaks that, evidence is taken at an aligned size that is prepared beforehand, on a machine with
the pinned PyTorch; taking it needs only torch and Triton (2.11 with 3.6 or newer), NumPy and this package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tracer.models.replay import float64, replay
from tracer.validate.buffers import Buffers, place
from tracer.validate.call_text import parse_identity
from tracer.validate.errors import Disturbed, Mismatch
from tracer.validate.folder import Folder
from tracer.validate.gpu_limits import smaller, undo_overrun
from tracer.validate.inputs import random_tensor
from tracer.validate.oracle import Layout, rounded, widened
from tracer.validate.problem import Problem
from tracer.validate.stage import Stage, run_stages, unaligned

ALIGNED = (4, 8, 16)
"""What extents are a multiple of so that rows are whole 16 bytes: float32, float16, bytes."""


def reason_unaligned(problem: Problem) -> str:
    """Why a GPU would not run a problem; empty where it would. Layouts decide; no data is needed."""
    tensors = {
        name: torch.empty(0, dtype=dtype, device="meta") for name, (_, _, dtype) in problem.layouts.items()
    }
    reasons = (unaligned(stage, tensors) for stage in problem.stages)
    return next((reason for reason in reasons if reason), "")


def prepare(folder: Folder) -> dict[str, Any]:
    """An aligned problem size of a folder whose traced size is not, JSON-ready; with a `reason` where there
    is none."""
    from tracer.capture import capture
    from tracer.validate.scaling import input_bounds, scale

    found = scale(
        folder.problem,
        str(folder.constant("CALL")),
        is_large=folder.is_large,
        multiples=ALIGNED,
        objection=reason_unaligned,
    )
    if isinstance(found, str):
        return {"reason": found}
    problem = found.problem
    return {
        "identity": found.identity,
        "stages": [{"args": s.args, "constexpr": s.constexpr, "grid": list(s.grid)} for s in problem.stages],
        "layouts": {n: [list(s), list(t), str(d)] for n, (s, t, d) in problem.layouts.items()},
        "views": {n: [b, list(s), list(t), str(d), o] for n, (b, s, t, d, o) in problem.views.items()},
        "outputs": list(problem.outputs),
        "inputs": list(problem.inputs),
        "ranges": input_bounds(capture(parse_identity(found.identity))),
    }


def prepared(folder: Folder, data: Mapping[str, Any]) -> Problem:
    """The problem that `prepare` described."""
    call = parse_identity(data["identity"])
    oracle = float64(call)
    layouts: dict[str, Layout] = {
        n: (tuple(s), tuple(t), _dtype(d)) for n, (s, t, d) in data["layouts"].items()
    }
    views = {n: (b, tuple(s), tuple(t), _dtype(d), o) for n, (b, s, t, d, o) in data["views"].items()}
    names, outputs = data["inputs"], tuple(data["outputs"])

    def run(inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        x = widened(inputs)
        return rounded(replay(oracle, [x[name] for name in names]), x, layouts, outputs, views)

    def make_inputs(positive: bool = False) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        made = {
            name: random_tensor(
                *layouts[name], generator=generator, **{"positive": positive, **data["ranges"].get(name, {})}
            )
            for name in names
        }
        nan = any(t.is_floating_point() and bool(t.isnan().any()) for t in run(made))
        return make_inputs(positive=True) if nan and not positive else made

    stages = tuple(
        dataclasses.replace(stage, args=new["args"], constexpr=new["constexpr"], grid=tuple(new["grid"]))
        for stage, new in zip(folder.problem.stages, data["stages"], strict=True)
    )
    return Problem(folder.problem.source, stages, layouts, outputs, views, make_inputs, run)


def check_device(problem: Problem, device: torch.device) -> dict[str, Any]:
    """The stages on `device` equal the oracle; outputs are poisoned before. Raises Mismatch, Disturbed.

    Returns what is worth a note in the evidence: `blocks`, the constants of every stage where tiles that are
    made for a scratchpad of 2 MiB had to become smaller, and `overrun`, bytes written past a buffer's end
    because a GPU stores 16 bytes at a time.
    """
    stages: tuple[Stage, ...] | None = problem.stages
    notes: dict[str, Any] = {}
    while stages is not None:
        try:
            overrun = _check_stages(problem, stages, device)
        except Exception as error:
            # Triton has no public name for it that all versions share.
            if type(error).__name__ != "OutOfResources":
                raise
            stages = smaller(stages, problem.source.read_text(encoding="utf-8"))
            if stages is None:
                raise
            notes["blocks"] = [stage.constexpr for stage in stages]
        else:
            return {**notes, "overrun": overrun} if overrun else notes
    raise AssertionError("a problem has stages")


def _check_stages(problem: Problem, stages: Sequence[Stage], device: torch.device) -> dict[str, int]:
    places, size = place(problem.layouts)
    memory = torch.empty(size, dtype=torch.uint8, device=device)
    buffers = Buffers(memory, problem.layouts, places, problem.inputs)
    before = memory.clone()
    run_stages(stages, buffers.tensors, device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    overrun = undo_overrun(memory, before, places)
    buffers.fetch()
    if detail := buffers.disturbed(problem.written):
        raise Disturbed(tier="T0 on a GPU", detail=detail)
    if detail := problem.compare(problem.results(buffers.tensors)):
        raise Mismatch(tier="T0 on a GPU", detail=detail)
    return overrun


def _dtype(spelling: str) -> torch.dtype:
    found = getattr(torch, spelling.removeprefix("torch."))
    assert isinstance(found, torch.dtype)
    return found
