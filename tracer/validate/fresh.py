"""The KTIR of a folder is what its Triton source lowers to: the proof of one is a proof of the other.

For ops so large that they run at a reduced size, this is what ties the committed KTIR to what was run.
"""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from tracer.emit.read_folder import read_kernels
from tracer.errors import HarvestError
from tracer.validate.errors import StaleKtir
from tracer.validate.problem import Problem


def check_fresh(path: Path, problem: Problem, fault: HarvestError | None = None) -> None:
    """Lower the folder at `path` again and compare, line by line, without comments.

    `fault` is what running the KTIR brought to light, which the message then holds as well. Raises StaleKtir.
    """
    from tracer.lower import lower

    kernels = {kernel.name: kernel for kernel in read_kernels(path)}
    for stage in problem.stages:
        lowered = lower(kernels[stage.name]).text.rstrip("\n").splitlines()
        lines = (path / stage.ktir).read_text(encoding="utf-8").rstrip("\n").splitlines()
        start = next((n for n, line in enumerate(lines) if not line.startswith("//")), len(lines))
        for number, (line, wanted) in enumerate(zip_longest(lines[start:], lowered), start + 1):
            if line != wanted:
                raise StaleKtir(
                    file=stage.ktir,
                    number=number,
                    text=(line or "the end").strip(),
                    wanted=(wanted or "the end").strip(),
                    effect=f"; {fault.reason}" if fault else "",
                ) from fault
