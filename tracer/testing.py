"""What generated folders import: stages and launchers, inputs, the two halves of an oracle, and the
checks."""

from __future__ import annotations

from pathlib import Path

from tracer.validate.folder import Folder
from tracer.validate.inputs import random_tensor
from tracer.validate.oracle import rounded, widened
from tracer.validate.stage import Stage, launch, load_sibling

__all__ = [
    "Folder", "Stage", "check_ktir", "check_negative_controls", "check_spyre_shape", "check_triton", "folder",
    "launch", "load_sibling", "random_tensor", "rounded", "widened",
]  # fmt: skip


def folder(file: str) -> Folder:
    """The folder that `file` lies in. Nothing is read before the first check."""
    return Folder(Path(file).resolve().parent)


def check_triton(folder: Folder, *, full_size: bool = False) -> None:
    """T0: the Triton kernels, run in Triton's interpreter, equal the PyTorch oracle.

    An op whose buffers are huge is run at a reduced problem size unless `full_size`. Raises a HarvestError
    HV6xx.
    """
    from tracer.validate import tiers

    tiers.check_t0(folder, full_size=full_size)


def check_spyre_shape(folder: Folder) -> None:
    """T1: grid, scratchpad, descriptor IO, coverage, and the same source at another size and on fewer cores.

    Skips, rather than passes, where the op has no other size. Raises a HarvestError HV6xx.
    """
    from tracer.validate import tiers
    from tracer.validate.errors import NotProved

    try:
        tiers.check_t1(folder)
    except NotProved as error:
        import pytest

        pytest.skip(str(error))


def check_ktir(folder: Folder, *, full_size: bool = False) -> None:
    """T2: the folder's KTIR, simulated, equals the oracle; at a reduced size like `check_triton`."""
    from tracer.validate import tiers

    tiers.check_t2(folder, full_size=full_size)


def check_negative_controls(folder: Folder) -> None:
    """Wrong results fail the same comparison: zeros, nothing written, an operand ignored, half a
    reduction."""
    from tracer.validate import tiers

    tiers.check_controls(folder)
