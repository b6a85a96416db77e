"""A folder's KTIR on the public simulator `ktir_cpu`, where it is installed: somebody else's reading of
KTIR."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from typing import TYPE_CHECKING, Any

import torch

from tracer.validate.errors import Mismatch, NotProved, SimulatorFailed
from tracer.validate.oracle import flat_memory, span_of
from tracer.validate.problem import Problem
from tracer.validate.tolerance import Expected, difference, expect

if TYPE_CHECKING:
    from tracer.validate.folder import Folder

DTYPES = (torch.float16, torch.float32, torch.int32, torch.int64)
"""What it takes as an argument; it has no array of bools, bytes, bfloat16 or float64."""


def unavailable() -> str:
    """Why the simulator cannot be used here; empty where it can."""
    return "" if importlib.util.find_spec("ktir_cpu") else "ktir_cpu is not installed"


def unsupported(problem: Problem) -> str:
    """Why it cannot run a problem; empty where nothing is known to stand against it."""
    wrong = sorted({str(dtype) for _, _, dtype in problem.layouts.values() if dtype not in DTYPES})
    return f"ktir_cpu takes no arguments of {', '.join(wrong)}" if wrong else ""


def check(folder: Folder) -> None:
    """The committed KTIR, run there stage by stage, equals the oracle.

    Raises Mismatch for a wrong result, SimulatorFailed where the scratchpad overflows, and NotProved where
    the simulator stops at something it does not know: it has no error type of its own to tell that from a
    fault.
    """
    from ktir_cpu import KTIRInterpreter  # type: ignore[import-not-found,unused-ignore]

    problem = folder.problem
    memory: dict[str, torch.Tensor] = {}
    for name, (shape, stride, dtype) in problem.layouts.items():
        given = problem.inputs.get(name)
        memory[name] = (
            flat_memory(given) if given is not None else torch.zeros(span_of(shape, stride), dtype=dtype)
        )
    for stage in problem.stages:
        interpreter = KTIRInterpreter()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                interpreter.load((folder.path / stage.ktir).read_text(encoding="utf-8"))
                names = interpreter.arg_names(stage.name)
                arrays = {n: memory[b].numpy() for n, b in zip(names, stage.pointers.values(), strict=True)}
                found: dict[str, Any] = interpreter.execute_function(stage.name, **arrays)
        except MemoryError as error:
            raise SimulatorFailed(simulator="ktir_cpu", kernel=stage.name, detail=str(error)) from error
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            raise NotProved(
                detail=f"ktir_cpu stopped at {stage.name}: {type(error).__name__}: {text}"
            ) from error
        for (pointer, buffer), name in zip(stage.pointers.items(), names, strict=True):
            if pointer.startswith("out"):
                memory[buffer] = torch.from_numpy(found[name]).reshape(-1)
    tensors = {
        name: memory[name].as_strided(tuple(shape), tuple(stride))
        for name, (shape, stride, _) in problem.layouts.items()
    }
    differences = (difference(e, r) for e, r in zip(_expected(folder), problem.results(tensors), strict=True))
    if detail := "; ".join(text for text in differences if text):
        raise Mismatch(tier="T2 on ktir_cpu", detail=detail)


def _expected(folder: Folder) -> tuple[Expected, ...]:
    """The oracle, with what this simulator rounds beyond KTIR's meaning.

    It rounds the product of a matmul of float16 tiles to float16 before it adds it to a float32 accumulator
    (measured), so that each block of a contraction is rounded once more.
    """
    problem = folder.problem
    texts = [(folder.path / stage.ktir).read_text(encoding="utf-8") for stage in problem.stages]
    if not any(re.search(r"matmul ins\([^)]*xf16>", text) for text in texts):
        return problem.expected
    with torch.no_grad():
        return expect(
            problem.run,
            problem.inputs,
            problem.outputs,
            between=[torch.float16],
            products=torch.finfo(torch.float16).eps / 2,
        )
