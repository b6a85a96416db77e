"""A folder's KTIR on the built-in simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.validate.buffers import Buffers, place
from tracer.validate.errors import Disturbed, Mismatch, SimulatorFailed
from tracer.validate.problem import Problem
from tracer.validate.stage import Stage, as_pointer


def parse(text: Path | str, kernel: str) -> Any:
    """A parsed and verified module. Raises SimulatorFailed."""
    try:
        return Module.parse(text)
    except KtirError as error:
        raise SimulatorFailed(simulator="the parser", kernel=kernel, detail=first(error)) from error
    except OSError as error:
        raise SimulatorFailed(simulator="the parser", kernel=kernel, detail=str(error)) from error


def first(error: KtirError) -> str:
    """The first diagnostic on one line."""
    text = " ".join(str(error.diagnostics[0] if error.diagnostics else error).split())
    more = len(error.diagnostics) - 1
    return text if more <= 0 else f"{text} (and {more} more)"


def simulate(
    problem: Problem, modules: Mapping[str, Any], stages: Sequence[Stage] | None = None
) -> tuple[torch.Tensor, ...]:
    """Run all stages in order; return the outputs.

    Outputs and intermediates must not be read before they are written. Raises SimulatorFailed, Disturbed.
    """
    stages = problem.stages if stages is None else stages
    tensors: dict[str, torch.Tensor] = {}
    held = []
    for name, layout in problem.layouts.items():
        if name in problem.inputs and name not in problem.written:
            tensors[name] = problem.inputs[name]
            continue
        # Each in a storage of its own: the simulator knows a buffer's end by its storage's.
        places, size = place({name: layout})
        given = {name: problem.inputs[name]} if name in problem.inputs else {}
        buffers = Buffers(torch.empty(size, dtype=torch.uint8), {name: layout}, places, given)
        held.append(buffers)
        tensors[name] = buffers.tensors[name]
    fresh = _written_by_one(stages) - set(problem.inputs)
    for stage in stages:
        function = modules[stage.name].function(stage.name)
        pointers = list(stage.pointers.values())
        allowed = set(tensors) - set(problem.inputs) | problem.written
        for position in function.stored:
            if pointers[position] not in allowed:
                raise Disturbed(
                    tier="T2", detail=f"{stage.name} stores to {pointers[position]}, which is read only"
                )
        try:
            function.run(
                [as_pointer(tensors[buffer]) for buffer in pointers],
                inplace=True,
                uninitialized=[i for i in function.stored if pointers[i] in fresh],
            )
        except KtirError as error:
            raise SimulatorFailed(
                simulator="the built-in simulator", kernel=stage.name, detail=first(error)
            ) from error
    for buffers in held:
        if detail := buffers.disturbed(problem.written):
            raise Disturbed(tier="T2", detail=detail)
    return problem.results(tensors)


def check_simulated(problem: Problem, modules: Mapping[str, Any]) -> None:
    """The stages' KTIR, simulated, equals the oracle. Raises Mismatch, Disturbed, SimulatorFailed."""
    if detail := problem.compare(simulate(problem, modules)):
        raise Mismatch(tier="T2", detail=detail)


def _written_by_one(stages: Sequence[Stage]) -> set[str]:
    """Buffers that a single stage names under an output pointer: those it must cover alone."""
    users = [buffer for stage in stages for name, buffer in stage.pointers.items() if name.startswith("out")]
    return {buffer for buffer in users if users.count(buffer) == 1}
