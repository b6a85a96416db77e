"""Tiers T0, T1 and T2 of generated folders, their negative controls, and the pytest side of it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.validate.evidence import Tiers, validate_folder

__all__ = ["Tiers", "validate_folder"]


def __getattr__(name: str) -> Any:
    # The interpreter worker and the pytest plugin live in this package and must not import torch.
    if name in __all__:
        from tracer.validate import evidence

        return getattr(evidence, name)
    raise AttributeError(name)
