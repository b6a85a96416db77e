"""`harvest lint` and `harvest simulate`: any KTIR file, not only generated ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError, location
from tracer.ktir.latency.model import LatencyReport, latency
from tracer.ktir.simulator import MAX_STEPS, Function, Module
from tracer.report.errors import BadArgument, MissingPlotter, UnreadableFile
from tracer.report.ktir_arguments import arguments, placed_memory


@dataclass(frozen=True)
class Simulation:
    """A run: for each stored argument its name and tensor, and what the checks and the sanitizer found.

    A run that a fault ended has no outputs, a text that is wrong no function either; what is wrong is among
    the diagnostics. `trace` has a line per executed operation where one was asked for, `latency` the model's
    report.
    """

    function: str
    cores: int
    outputs: tuple[tuple[str, torch.Tensor], ...]
    diagnostics: tuple[Diagnostic, ...]
    trace: tuple[str, ...] = ()
    latency: LatencyReport | None = None

    def lines(self) -> list[str]:
        """The run for people."""
        found = [*self.trace, *([f"{self.function} on {self.cores} cores"] if self.function else [])]
        for name, tensor in self.outputs:
            wide = tensor.double().flatten()
            spread = (
                f"{wide.min():.6g} .. {wide.max():.6g}, mean {wide.mean():.6g}" if wide.numel() else "empty"
            )
            dtype = str(tensor.dtype).removeprefix("torch.")
            found.append(f"{name}: {dtype}{list(tensor.shape)} {spread}")
        found += [str(diagnostic) for diagnostic in self.diagnostics]
        return found + (self.latency.table().splitlines() if self.latency else [])

    def to_json(self) -> dict[str, Any]:
        """The run for machines; tensors as nested lists of at most 64 elements, else their extremes."""
        return {
            "function": self.function,
            "cores": self.cores,
            "outputs": {
                name: {
                    "dtype": str(tensor.dtype).removeprefix("torch."),
                    "shape": list(tensor.shape),
                    "sum": float(tensor.double().sum()),
                    "values": tensor.tolist() if tensor.numel() <= 64 else None,
                }
                for name, tensor in self.outputs
            },
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
            **({"trace": list(self.trace)} if self.trace else {}),
            **({"latency": self.latency.to_json()} if self.latency else {}),
        }


def lint(files: Iterable[Path]) -> list[Diagnostic]:
    """What is wrong with some KTIR files, and what other tools would misread.

    Raises:
        UnreadableFile: a file cannot be read.
    """
    from tracer.ktir.rules.verifier import public_parser_findings

    found: list[Diagnostic] = []
    for file in files:
        try:
            module = Module.parse(_read(file), str(file))
        except KtirError as error:
            found += error.diagnostics
        else:
            found += [*module.warnings, *public_parser_findings(module.module)]
            for name in module.functions:
                found += coverage_findings(module.function(name))
    return found


def simulate(
    file: Path,
    function: str | None = None,
    specs: Sequence[str] = (),
    cores: int | None = None,
    seed: int = 0,
    *,
    memory: Sequence[str] = (),
    uninitialized: Sequence[str] = (),
    trace: bool = False,
    pipeline: str | None = None,
    mode: str = "strict",
    max_steps: int | None = None,
) -> Simulation:
    """Run a function on arguments that are given or made up.

    `specs` are `NAME=VALUE`: a number, a file of torch.save or numpy.save, or `f16[12,64]` for random values
    (integers: zeros). An argument that is not given gets random values and the extent of its views.
    `memory` has `ADDRESS=VALUE` for literal addresses of global memory, in elements, and `CORE:ADDRESS=VALUE`
    for those of a core's scratchpad; a literal address that is not given is filled as an argument is.
    `uninitialized` names outputs whose old content counts as nothing: it must not be read, and all of it be
    written. `trace` notes every operation; `pipeline` (`serial`, `overlapped`, `overlapped_3way`) asks for
    the latency model.
    `mode` is `strict`, or `ktir_cpu` for results and cycles as the public simulator has them.
    `max_steps` bounds the operations in loops that one core executes; None is the simulator's own limit.

    Raises:
        UnreadableFile: a file cannot be read.
        BadArgument: a spec is malformed, an argument is missing that no view describes, or
            `uninitialized` names no output.
    """
    torch.set_num_threads(1)
    max_steps = MAX_STEPS if max_steps is None else max_steps
    try:
        module = Module.parse(_read(file), str(file))
        chosen = module.function(function)
    except KtirError as error:
        return Simulation("", 0, (), error.diagnostics)
    if not -(1 << 63) <= seed < 1 << 64:
        raise BadArgument(argument="--seed", detail=f"{seed} does not fit 64 bits")
    generator = torch.Generator().manual_seed(seed)
    values = arguments(chosen, specs, generator)
    fresh = [_output(chosen, name) for name in uninitialized]
    placed, local = placed_memory(chosen, memory, generator)
    before = {address: tensor.clone() for address, tensor in placed.items()}
    grid = None if cores is None else (cores,)
    found = [*module.warnings, *coverage_findings(chosen, values, grid=grid, max_steps=max_steps)]
    notes: list[str] = []
    watch = (lambda core, op, values: notes.append(_note(core, op, values))) if trace else None
    outputs: list[tuple[str, torch.Tensor]] = []
    report = None
    try:
        result = chosen.run(
            values,
            grid=grid,
            check=False,
            uninitialized=fresh,
            memory=placed or None,
            lx=local or None,
            mode=mode,
            trace=watch,
            max_steps=max_steps,
            # It is in `found`, traced with the elements of the arguments.
            foresee=False,
        )
    except KtirError as error:
        found += error.diagnostics
    else:
        found += result.diagnostics
        names = [chosen.argument_names[position] for position in result.written]
        outputs += zip(names, result.outputs, strict=True)
        outputs += [
            (f"memory {address}", tensor)
            for address, tensor in placed.items()
            if not torch.equal(before[address], tensor)
        ]
        if pipeline:
            report = latency(chosen, values, grid=grid, pipeline=pipeline, mode=mode, max_steps=max_steps)
    x, y, z = chosen.grid
    return Simulation(chosen.name, cores or x * y * z, tuple(outputs), _distinct(found), tuple(notes), report)


def _output(function: Function, name: str) -> int:
    """Position of an argument that the function stores to. Raises BadArgument."""
    outputs = {function.argument_names[position]: position for position in function.stored}
    if (bare := name.removeprefix("%")) not in outputs:
        detail = f"it is no output; those are {', '.join(outputs) or 'none'}"
        raise BadArgument(argument=name, detail=detail)
    return outputs[bare]


def _distinct(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """One finding a kind and place: what the checks of a text say of a run, the run may say again."""
    kept: dict[tuple[str, int, int], Diagnostic] = {}
    for diagnostic in found:
        kept.setdefault((diagnostic.code, diagnostic.line, diagnostic.column), diagnostic)
    return tuple(kept.values())


def _note(core: int, op: Any, values: tuple[Any, ...]) -> str:
    """`core 3 line 12 arith.mulf f32[16, 64] 0.1 .. 2.5`: one executed operation."""
    _, line, _ = location(op)
    return " ".join([f"core {core}", f"line {line}", op.name, *(_shown(value) for value in values)])


def _shown(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value) if isinstance(value, bool | int | float) else type(value).__name__.lower()
    dtype = str(value.dtype).removeprefix("torch.")
    if not value.numel():
        return f"{dtype}{list(value.shape)}"
    wide = value.double()
    return f"{dtype}{list(value.shape)} {wide.min():.6g} .. {wide.max():.6g}"


def save_roofline(outcome: Simulation, path: Path) -> None:
    """Plot where a run with a latency report lies under the roofline.

    Raises:
        UnreadableFile: the file cannot be written.
        MissingPlotter: matplotlib is not installed.
    """
    assert outcome.latency is not None
    try:
        outcome.latency.save_roofline(str(path))
    except ImportError as error:
        raise MissingPlotter() from error
    except (OSError, ValueError) as error:
        raise UnreadableFile(file=path, detail=str(error)) from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(file=file, detail=getattr(error, "strerror", None) or str(error)) from error
