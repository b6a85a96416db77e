"""The tiers as checks of one folder. Each raises a HarvestError HV6xx where its tier does not hold."""

from __future__ import annotations

import dataclasses
from typing import Any

from tracer.errors import HarvestError
from tracer.validate.buffers import same_bits
from tracer.validate.controls import Score, score
from tracer.validate.errors import NotProved, NotSpyreShaped, SurvivingControl
from tracer.validate.exact_sums import with_exact_sums
from tracer.validate.folder import Folder, use_one_thread
from tracer.validate.fresh import check_fresh, check_source
from tracer.validate.problem import Problem, check_interpreted, interpret, magnified
from tracer.validate.scaling import Scaled
from tracer.validate.shape import accesses, check_descriptor_io, check_limits, check_reads, check_writes
from tracer.validate.simulate import check_simulated, parse

CORES = (1, 4, 16, 32)
"""Core counts at which a kernel must give the same bits."""


def check_t0(folder: Folder, *, full_size: bool = False) -> None:
    """T0 in the interpreter: at the traced size, or for a large op at a reduced one unless `full_size`."""
    use_one_thread()
    check_interpreted(_sized(folder, full_size), "T0")


def check_t1(folder: Folder) -> int:
    """T1; returns the largest number of bytes of live tiles.

    Raises StaleSource where the source is not what the tool makes of the op, and NotProved, after everything
    else held, where the op has no other problem size.
    """
    use_one_thread()
    problem = folder.problem
    check_descriptor_io(problem.source)
    live = check_limits(problem, folder.modules)
    if folder.is_large:
        light = folder.light
        check_writes(light, accesses(light, folder.modules))
    else:
        found = accesses(problem, folder.modules)
        check_writes(problem, found)
        check_reads(problem, found)
    check_source(folder.path, str(folder.constant("CALL")))
    scaled = _scaled(folder)
    if folder.is_large:
        check_reads(scaled.problem, accesses(scaled.problem, lowered(scaled)))
    check_cores(scaled.problem)
    check_interpreted(magnified(scaled.problem), "T1 with large values")
    for problem in with_exact_sums(scaled.problem):
        check_interpreted(problem, "T1 with exact sums")
    return live


def check_cores(problem: Problem) -> None:
    """The same bits on 1, 4, 16 and 32 cores, equal to the oracle. Raises NotSpyreShaped, Mismatch ..."""
    results = []
    for cores in CORES:
        stages = tuple(_on(stage, cores) for stage in problem.stages)
        results.append(interpret(problem, "T1", stages))
    if detail := problem.compare(results[0]):
        raise NotSpyreShaped(detail=f"at another problem size {detail}")
    for cores, result in zip(CORES, results, strict=True):
        for one, other, name in zip(results[0], result, problem.outputs, strict=True):
            if not same_bits(one.reshape(-1), other.reshape(-1)):
                raise NotSpyreShaped(detail=f"{name} on {cores} cores differs from {CORES[0]}")


def check_t2(folder: Folder, *, full_size: bool = False) -> None:
    """T2 on the built-in simulator: the committed KTIR at the traced size, and that the source lowers to it.

    For a large op, unless `full_size`, what is run is the committed source, lowered again at a reduced size.
    """
    use_one_thread()
    try:
        if folder.is_large and not full_size:
            scaled = _scaled(folder)
            check_simulated(scaled.problem, lowered(scaled))
        else:
            check_simulated(folder.problem, folder.modules)
        if isinstance(folder.scaled, Scaled):
            for problem in with_exact_sums(folder.scaled.problem):
                check_simulated(problem, lowered(folder.scaled))
    except HarvestError as error:
        check_fresh(folder.path, folder.problem, error)
        raise
    check_fresh(folder.path, folder.problem)


def check_controls(folder: Folder) -> Score:
    """Every negative control fails the comparison. Raises SurvivingControl."""
    use_one_thread()
    found = score(_sized(folder, full_size=False))
    if found.survived:
        raise SurvivingControl(detail=", ".join(found.survived))
    return found


def lowered(scaled: Scaled) -> dict[str, Any]:
    """The KTIR of an op at another size, by kernel name: the committed source, lowered again."""
    from tracer.lower import lower

    return {kernel.name: parse(lower(kernel).text, kernel.name) for kernel in scaled.kernels}


def _sized(folder: Folder, full_size: bool) -> Problem:
    return folder.problem if full_size or not folder.is_large else _scaled(folder).problem


def _scaled(folder: Folder) -> Scaled:
    found = folder.scaled
    if isinstance(found, Scaled):
        return found
    # Of an edited source it goes without saying that no size gives it.
    check_source(folder.path, str(folder.constant("CALL")))
    raise NotProved(detail=f"no other problem size gives the same source ({found})")


def _on(stage: Any, cores: int) -> Any:
    return dataclasses.replace(stage, grid=(cores,), constexpr={**stage.constexpr, "CORES": cores})
