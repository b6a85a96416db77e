"""An op at one problem size: stages, layouts, inputs and oracle; and its runs in the Triton interpreter."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from tracer.validate.buffers import Buffers, place
from tracer.validate.errors import Disturbed, Mismatch
from tracer.validate.interpreter import Launch, SharedMemory, interpreter
from tracer.validate.oracle import Layout, View, flat_memory
from tracer.validate.stage import TRITON_TYPES, Stage
from tracer.validate.tolerance import Expected, difference, expect

MAGNIFIED = 32
"""Factor of the inputs' second set of values."""

Run = Callable[[dict[str, torch.Tensor]], tuple[torch.Tensor, ...]]


@dataclass
class Problem:
    """What a folder says of its op, at the traced size or at another.

    `source` is the file with the kernels. Inputs, and what the oracle makes of them, are computed once.
    """

    source: Path
    stages: tuple[Stage, ...]
    layouts: Mapping[str, Layout]
    outputs: tuple[str, ...]
    views: Mapping[str, View]
    make_inputs: Callable[[], dict[str, torch.Tensor]]
    run: Run

    @functools.cached_property
    def inputs(self) -> dict[str, torch.Tensor]:
        """The op's inputs by buffer name."""
        return self.make_inputs()

    @functools.cached_property
    def expected(self) -> tuple[Expected, ...]:
        """The oracle's outputs with what is allowed of each element."""
        between = [layout[2] for name, layout in self.layouts.items() if name in self.intermediates]
        with torch.no_grad():
            return expect(self.run, self.inputs, self.outputs, between)

    @property
    def intermediates(self) -> set[str]:
        """Buffers that are neither inputs nor returned."""
        bases = {view[0] for view in self.views.values()}
        return set(self.layouts) - set(self.inputs) - set(self.outputs) - bases

    @property
    def written(self) -> set[str]:
        """Inputs that the op changes: those among its outputs."""
        return set(self.inputs) & set(self.outputs)

    def results(self, tensors: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """The outputs among the buffers of a run."""
        return tuple(self._result(name, tensors) for name in self.outputs)

    def _result(self, name: str, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if name not in self.views:
            return tensors[name]
        base, shape, stride, dtype, offset = self.views[name]
        whole = tensors[base] if tensors[base].dtype == dtype else tensors[base].view(dtype)
        return whole.as_strided(tuple(shape), tuple(stride), whole.storage_offset() + offset)

    def compare(self, results: Sequence[torch.Tensor]) -> str:
        """What is wrong with the outputs of a run; empty where nothing is."""
        found = (difference(e, r) for e, r in zip(self.expected, results, strict=True))
        return "; ".join(text for text in found if text)


def magnified(problem: Problem) -> Problem:
    """A problem with floating inputs of magnitudes up to 64: exp(x + max) overflows there, exp(x) does not.

    Inputs at most 2 cannot tell exp(x - max) from exp(x + max), the two being equal after the division.
    """
    inputs = {
        name: (flat_memory(tensor) * MAGNIFIED).as_strided(tensor.shape, tensor.stride())
        if tensor.is_floating_point()
        else tensor
        for name, tensor in problem.inputs.items()
    }
    return dataclasses.replace(problem, make_inputs=lambda: inputs)


def turned(problem: Problem) -> Problem:
    """A problem with inputs reversed in memory: what an op selects lies in the other half there."""
    inputs = {
        name: flat_memory(tensor).flip(0).as_strided(tensor.shape, tensor.stride())
        for name, tensor in problem.inputs.items()
    }
    return dataclasses.replace(problem, make_inputs=lambda: inputs)


def ascending(problem: Problem) -> Problem:
    """A problem with inputs that ascend in memory: its least and greatest values lie in different halves."""
    inputs = {
        name: flat_memory(tensor).sort().values.as_strided(tensor.shape, tensor.stride())
        for name, tensor in problem.inputs.items()
    }
    return dataclasses.replace(problem, make_inputs=lambda: inputs)


def descending(problem: Problem) -> Problem:
    """`ascending`, reversed in memory."""
    return turned(ascending(problem))


def interpret(problem: Problem, tier: str, stages: Sequence[Stage] | None = None) -> tuple[torch.Tensor, ...]:
    """Run the stages in Triton's interpreter, one after the other, and return the outputs.

    Raises Disturbed where something changed that must not, and the errors of the interpreter.
    """
    stages = problem.stages if stages is None else stages
    places, size = place(problem.layouts)
    memory = SharedMemory(size)
    try:
        block = torch.frombuffer(memory.bytes, dtype=torch.uint8)
        buffers = Buffers(block, problem.layouts, places, problem.inputs)
        launches = [_launch(stage, problem, {n: at.start for n, at in places.items()}) for stage in stages]
        interpreter().run(problem.source, launches, memory, [(at.start, at.length) for at in places.values()])
    finally:
        memory.close()
    if detail := buffers.disturbed(problem.written):
        raise Disturbed(tier=tier, detail=detail)
    return problem.results(buffers.tensors)


def check_interpreted(problem: Problem, tier: str) -> None:
    """The stages, interpreted, equal the oracle. Raises Mismatch, Disturbed, and the interpreter's errors."""
    if detail := problem.compare(interpret(problem, tier)):
        raise Mismatch(tier=tier, detail=detail)


def _launch(stage: Stage, problem: Problem, starts: Mapping[str, int]) -> Launch:
    args: dict[str, int | float | tuple[int, str]] = {
        name: (starts[value], f"*{TRITON_TYPES[problem.layouts[value][2]]}")
        if isinstance(value, str)
        else value
        for name, value in stage.args.items()
    }
    return Launch(stage.name, args, stage.constexpr, stage.grid)
