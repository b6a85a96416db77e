"""Running the cores of a grid: one after the other, or as coroutines that meet in collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xdsl.ir import Operation

from tracer.ktir.accessed import PLACED, accessed_view
from tracer.ktir.diagnostics import Diagnostic, KtirError, at, location
from tracer.ktir.simulator.compat import ring_order
from tracer.ktir.simulator.faults import Fault
from tracer.ktir.simulator.ordering import Clocks
from tracer.ktir.simulator.session import Session


class _Absent:
    """What a core holds that takes no part in a collective; any use of it is a fault."""

    REASON = "this core is no consumer of the collective, so it has no value here"

    def __getattr__(self, name: str) -> Any:
        raise Fault("KT218", self.REASON)


ABSENT = _Absent()


def run_cores(session: Session, arguments: Sequence[Any], counts: Any = None) -> list[tuple[Any, ...]]:
    """Run every core; returns what each returned. Raises KtirError for a fault, located and with its core."""
    if session.program.collective:
        return _run_together(session, arguments, counts)
    results = []
    for core in range(session.cores):
        session.core = core
        call = session.program.run
        x, y, z = session.coordinates(core)
        results.append(guarded(session, lambda c=call, i=(x, y, z): c(session, counts, *i, *arguments)))  # type: ignore[misc]
    return results


def guarded(session: Session, call: Callable[[], Any], op: Operation | None = None) -> Any:
    """`call()` with every expected failure as a KtirError, located and with the current core.

    `op` is the place of a failure outside of compiled code.
    """
    try:
        return call()
    except Fault as fault:
        raise KtirError(
            [*session.diagnostics(), _located(session, fault, fault.code, fault.message, op)]
        ) from None
    except (
        RuntimeError, ValueError, TypeError, IndexError, OverflowError, ArithmeticError, MemoryError,
    ) as error:  # fmt: skip
        if isinstance(error, KtirError):
            raise
        code, message = _named(error)
        raise KtirError([*session.diagnostics(), _located(session, error, code, message, op)]) from error


def _named(error: Exception) -> tuple[str, str]:
    """Code and message of a failure that no rule foresaw."""
    text = str(error)
    if "_Absent" in text:
        return "KT218", ABSENT.REASON
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "KT207", "a tile is larger than the memory of this machine"
    if "Pointer" in text:
        return "KT216", "a pointer is used where a number is needed"
    return "KT216", text


def _located(session: Session, error: Exception, code: str, message: str, op: Operation | None) -> Diagnostic:
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == session.program.filename:
            op = session.program.ops.get(trace.tb_lineno, op)
        trace = trace.tb_next
    coordinates = getattr(error, "coordinates", None)
    if code in PLACED:
        message += accessed_view(op)
    return at(op, code, message, core=session.core, coordinates=coordinates)


def _run_together(session: Session, arguments: Sequence[Any], counts: Any) -> list[tuple[Any, ...]]:
    waiting: dict[int, Any] = {}
    results: dict[int, Any] = {}
    run = session.program.run
    running = [run(session, counts, *session.coordinates(c), *arguments) for c in range(session.cores)]

    def advance(core: int, value: Any) -> None:
        session.core = core
        try:
            waiting[core] = guarded(session, lambda: running[core].send(value))
        except StopIteration as stop:
            results[core] = stop.value
            session.end()

    for core in range(session.cores):
        advance(core, None)
    while waiting:
        ready = _complete(session, waiting)
        if not ready:
            raise KtirError([*session.diagnostics(), _deadlock(session, waiting)])
        for core in ready:
            del waiting[core]
        for core, value in ready.items():
            advance(core, value)
    return [results[core] for core in range(session.cores)]


def _complete(session: Session, waiting: dict[int, Any]) -> dict[int, Any]:
    """Values for the cores whose producers have arrived: all of the group, or those that they depend on."""
    done: dict[int, Any] = {}
    for core, (op, (produce, *_), _, _) in waiting.items():
        if core in done:
            continue
        session.core = core
        if op.producer_dependency_per_consumer is not None and not session.compat:
            if (value := _received(session, waiting[core], core)) is not None:
                done[core] = value
            continue
        members = guarded(session, lambda p=produce: session.memberships(p), produce)  # type: ignore[misc]
        consumers = guarded(session, partial(session.consumers, op), op)
        guarded(session, partial(session.supplied, op, members), op)
        groups = set(members.values()) | set(consumers.values())
        for group in groups:
            producers = sorted(c for c, g in members.items() if g == group)
            takers = sorted(c for c, g in consumers.items() if g == group)
            everyone = set(producers) | set(takers)
            if core not in everyone or not all(c in waiting and waiting[c][0] is op for c in everyone):
                continue
            partials = {c: waiting[c][1][2] for c in producers}
            assert isinstance(session.order, Clocks)
            session.order.meet(sorted(everyone))
            for taker in everyone:
                done[taker] = _fold(session, waiting[taker], partials, taker) if taker in takers else ABSENT
        if core not in done and core not in members and core not in consumers:
            done[core] = ABSENT
    return done


def _received(session: Session, request: Any, core: int) -> Any:
    """The fold of what a core depends on; None while some of it is missing.

    A producer signals what it made and goes on. Only what it did until then is before what the consumer
    does next.
    """
    op, (produce, _, _, turn), _, _ = request
    needed = guarded(session, lambda: session.dependencies(op, produce), op)
    if core not in needed:
        return ABSENT
    partials = guarded(session, lambda: session.take(produce, turn, core, needed[core]), op)
    if len(partials) < len(needed[core]):
        return None
    tiles = {p: partial.tile for p, partial in zip(needed[core], partials, strict=True)}
    return _fold(session, request, tiles, core)


def _fold(session: Session, request: Any, partials: dict[int, Any], core: int) -> Any:
    op, _, identity, fold = request
    if not partials:
        return identity
    session.core = core

    def run() -> Any:
        order = ring_order(list(partials), core, session.cores) if session.compat else sorted(partials)
        value = partials[order[0]]
        for other in order[1:]:
            value = fold(value, partials[other])
        return value

    return guarded(session, run, op)


def _deadlock(session: Session, waiting: dict[int, Any]) -> Diagnostic:
    core, (op, *_) = next(iter(sorted(waiting.items())))
    places = ", ".join(f"core {c} at {_line(r[0])}" for c, r in sorted(waiting.items())[:8])
    missing = [c for c in range(session.cores) if c not in waiting]
    ended = f"; cores {missing} have ended" if missing else ""
    return at(op, "KT212", f"cores wait for each other: {places}{ended}", core=core)


def _line(op: Operation) -> str:
    return f"line {location(op)[1]}"
