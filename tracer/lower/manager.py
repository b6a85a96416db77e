"""Runs passes over one module, and verifies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from tracer.lower.errors import PassError
from tracer.target import SpyreTarget


@dataclass(frozen=True)
class Job:
    """What passes may know besides the IR: the kernel's name and source, and how it is launched."""

    name: str
    source: str
    grid: int
    target: SpyreTarget

    def line(self, number: int) -> str | None:
        """The source line of that number, None if unknown."""
        lines = self.source.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else None


class Pass(Protocol):
    """One rewriting of a module in place."""

    name: ClassVar[str]

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite `module`."""


def run_passes(module: ModuleOp, job: Job, passes: Sequence[Pass], *, verify_each: bool = False) -> None:
    """Apply the passes in order, then verify the module; with `verify_each`, after every pass.

    Raises PassError, which blames the last pass that ran, or a refusal of a pass.
    """
    for step in passes:
        step.apply(module, job)
        if verify_each or step is passes[-1]:
            _verify(module, job, step)


def _verify(module: ModuleOp, job: Job, step: Pass) -> None:
    try:
        module.verify()
    except VerifyException as error:
        raise PassError(op=job.name, name=step.name, reason=str(error).strip().splitlines()[0]) from error
