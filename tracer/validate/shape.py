"""The static half of T1: grid, scratchpad, descriptor IO, coverage."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tracer.ktir.coverage.accesses import AccessMap, Coverage, coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator.liveness import peak
from tracer.target import SPYRE, SpyreTarget
from tracer.validate.errors import NotCovered, NotSpyreShaped
from tracer.validate.oracle import flat_memory, span_of
from tracer.validate.problem import Problem
from tracer.validate.simulate import first
from tracer.validate.stage import as_pointer
from tracer.validate.tolerance import Expected

POINTER_IO = {
    "load", "store", "make_block_ptr", "advance", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor",
}  # fmt: skip
"""Functions of `triton.language` that access memory without a descriptor."""


def check_descriptor_io(source: Path) -> None:
    """Every access of the kernels goes through a tensor descriptor. Raises NotSpyreShaped."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("tl", "triton", "language")
            and node.attr in POINTER_IO
        ):
            raise NotSpyreShaped(detail=f"line {node.lineno} uses tl.{node.attr}")


def check_limits(problem: Problem, modules: Mapping[str, Any], target: SpyreTarget = SPYRE) -> int:
    """Grid and live tiles fit the hardware; returns the largest number of live bytes. Raises
    NotSpyreShaped."""
    largest = 0
    for stage in problem.stages:
        function = modules[stage.name].function(stage.name)
        programs = 1
        for extent in stage.grid:
            programs *= extent
        cores = function.grid[0] * function.grid[1] * function.grid[2]
        if max(programs, cores) > target.cores:
            raise NotSpyreShaped(
                detail=f"{stage.name} launches {max(programs, cores)} programs, {target.cores} cores exist"
            )
        if programs != cores:
            raise NotSpyreShaped(detail=f"{stage.name}: grid {programs} in the wrapper, {cores} in its KTIR")
        if stage.constexpr.get("CORES", programs) != programs:
            raise NotSpyreShaped(detail=f"{stage.name}: CORES differs from the grid of {programs}")
        live, operation = peak(function.op)
        largest = max(largest, live)
        if live > target.lx_bytes:
            raise NotSpyreShaped(
                detail=f"{stage.name} holds {live} bytes of tiles at once at {operation.name};"
                f" a core has {target.lx_bytes}"
            )
    return largest


def accesses(problem: Problem, modules: Mapping[str, Any]) -> list[Coverage]:
    """What every stage reads and writes, over all cores. Raises NotCovered where it cannot be told."""
    found = []
    for stage in problem.stages:
        tensors = [problem.inputs.get(buffer) for buffer in stage.pointers.values()]
        given = [as_pointer(tensor) if tensor is not None else None for tensor in tensors]
        # Mostly integers only steer addresses; memory of any size stands for the rest.
        integers = [
            None if tensor is None or tensor.is_floating_point() else pointer
            for tensor, pointer in zip(tensors, given, strict=True)
        ]
        function = modules[stage.name].function(stage.name)
        try:
            found.append(_coverage(function, integers) or coverage(function, given))
        except KtirError as error:
            raise NotCovered(detail=f"{stage.name}: {first(error)}") from error
    return found


def _coverage(function: Any, args: list[Any]) -> Coverage | None:
    """What a function reads and writes; None where that depends on elements of memory that is not given."""
    try:
        return coverage(function, args)
    except KtirError as error:
        if all(diagnostic.code == "KT304" for diagnostic in error.diagnostics):
            return None
        raise


