"""Which cores of a grid produce and consume in which group of an inter-tile operation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineSet

from tracer.ktir.affine import contains
from tracer.ktir.diagnostics import location
from tracer.ktir.dialect.ktdp import InterTileProduceOp, InterTileReduceOp, TileFutureType
from tracer.ktir.simulator.faults import Fault

Groups = dict[int, int]
"""Group by core."""


def producers(op: InterTileProduceOp, cores: int) -> Groups:
    """Group of every producer. Raises Fault KT213 where a core is in two groups."""
    table = family(op.producer_tiles_per_group.data, allowed_groups(op.future), cores)
    return _groups(table, "producer_tiles_per_group", location(op)[1])


def consumers(op: InterTileReduceOp, cores: int, *, lowest: bool = False) -> Groups:
    """Group of every consumer. Raises Fault KT213 where a core is in two groups, unless the `lowest` is to be
    taken.
    """
    table = family(op.consumer_tiles_per_group.data, allowed_groups(op.future), cores)
    if lowest:
        table[1:] &= ~np.logical_or.accumulate(table)[:-1]
    return _groups(table, "consumer_tiles_per_group", location(op)[1])


def _groups(table: np.ndarray, name: str, line: int) -> Groups:
    several = np.flatnonzero(table.sum(axis=0) > 1)
    if len(several):
        core = int(several[0])
        found = np.flatnonzero(table[:, core]).tolist()
        raise Fault("KT213", f"{name} in line {line} puts core {core} in groups {found}")
    return {int(c): int(g) for g, c in np.argwhere(table)}


def require_supplied(op: InterTileReduceOp, taken: Mapping[int, int], made: Mapping[int, int]) -> None:
    """Raise Fault KT213 where consumers wait for a group in which no core produces."""
    for core, group in taken.items():
        if group not in made.values():
            raise Fault(
                "KT213",
                f"core {core} consumes group {group} in line {location(op)[1]}, but no core produces in it:"
                " the result would be the identity",
            )


def dropped(core: int, made: Mapping[int, int], taken: Mapping[int, int]) -> str | None:
    """What to say of a core that comes to a produce for nothing; `taken` are the consumers of its future."""
    if core not in made:
        return None if core in taken else f"core {core} is in no group: what it makes here is dropped"
    if made[core] not in taken.values():
        return f"no core consumes group {made[core]}, in which core {core} produces: what it makes is dropped"
    return None


def reduces_of(op: InterTileProduceOp) -> list[InterTileReduceOp] | None:
    """The reduces of a future; None where it is handed on, to any reduce."""
    uses = [use.operation for use in op.future.uses]
    found = [use for use in uses if isinstance(use, InterTileReduceOp)]
    return found if len(found) == len(uses) else None


def dependent(op: InterTileProduceOp) -> list[InterTileReduceOp] | None:
    """The reduces that wait for some producers only; None where the future is handed on, to any reduce."""
    found = reduces_of(op)
    return None if found is None else [r for r in found if r.producer_dependency_per_consumer is not None]


def allowed_groups(future: SSAValue) -> AffineSet | None:
    """The set of groups that the type of a future names."""
    assert isinstance(future.type, TileFutureType)
    return getattr(future.type.groups, "data", None)


def family(cores: AffineSet, groups: AffineSet | None, count: int) -> np.ndarray:
    """`[group, core]` table of a set of the form (core)[group], over the groups that `groups` allows."""
    ids = np.arange(count)
    table = np.stack([np.broadcast_to(contains(cores, [ids], [g]), (count,)) for g in range(count)])
    if groups is not None:
        table = table & np.broadcast_to(contains(groups, [ids]), (count,))[:, None]
    return table
