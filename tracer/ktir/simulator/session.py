"""The state of one run: the executing core, memories, and what the sanitizer found."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from xdsl.ir import Operation

from tracer.ktir.accessed import PLACED, accessed_view, counterparts
from tracer.ktir.affine import contains
from tracer.ktir.diagnostics import Diagnostic, KtirError, at
from tracer.ktir.dialect.ktdp import InterTileProduceOp, InterTileReduceOp, LoadOp, StoreOp
from tracer.ktir.simulator.compiler import Program
from tracer.ktir.simulator.dtypes import Element
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.groups import (
    Groups,
    consumers,
    dependent,
    dropped,
    producers,
    reduces_of,
    require_supplied,
)
from tracer.ktir.simulator.lanes import Lanes
from tracer.ktir.simulator.memory import SETTLED, UNWRITTEN, Buffer, Pointer, View, retyped, span
from tracer.ktir.simulator.ordering import Apart, Clocks
from tracer.target import SpyreTarget

WARNINGS = {"KT208", "KT209", "KT217"}


@dataclass
class Partial:
    """What a core made for others, what it knew of them then, and the cores that may still take it."""

    tile: Tensor
    seen: np.ndarray
    takers: set[int]


MAX_STEPS = 10**8
"""Operations in loops that one core may execute; at this size a run takes minutes at least."""


class Session:
    """What compiled code calls back into while it runs."""

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        target: SpyreTarget,
        *,
        sanitize: bool,
        compat: bool = False,
        memory: Mapping[int, Tensor] | None = None,
        lx: Mapping[int, Mapping[int, Tensor]] | None = None,
        max_steps: int = MAX_STEPS,
    ):
        self.program = program
        self.grid = grid
        self.cores = grid[0] * grid[1] * grid[2]
        self.target = target
        self.sanitize = sanitize and not compat
        self.compat = compat
        self.order: Apart | Clocks = Clocks(self.cores) if program.collective else Apart()
        self.core = 0
        self.max_steps = max_steps
        self.spent: dict[int, int] = {}
        """Operations in loops by core."""
        self.most: dict[int, tuple[int, Operation]] = {}
        """Most bytes of tiles by core, and where, of functions that measure them as they run."""
        self.found: dict[tuple[str, Operation | None], Diagnostic] = {}
        self.buffers: list[Buffer] = []
        self._global = [
            (address, Buffer(f"memory[{address}]", t, stored=True)) for address, t in (memory or {}).items()
        ]
        self._viewed: set[int] = set()
        """Addresses of placed tensors that a view began in."""
        self._local: dict[int, Buffer] = {}
        self._typed: dict[tuple[int, str], Buffer] = {}
        self._spans: dict[tuple[int, int], tuple[int, int]] = {}
        self._seed = lx or {}
        self._members: dict[Operation, dict[int, int]] = {}
        self._needed: dict[Operation, dict[int, tuple[int, ...]]] = {}
        self._rounds: dict[tuple[Operation, int], int] = {}
        self._served: dict[tuple[Operation, int], set[int]] = {}
        self._ended: set[int] = set()
        self.published: dict[tuple[Operation, int, int], Partial] = {}
        """Partials by operation, round and core, of futures whose consumers wait for some producers only."""

    def report(
        self,
        code: str,
        message: str,
        coordinates: tuple[int, ...] | None = None,
        other: type[LoadOp | StoreOp] | None = None,
    ) -> None:
        """Record a finding; the first of each code at each operation is kept.

        `other` is the kind of access that another core makes to the element.
        """
        op = self._running()
        key = (code, op)
        if key not in self.found:
            severity = "warning" if code in WARNINGS else "error"
            message += counterparts(op, other) if op is not None and other is not None else ""
            message += accessed_view(op) if code in PLACED else ""
            self.found[key] = at(op, code, message, severity, core=self.core, coordinates=coordinates)

    def steps(self, lower: int, upper: int, step: int, weight: int) -> range:
        """The values of a loop's induction variable; the loop executes `weight` operations for each.

        Raises Fault KT219 where the step is not positive, KT222 where the core would execute too much.
        """
        if step <= 0:
            raise Fault("KT219", f"the step of the loop is {step}")
        values = range(lower, upper, step)
        self.spend(weight * max(0, -(-(upper - lower) // step)), "the bounds of the loop")
        return values

    def spend(self, operations: int, suspect: str) -> None:
        """Count operations of the current core. Raises Fault KT222 where it would execute too many."""
        total = self.spent.get(self.core, 0) + operations
        self.spent[self.core] = total
        if total > self.max_steps:
            raise Fault(
                "KT222",
                f"with this loop the core executes {total} operations, more than {self.max_steps}; "
                f"check {suspect}, or raise the limit (max_steps)",
            )

    def _running(self) -> Operation | None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.program.filename:
            frame = frame.f_back
        return self.program.ops.get(frame.f_lineno) if frame is not None else None

    def indexed(self, op: Operation | None, view: View, flat: np.ndarray) -> None:
        """Hook: elements of an index tensor were read while building a tile."""

    def direct(self, buffer: Buffer) -> bool:
        """Whether loads from the buffer need no tracking at all."""
        absent = buffer.numel > buffer.data.numel()
        return not (self.compat or absent) and buffer.settled and not (self.sanitize and self.wide(buffer))

    def wide(self, buffer: Buffer) -> bool:
        """Whether a core could reach over too many bytes in the buffer."""
        return buffer.numel * buffer.data.element_size() > self.target.span_bytes

    def accessed(self, buffer: Buffer, low: int, high: int) -> None:
        """Widen the span of addresses that the current core touches in a buffer; report one over
        the limit.
        """
        if high < low or buffer.core is not None or not self.wide(buffer):
            return
        key = (self.core, id(buffer))
        before = self._spans.get(key, (low, high))
        self._spans[key] = (min(before[0], low), max(before[1], high))
        wide = (self._spans[key][1] - self._spans[key][0] + 1) * buffer.data.element_size()
        if wide > self.target.span_bytes:
            self.report(
                "KT209",
                f"{buffer.name}: one core reaches over {wide} bytes, more than {self.target.span_bytes}",
            )

    def reached(
        self, buffer: Buffer, first: np.ndarray, shape: Sequence[int], strides: Sequence[int], lanes: Lanes
    ) -> None:
        """As `accessed`, for one window per lane."""
        if not self.wide(buffer):
            return
        for core in np.unique(lanes.cores):
            self.core = int(core)
            mine = first[lanes.cores == core] - buffer.base
            low, _ = span(int(mine.min()), shape, strides)
            _, high = span(int(mine.max()), shape, strides)
            self.accessed(buffer, low, high)

    def typed(self, buffer: Buffer, el: Element) -> Buffer:
        """The buffer under an element type of the same width (bytes as bools and back)."""
        if buffer.data.dtype == el.dtype:
            return buffer
        key = (id(buffer), el.name)
        if key not in self._typed:
            data = retyped(buffer.data, el)
            if data is buffer.data:
                return buffer
            other = Buffer(
                buffer.name, data, stored=buffer.stored, initialized=buffer.initialized, core=buffer.core
            )
            if self.sanitize and buffer.stored:
                buffer.track(self.order.dtype)
                other.writers, other.readers, other.reads = buffer.writers, buffer.readers, buffer.reads
            self._typed[key] = other
        return self._typed[key]

    def global_pointer(self, address: int, el: Element) -> Pointer:
        """A pointer for a literal element address. Raises Fault KT221 where no buffer was placed there."""
        for start, buffer in self._global:
            if start <= address < start + buffer.numel and buffer.data.dtype == el.dtype:
                self._viewed.add(start)
                return Pointer(buffer, address - start)
        raise Fault(
            "KT221",
            f"element address {address} lies in no {el.name} buffer; place one there: "
            f"memory={{{address}: tensor}}, or --memory {address}={el.name}[ELEMENTS] on the command line",
        )

    @property
    def placed(self) -> list[Buffer]:
        """The tensors of global memory that the caller placed there."""
        return [buffer for _, buffer in self._global]

    def unmet(self) -> list[int]:
        """Addresses of the placed tensors of global memory in which no view began."""
        return [start for start, _ in self._global if start not in self._viewed]

    def local_pointer(self, address: Any, core: int | None, el: Element) -> Pointer:
        """A pointer into a core's scratchpad, `address` in elements of the view's type."""
        if isinstance(address, Pointer):
            raise Fault(
                "KT216", f"argument {address.buffer.name} lies in global memory, the view in a scratchpad"
            )
        owner = self.core if core is None else core
        if not 0 <= owner < self.cores:
            raise Fault("KT215", f"core {owner} is out of range for a grid of {self.cores}")
        raw = self._scratchpad(owner)
        key = (id(raw), el.name)
        if key not in self._typed:
            data = raw.data.view(el.dtype)
            held = Buffer(raw.name, data, stored=True, initialized=False, core=owner, grain=el.bytes)
            held.writers, held.readers, held.reads = raw.writers, raw.readers, raw.reads
            self._typed[key] = held
        return Pointer(self._typed[key], address)

    def _scratchpad(self, owner: int) -> Buffer:
        """The bytes of a core's scratchpad, with what the caller placed there."""
        if owner not in self._local:
            data = torch.zeros(self.target.lx_bytes, dtype=torch.uint8)
            raw = Buffer(f"LX of core {owner}", data, stored=True, initialized=False, core=owner)
            raw.track(self.order.dtype)
            assert raw.writers is not None
            for address, tensor in self._seed.get(owner, {}).items():
                placed = tensor.view(torch.uint8)
                start = address * tensor.element_size()
                data[start : start + placed.numel()] = placed
                raw.writers[start : start + placed.numel()] = SETTLED
            self._local[owner] = raw
        return self._local[owner]

    def hold(self, op: Operation, tiles: int) -> None:
        """The current core holds so many bytes of tiles at an operation."""
        if tiles > self.most.get(self.core, (0, op))[0]:
            self.most[self.core] = tiles, op

    def scratchpad_bytes(self, core: int) -> int:
        """Bytes of a core's scratchpad that were stored to, or placed there by the caller."""
        raw = self._local.get(core)
        return int((raw.writers != UNWRITTEN).sum()) if raw is not None and raw.writers is not None else 0

    def memberships(self, op: InterTileProduceOp) -> Groups:
        """Group of every producer core.

        Raises Fault KT213 where a core is in two groups, or where a consumer's group has no producer.
        """
        if op not in self._members:
            members = producers(op, self.cores)
            for reduce in reduces_of(op) or ():
                self.supplied(reduce, members)
            self._members[op] = members
        return self._members[op]

    def consumers(self, op: InterTileReduceOp) -> Groups:
        """Group of every consumer core. Raises Fault KT213 where a core is in two groups; in compatible mode
        the lowest counts.
        """
        if op not in self._members:
            self._members[op] = consumers(op, self.cores, lowest=self.compat)
        return self._members[op]

    def supplied(self, op: InterTileReduceOp, members: Groups) -> None:
        """Raise Fault KT213 where a consumer's group has no producer, unless in compatible mode."""
        if not self.compat:
            require_supplied(op, self.consumers(op), members)

    def group(self, op: InterTileProduceOp) -> int | None:
        """The group that the current core produces in, or None; warns of one that comes here for nothing."""
        members, key = self.memberships(op), ("KT213", op)
        if not self.compat and key not in self.found and dependent(op) == []:
            taken = {c: g for r in reduces_of(op) or () for c, g in self.consumers(r).items()}
            if (text := dropped(self.core, members, taken)) is not None:
                self.found[key] = at(op, "KT213", text, "warning", core=self.core)
        return members.get(self.core)

    def dependencies(self, op: InterTileReduceOp, produce: InterTileProduceOp) -> dict[int, tuple[int, ...]]:
        """The producers that every consumer waits for.

        Raises KtirError KT224 where one is no producer of the consumer's group, or where no consumer takes
        what a producer makes.
        """
        if op not in self._needed:
            assert op.producer_dependency_per_consumer is not None
            points = op.producer_dependency_per_consumer.data
            members, cores = self.memberships(produce), np.arange(self.cores)
            found = {}
            for core, group in self.consumers(op).items():
                symbols = (core, group)[: points.num_symbols]
                held = np.broadcast_to(contains(points, [cores], symbols), (self.cores,))
                found[core] = tuple(int(c) for c in np.flatnonzero(held))
                if wrong := [p for p in found[core] if members.get(p) != group]:
                    text = f"core {core} depends on cores {wrong}, which do not produce in group {group}"
                    raise KtirError([*self.diagnostics(), at(op, "KT224", text, core=core)])
            taken = {p for needed in found.values() for p in needed}
            if lost := sorted(members.keys() - taken):
                text = f"no consumer depends on cores {lost}, though they produce"
                raise KtirError([*self.diagnostics(), at(op, "KT224", text, core=lost[0])])
            self._needed[op] = found
        return self._needed[op]

    def publish(self, op: InterTileProduceOp, partial: Tensor | None) -> int:
        """Make a partial of the current core available; returns how often the core came here before.

        Raises KtirError KT224 as `dependencies` does.
        """
        key = (op, self.core)
        count = self._rounds.get(key, 0)
        self._rounds[key] = count + 1
        if self.compat:
            return count
        self._release(op, count - 1)
        if partial is not None:
            assert isinstance(self.order, Clocks)
            seen = self.order.publish(self.core)
            # Who produced again, or has ended, never comes back for this round.
            takers = {
                c
                for c in self._takers(op, self.core) - self._ended
                if self._rounds.get((op, c), 0) <= count + 1
            }
            if takers:
                self.published[op, count, self.core] = Partial(partial, seen, takers)
        return count

    def take(self, op: InterTileProduceOp, turn: int, core: int, producers: Sequence[int]) -> list[Partial]:
        """The partials of a round that a core depends on; empty while some are missing.

        A core is done with a round when its only reduce, beside the produce, has taken it; when it produces
        again, as its future is then another; and when it ends. A partial goes when all are done with it.
        """
        found = [self.published.get((op, turn, p)) for p in producers]
        held = [partial for partial in found if partial is not None]
        if len(held) < len(found):
            return []
        if held:
            assert isinstance(self.order, Clocks)
            self.order.deliver(core, [partial.seen for partial in held])
        uses = [use.operation for use in op.future.uses]
        if len(uses) == 1 and uses[0].parent is op.parent:
            self._release(op, turn)
        return held

    def end(self) -> None:
        """The current core has ended: it takes nothing more."""
        self._ended.add(self.core)
        for op, turn, producer in list(self.published):
            self._dismiss(op, turn, producer)

    def _release(self, op: InterTileProduceOp, turn: int) -> None:
        """The current core is done with a round."""
        reduces = dependent(op)
        for producer in {p for r in reduces or () for p in self.dependencies(r, op).get(self.core, ())}:
            self._dismiss(op, turn, producer)

    def _dismiss(self, op: Operation, turn: int, producer: int) -> None:
        """The current core takes this partial no more."""
        partial = self.published.get((op, turn, producer))
        if partial is not None:
            partial.takers.discard(self.core)
            if not partial.takers:
                del self.published[op, turn, producer]

    def _takers(self, op: InterTileProduceOp, producer: int) -> set[int]:
        """The cores that may take what a producer makes."""
        if (op, producer) not in self._served:
            reduces = dependent(op)
            self._served[op, producer] = (
                set(range(self.cores))
                if reduces is None
                else {
                    c for r in reduces for c, needed in self.dependencies(r, op).items() if producer in needed
                }
            )
        return self._served[op, producer]

    def coordinates(self, core: int) -> tuple[int, int, int]:
        """Grid coordinates of a linear core id, x fastest."""
        x, y, _ = self.grid
        return core % x, core // x % y, core // (x * y)

    def diagnostics(self) -> list[Diagnostic]:
        """Everything found, in order."""
        return list(self.found.values())