def merged(
    problem: Problem, found: list[Coverage], side: str, *, each: bool = False
) -> dict[str, list[AccessMap]]:
    """Accesses by buffer: of all stages together, or with `each` one map per stage. `side` is reads or
    writes."""
    maps: dict[str, list[AccessMap]] = {}
    for stage, cover in zip(problem.stages, found, strict=True):
        here: dict[str, AccessMap] = {}
        for position, buffer in enumerate(stage.pointers.values()):
            part = getattr(cover, side).get(position)
            if part is None:
                continue
            whole = here.setdefault(buffer, AccessMap())
            for geometry, boxes in part.boxes.items():
                whole.boxes.setdefault(geometry, []).extend(boxes)
            whole.points.extend(part.points)
        for buffer, part in here.items():
            old = maps.setdefault(buffer, [])
            if each or not old:
                old.append(part)
                continue
            for geometry, boxes in part.boxes.items():
                old[0].boxes.setdefault(geometry, []).extend(boxes)
            old[0].points.extend(part.points)
    return maps


def check_writes(problem: Problem, found: list[Coverage]) -> None:
    """Every element of every output is written, none twice by one stage. Raises NotCovered.

    Of an input that the op changes in place, only the second half is asked: the op may leave elements as they
    are, and the comparison with the oracle says which.
    """
    given = set(problem.inputs)
    targets = {problem.views[name][0] if name in problem.views else name for name in problem.outputs}
    together = merged(problem, found, "writes")
    for name in sorted(targets - given):
        shape, stride, _ = problem.layouts[name]
        maps = together.get(name, [AccessMap()])
        if missing := maps[0].missing(shape, stride):
            raise NotCovered(
                detail=f"{missing.count} elements of {name} are never written,"
                f" first {list(missing.first or ())}"
            )
    for name, maps in merged(problem, found, "writes", each=True).items():
        shape, stride, _ = problem.layouts[name]
        for part in maps:
            if twice := part.missing(shape, stride, wanted="many"):
                raise NotCovered(
                    detail=f"{twice.count} elements of {name} are written more than once,"
                    f" first {list(twice.first or ())}"
                )


def check_reads(problem: Problem, found: list[Coverage]) -> None:
    """Whatever input element no core reads does not matter to the oracle. Raises NotCovered.

    This is what catches a contraction over half of K. An element that is not read is changed, the oracle is
    run again, and its result must stay the same. (An input that is changed in place keeps what no core
    writes.)
    """
    together = merged(problem, found, "reads")
    written = merged(problem, found, "writes")
    for name, tensor in problem.inputs.items():
        shape, stride, _ = problem.layouts[name]
        maps = together.get(name, [AccessMap()])
        unread = maps[0].missing(shape, stride)
        if not unread:
            continue
        span = span_of(shape, stride)
        counts = _element_counts(maps, span)
        changed = dict(problem.inputs)
        flat = torch.where(counts == 0, other_values(flat_memory(tensor)), flat_memory(tensor))
        changed[name] = flat.as_strided(tensor.shape, tensor.stride())
        with torch.no_grad():
            results = problem.run(changed)
        for expected, result in zip(problem.expected, results, strict=True):
            if expected.name == name:
                kept = _element_counts(written.get(name), span) == 0
                kept = kept.as_strided(tensor.shape, tensor.stride())
                result = torch.where(kept, expected.value, result)
            if not identical(expected, result):
                raise NotCovered(
                    detail=f"{unread.count} elements of {name} are never read, first"
                    f" {list(unread.first or ())}, but {expected.name} depends on them"
                )


def _element_counts(maps: list[AccessMap] | None, span: int) -> torch.Tensor:
    """Accesses per element of the memory that a buffer spans."""
    if not maps or not (maps[0].boxes or maps[0].points):
        return torch.zeros(span, dtype=torch.int16)
    return maps[0].element_counts(span)[:span]


def other_values(values: torch.Tensor) -> torch.Tensor:
    """Values that differ from the given ones everywhere, integers within the same range."""
    if values.dtype == torch.bool:
        return ~values
    if values.dtype.is_floating_point:
        return values * -2 + 1
    low, high = int(values.min()), int(values.max())
    return torch.where(values == high, low, values + 1) if high > low else values


def identical(expected: Expected, result: torch.Tensor) -> bool:
    """Whether an oracle gave the same values again."""
    same = expected.value == result
    if result.is_floating_point():
        same |= expected.value.isnan() & result.isnan()
    return bool(same.all())
