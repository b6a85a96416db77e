"""Ragged tiles get code of their own, so that every access has one extent.

A loop whose iterations touch different parts of their blocks is split at the points of change. Where
ragged iterations are scattered, or there is no loop, the body is written once per case under `scf.if`s
without results (the public parser reads no `else`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from tracer.ktir.dialect.arith_ops import CmpiOp
from tracer.lower.analysis.accesses import Edge, edges, inexact
from tracer.lower.analysis.scalars import Scalars, constant_of
from tracer.lower.edit import Emitter, erase, inline_block, operations, replace
from tracer.lower.manager import Job
from tracer.lower.passes.inline_loops import inline_loop
from tracer.lower.passes.peel_cases import write_cases
from tracer.lower.tt_ops import FuncOp, GetProgramIdOp

_MAX_PIECES = 8


@dataclass(frozen=True)
class PeelTiles:
    """Split loops and bodies so that no tile is ragged in one iteration and whole in another."""

    name: ClassVar[str] = "peel-tiles"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place, innermost loops first. Raises InexactTileError."""
        for function in [op for op in operations(module) if isinstance(op, FuncOp)]:
            for loop in reversed([op for op in operations(function) if isinstance(op, scf.ForOp)]):
                _peel_loop(loop, job)
            scalars = Scalars(job.grid)
            if found := edges(function, scalars, job):
                write_cases(function.body.block, found, scalars, job)


def _peel_loop(loop: scf.ForOp, job: Job) -> None:
    scalars = Scalars(job.grid)
    induction = loop.body.block.args[0]
    found = [edge for edge in edges(loop, scalars, job) if edge.varies_along(induction)]
    if not found:
        return
    cuts = _cuts(found, induction, scalars)
    constant = all(constant_of(v) is not None for v in (loop.lb, loop.ub, loop.step))
    if cuts is not None and constant and len(cuts) <= (_MAX_PIECES if loop.iter_args else 3):
        _split_constant(loop, cuts, job)
    elif cuts is not None and len(cuts) <= 2 and _is_tile_loop(loop, job):
        _split_tiles(loop, cuts, job)
    elif cuts is not None and len(cuts) <= 2 and _is_run(loop):
        _split_run(loop, cuts)
    elif loop.iter_args:
        raise inexact(
            found[0].access, job, "its extent changes from iteration to iteration of an accumulating loop"
        )
    else:
        write_cases(loop.body.block, found, scalars, job)


def _cuts(found: Sequence[Edge], induction: SSAValue, scalars: Scalars) -> list[tuple[int, int]] | None:
    """First and last induction value of every piece of equal lanes; None if more than this loop decides."""
    codes = [edge.along(induction) for edge in found]
    values = scalars.evaluate(induction)
    if values is None or any(c is None for c in codes):
        return None
    table = np.stack([c for c in codes if c is not None])
    starts = [0, *(np.flatnonzero((np.diff(table, axis=1) != 0).any(axis=0)) + 1).tolist(), table.shape[1]]
    return [(int(values.data[a]), int(values.data[b - 1])) for a, b in itertools.pairwise(starts)]


def _split_constant(loop: scf.ForOp, cuts: list[tuple[int, int]], job: Job) -> None:
    emitter = Emitter(loop)
    kind = loop.lb.type
    carried: list[SSAValue] = list(loop.iter_args)
    for index, (first, last) in enumerate(cuts):
        piece = loop.clone()
        upper = loop.ub if index == len(cuts) - 1 else emitter.integer(cuts[index + 1][0], kind)
        lower = loop.lb if index == 0 else emitter.integer(first, kind)
        piece.operands = [lower, upper, loop.step, *carried]
        emitter.insert(piece)
        carried = _inline_piece(piece, lower) if first == last else list(piece.results)
    replace(loop, carried)


def _inline_piece(piece: scf.ForOp, induction: SSAValue) -> list[SSAValue]:
    results = inline_block(piece.body.block, piece, [induction, *piece.iter_args])
    erase(piece)
    return results


def _is_tile_loop(loop: scf.ForOp, job: Job) -> bool:
    """`for tile in range(program_id, tiles, grid)`, which visits every tile below its bound once."""
    owner = loop.lb.owner
    first = isinstance(owner, GetProgramIdOp) and owner.axis.data == "x"
    return (
        first
        and constant_of(loop.step) == job.grid
        and constant_of(loop.ub) is not None
        and not loop.iter_args
    )


def _is_run(loop: scf.ForOp) -> bool:
    """`for tile in range(first, last)`: neighbouring tiles, whose bounds depend on the program."""
    return constant_of(loop.step) == 1 and not loop.iter_args


def _split_run(loop: scf.ForOp, cuts: list[tuple[int, int]]) -> None:
    """The tiles of this program below the cut, then those from it on."""
    emitter = Emitter(loop)
    start = emitter.integer(cuts[1][0], loop.lb.type)
    for lower, upper in (
        (loop.lb, emitter.emit(arith.MinSIOp(loop.ub, start))),
        (emitter.emit(arith.MaxSIOp(loop.lb, start)), loop.ub),
    ):
        piece = loop.clone()
        piece.operands = [lower, upper, loop.step]
        emitter.insert(piece)
    erase(loop)


def _split_tiles(loop: scf.ForOp, cuts: list[tuple[int, int]], job: Job) -> None:
    """The first tiles, then the rest, each by the program that had it."""
    emitter = Emitter(loop)
    kind = loop.lb.type
    (_, _), (start, last) = cuts
    whole = loop.clone()
    whole.operands = [loop.lb, emitter.integer(start, kind), loop.step]
    emitter.insert(whole)
    inline_loop(whole, job.grid)
    rest = loop.clone()
    if start == last:
        owner = emitter.integer(start % job.grid, kind)
        condition = emitter.emit(CmpiOp(loop.lb, owner, "eq"), "last")
        guarded = scf.IfOp(condition, [], Region(Block([scf.YieldOp()])))
        emitter.insert(guarded)
        terminator = guarded.true_region.block.last_op
        assert terminator is not None
        guarded.true_region.block.insert_op_before(rest, terminator)
        _inline_piece(rest, Emitter(rest).integer(start, kind))
    else:
        rest.operands = [_first_tile(emitter, loop, start, job), loop.ub, loop.step]
        emitter.insert(rest)
    erase(loop)


def _first_tile(emitter: Emitter, loop: scf.ForOp, start: int, job: Job) -> SSAValue:
    """The first tile from `start` on that belongs to this program."""
    kind = loop.lb.type
    turned = loop.lb
    if shift := -start % job.grid:
        moved = emitter.emit(arith.AddiOp(loop.lb, emitter.integer(shift, kind)))
        turned = emitter.emit(arith.RemSIOp(moved, emitter.integer(job.grid, kind)))
    return emitter.emit(arith.AddiOp(turned, emitter.integer(start, kind)), "first")
