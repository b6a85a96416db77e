"""`harvest lint` and `harvest simulate`: any KTIR file, not only generated ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tracer.ktir.diagnostics import Diagnostic, KtirError, location
from tracer.ktir.dialect import ConstructMemoryViewOp
from tracer.ktir.latency import LatencyReport, latency
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.dtypes import element
from tracer.report.errors import BadArgument, MissingPlotter, UnreadableFile

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


@dataclass(frozen=True)
class Simulation:
    """A run: for each stored argument its name and tensor, and what the sanitizer found.

    `trace` has a line per executed operation where one was asked for, `latency` the model's report.
    """

    function: str
    cores: int
    outputs: tuple[tuple[str, torch.Tensor], ...]
    diagnostics: tuple[Diagnostic, ...]
    trace: tuple[str, ...] = ()
    latency: LatencyReport | None = None

    def lines(self) -> list[str]:
        """The run for people."""
        found = [*self.trace, f"{self.function} on {self.cores} cores"]
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
    from tracer.ktir.coverage_checks import coverage_findings
    from tracer.ktir.verifier import public_parser_findings

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
    trace: bool = False,
    pipeline: str | None = None,
) -> Simulation:
    """Run a function on arguments that are given or made up.

    `specs` are `NAME=VALUE`: a number, a file of torch.save or numpy.save, or `f16[12,64]` for random values
    (integers: zeros). An argument that is not given gets random values and the extent of its views. `trace`
    notes every operation; `pipeline` (`serial`, `overlapped`, `overlapped_3way`) asks for the latency model.

    Raises:
        UnreadableFile: a file cannot be read.
        BadArgument: a spec is malformed, or an argument is missing that no view describes.
        KtirError: the text is wrong, or the run has a fault.
    """
    torch.set_num_threads(1)
    chosen = Module.parse(_read(file), str(file)).function(function)
    given = dict(_split(spec) for spec in specs)
    if unknown := sorted(set(given) - set(chosen.argument_names)):
        raise BadArgument(argument=unknown[0], detail=f"the function has {', '.join(chosen.argument_names)}")
    generator = torch.Generator().manual_seed(seed)
    views = _views(chosen.op)
    arguments: list[Any] = []
    for name, value in zip(chosen.argument_names, chosen.op.body.block.args, strict=True):
        if name in given:
            arguments.append(_value(name, given[name], generator))
        elif value in views:
            span, dtype = views[value]
            arguments.append(_random((span,), dtype, generator))
        else:
            raise BadArgument(argument=name, detail="no view says how large it is; give it with --arg")
    grid = None if cores is None else (cores,)
    notes: list[str] = []
    watch = (lambda core, op, values: notes.append(_note(core, op, values))) if trace else None
    result = chosen.run(arguments, grid=grid, check=False, trace=watch)
    report = latency(chosen, arguments, grid=grid, pipeline=pipeline) if pipeline else None
    x, y, z = chosen.grid
    names = [chosen.argument_names[position] for position in result.written]
    outputs = tuple(zip(names, result.outputs, strict=True))
    return Simulation(chosen.name, cores or x * y * z, outputs, result.diagnostics, tuple(notes), report)


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


def _split(spec: str) -> tuple[str, str]:
    name, separator, value = spec.partition("=")
    if not separator or not name or not value:
        raise BadArgument(argument=spec, detail="write NAME=VALUE")
    return name.removeprefix("%"), value


def _value(name: str, text: str, generator: torch.Generator) -> Any:
    if shaped := re.fullmatch(r"(\w+)\[([\d,x ]*)\]", text):
        if shaped[1] not in DTYPES:
            raise BadArgument(argument=name, detail=f"no dtype {shaped[1]}; choose from {', '.join(DTYPES)}")
        shape = tuple(int(extent) for extent in re.findall(r"\d+", shaped[2]))
        return _random(shape, DTYPES[shaped[1]], generator)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        pass
    try:
        if text.endswith(".npy"):
            import numpy

            return torch.from_numpy(numpy.load(text, allow_pickle=False))
        return torch.load(text, weights_only=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise BadArgument(argument=name, detail=f"neither number, dtype[shape] nor file: {text}") from error


def _random(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)
    return torch.zeros(shape, dtype=dtype)


def _views(function: Any) -> Mapping[Any, tuple[int, torch.dtype]]:
    """Elements that the static views of each argument span, and their dtype."""
    found: dict[Any, tuple[int, torch.dtype]] = {}
    for op in function.walk():
        if isinstance(op, ConstructMemoryViewOp):
            sizes, strides = op.static_sizes.get_values(), op.static_strides.get_values()
            if all(isinstance(n, int) and n >= 0 for n in (*sizes, *strides)):
                span = 1 + sum((int(n) - 1) * int(s) for n, s in zip(sizes, strides, strict=True))
                dtype = element(op.view.type).dtype
                found[op.pointer] = (max(span, found.get(op.pointer, (0, dtype))[0]), dtype)
    return found
