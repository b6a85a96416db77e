"""Decompositions that give Inductor something to write Triton for where it would call a library."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tracer.capture.contraction import addmm, baddbmm, mm
from tracer.capture.convolution import convolution
from tracer.capture.ranking import sort, sort_stable, topk

aten = torch.ops.aten


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """Inductor's decompositions with ours over them."""
    from torch._inductor.decomposition import select_decomp_table

    return {**select_decomp_table(), **OURS}


OURS: dict[Any, Callable[..., Any]] = {
    aten.mm.default: mm,
    aten.bmm.default: mm,
    aten.addmm.default: addmm,
    aten.baddbmm.default: baddbmm,
    aten.convolution.default: convolution,
    aten.topk.default: topk,
    aten.sort.default: sort,
    aten.sort.stable: sort_stable,
}
