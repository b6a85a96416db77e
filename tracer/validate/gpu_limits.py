"""What a GPU cannot do that Spyre can: tiles of a megabyte, and stores of less than 16 bytes."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence

import torch

from tracer.target import SPYRE
from tracer.validate.buffers import Placement
from tracer.validate.stage import Stage

GRANULE = 16
"""Bytes that a GPU's tensor memory unit stores at least: an innermost extent is clipped to a multiple of it,
and not to the element. Measured on an H200 with triton 3.6 for elements of 1, 2, 4 and 8 bytes, rank 1 and 2;
loads are exact."""

SMALLEST_BLOCK = 16
"""The smallest tile extent that `tl.dot` takes."""


def steps(source: str) -> frozenset[str]:
    """Block sizes that kernels step by: `tl.range(0, r0_size, R0_BLOCK)`, `tl.cdiv(x0_size, X0_BLOCK)`.

    Only these may change without a change of what a kernel computes. Any other block has to hold its axis.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            position = {"range": 2, "cdiv": 1}.get(node.func.attr)
            block = node.args[position] if position is not None and len(node.args) > position else None
            if isinstance(block, ast.Name) and block.id.endswith("_BLOCK"):
                found.add(block.id)
    return frozenset(found)


def smaller(stages: Sequence[Stage], source: str) -> tuple[Stage, ...] | None:
    """The stages with less shared memory: unpipelined, then with the largest block that may change halved.

    The result runs on all cores, as there are more tiles. None where nothing is left to try.
    """
    if any("num_stages" not in stage.constexpr for stage in stages):
        return tuple(
            dataclasses.replace(stage, constexpr={**stage.constexpr, "num_stages": 1}) for stage in stages
        )
    changeable = steps(source)
    found, changed = [], False
    for stage in stages:
        blocks = {n: v for n, v in stage.constexpr.items() if n in changeable and v > SMALLEST_BLOCK}
        if blocks:
            changed = True
            name = max(blocks, key=lambda n: (blocks[n], n))
            constexpr = {**stage.constexpr, name: blocks[name] // 2, "CORES": SPYRE.cores}
            stage = dataclasses.replace(stage, constexpr=constexpr, grid=(SPYRE.cores,))
        found.append(stage)
    return tuple(found) if changed else None


def undo_overrun(
    memory: torch.Tensor, before: torch.Tensor, places: Mapping[str, Placement]
) -> dict[str, int]:
    """Put back what stores of whole 16 bytes wrote past the ends of buffers; the number of bytes by buffer.

    `memory` is the block (uint8) that the buffers lie in, `before` a copy from before the launch. What lies
    beyond the last 16 bytes that a buffer touches is left for the guards.
    """
    found = {}
    for name, at in places.items():
        end = at.start + at.length
        part = slice(end, -(-end // GRANULE) * GRANULE)
        if changed := int((memory[part] != before[part]).sum()):
            found[name] = changed
            memory[part] = before[part]
    return found
