"""Negative controls: wrong results that the comparison has to reject."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from tracer.errors import HarvestError
from tracer.validate.buffers import poison
from tracer.validate.oracle import flat_memory
from tracer.validate.problem import Problem, ascending, descending, interpret, magnified, turned
from tracer.validate.shape import identical
from tracer.validate.stage import Stage


@dataclass
class Score:
    """Controls by name: caught, survived, or left out with the reason."""

    caught: list[str] = field(default_factory=list)
    survived: list[str] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{len(self.caught)}/{len(self.caught) + len(self.survived)}"


def score(problem: Problem) -> Score:
    """Run every control against the comparison that the tiers use.

    Excluded are controls that are no mistake: zeros where the oracle is zero throughout, an untouched output
    where the op changes nothing, an operand whose change leaves the oracle as it is or that the op does not
    take (an integer divided by 0), half of a reduction where the kernels have none, or where it ends in bools
    (`any` of a hundred mixed bools is true for either half).
    """
    found = Score()
    with torch.no_grad():
        for name, result, excuse in _results(problem):
            if excuse:
                found.excluded[name] = excuse
            elif problem.compare(result):
                found.caught.append(name)
            else:
                found.survived.append(name)
        _halves(problem, found)
    return found


def _results(problem: Problem) -> Iterator[tuple[str, tuple[torch.Tensor, ...], str]]:
    right = tuple(expected.value for expected in problem.expected)
    for position, expected in enumerate(problem.expected):
        suffix = f" {expected.name}" if len(right) > 1 else ""
        value = expected.value
        empty = "the output has no elements" if value.numel() == 0 else ""
        zeros = torch.zeros_like(value)
        excuse = empty or ("the oracle is zero throughout" if identical(expected, zeros) else "")
        yield f"zeros{suffix}", _with(right, position, zeros), excuse
        untouched = _untouched(problem, expected.name, value)
        excuse = empty or ("the op changes nothing" if identical(expected, untouched) else "")
        yield f"untouched{suffix}", _with(right, position, untouched), excuse
    for name, tensor in problem.inputs.items():
        for kind, other in (("zeroed", _zeroed(tensor)), ("permuted", _permuted(tensor))):
            try:
                result = problem.run({**problem.inputs, name: other})
            except Exception as error:  # PyTorch raises anything for values that an op does not take: n // 0.
                yield f"{kind} {name}", right, f"the op does not take it: {type(error).__name__}"
                continue
            same = all(identical(e, r) for e, r in zip(problem.expected, result, strict=True))
            yield f"{kind} {name}", result, "the oracle does not depend on it" if same else ""


def _with(results: tuple[torch.Tensor, ...], position: int, other: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (*results[:position], other, *results[position + 1 :])


def _untouched(problem: Problem, name: str, value: torch.Tensor) -> torch.Tensor:
    if name in problem.inputs:
        return problem.inputs[name]
    return poison(torch.empty(value.numel(), dtype=value.dtype)).view(value.shape)


def _zeroed(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(flat_memory(tensor)).as_strided(tensor.shape, tensor.stride())


def _permuted(tensor: torch.Tensor) -> torch.Tensor:
    flat = flat_memory(tensor)
    # An odd shift: no axis of a power of two maps onto itself.
    return flat.roll(flat.numel() // 2 | 1).as_strided(tensor.shape, tensor.stride())


def _halves(problem: Problem, found: Score) -> None:
    """Every reduction cut to half of its length, in the kernel that is launched."""
    axes = [
        (position, name)
        for position, stage in enumerate(problem.stages)
        for name, value in stage.args.items()
        if name.startswith("r") and name.endswith("_size") and isinstance(value, int) and value > 1
    ]
    if not axes:
        found.excluded["half a reduction"] = "the kernels have no reduction"
    for position, name in axes:
        label = f"half of {name.removesuffix('_size')} in {problem.stages[position].name}"
        if all(expected.value.dtype == torch.bool for expected in problem.expected):
            found.excluded[label] = "it ends in bools"
            continue
        stages = _halved(problem, position, name)
        wrong = _differs(problem, stages)
        # The maximum of half a row serves a softmax as well, until an exponential overflows; and what an op
        # selects may all lie in one half, or as well in both where many values are equal.
        for change in (magnified, turned, ascending, descending):
            if not wrong:
                other = change(problem)
                wrong = "" if _differs(other, problem.stages) else _differs(other, stages)
        (found.caught if wrong else found.survived).append(label)


def _differs(problem: Problem, stages: Sequence[Stage]) -> str:
    """What is wrong with a run of `stages`; empty where the comparison accepts it."""
    try:
        return problem.compare(interpret(problem, "T0", stages))
    except HarvestError as error:
        return error.reason


def _halved(problem: Problem, position: int, name: str) -> list[Stage]:
    stages = list(problem.stages)
    stage = stages[position]
    value = stage.args[name]
    assert isinstance(value, int)
    stages[position] = dataclasses.replace(stage, args={**stage.args, name: value // 2})
    return stages
