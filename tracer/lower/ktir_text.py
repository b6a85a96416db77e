"""The product of the lowering."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ktir:
    """KTIR of one kernel: the text of a module with one function of the kernel's name."""

    name: str
    text: str
