"""What the sanitizer looks at after a run: NaN from finite input, outputs left uncovered, scratchpad use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from xdsl.dialects import func
from xdsl.ir import Operation

from tracer.ktir.accessed import suspects
from tracer.ktir.diagnostics import Diagnostic, KtirError, at, location
from tracer.ktir.dialect.ktdp import StoreOp
from tracer.ktir.simulator.arguments import ArgumentBuffer
from tracer.ktir.simulator.dtypes import element, is_tensor
from tracer.ktir.simulator.memory import UNWRITTEN, Buffer
from tracer.ktir.simulator.provenance import views_of
from tracer.ktir.simulator.schedule import run_cores
from tracer.ktir.simulator.session import Session
from tracer.ktir.slices import behind

Probe = Callable[[Operation], Callable[..., None]]
"""Gives for an operation the function that is called with its results."""


def after_run(
    function: func.FuncOp,
    peak: tuple[int, Operation],
    again: Callable[[Probe], tuple[Session, list[Any]]],
    session: Session,
    buffers: Sequence[ArgumentBuffer | None],
    args: Sequence[Any],
    uninitialized: Sequence[int],
) -> list[Diagnostic]:
    """Findings that need the whole run.

    `peak` is what `liveness.peak` found. `again` prepares the same run anew, with a probe at every
    operation: a session and the values to run it with. `args` are the function's own and what the caller
    placed in memory, as it was before.
    """
    found = scratchpad(peak, session)
    for i in uninitialized:
        held = buffers[i]
        if held is not None and (finding := _uncovered(function, held, i)) is not None:
            found.append(finding)
    written = [*(b.buffer for b in buffers if b is not None and b.buffer.stored), *session.placed]
    if any(map(_has_nan, written)) and _finite_inputs(args):
        found += _trace_nan(function, again)
    return found


def scratchpad(peak: tuple[int, Operation], session: Session) -> list[Diagnostic]:
    """Live tile bytes of the core with most of them, and bytes stored in its scratchpad through views,
    against the scratchpad's size and the back end's reserve.

    `peak` is what every core may hold; the session knows more where extents are known at run time only.
    """
    target = session.target
    uses = []
    for core in range(session.cores):
        tiles, op = max(peak, session.most.get(core, peak), key=lambda found: found[0])
        uses.append((tiles, op, session.scratchpad_bytes(core), core))
    tiles, op, stored, worst = max(uses, key=lambda use: use[0] + use[2])
    place = worst if session.most else None
    text = f"{tiles} bytes of tiles live here"
    if stored:
        text += f" beside {stored} that are stored in the scratchpad"
    if tiles + stored > target.lx_bytes:
        return [at(op, "KT207", f"{text}, the scratchpad has {target.lx_bytes}", core=place)]
    if tiles + stored > target.lx_warn_bytes:
        return [at(op, "KT208", f"{text}, above {target.lx_warn_bytes}", "warning", core=place)]
    return []


def _uncovered(function: func.FuncOp, held: ArgumentBuffer, position: int) -> Diagnostic | None:
    total = held.tensor.numel()
    if held.buffer.writers is None:
        missing, first = total, (0,) * held.tensor.dim()
    else:
        shown = torch.as_strided(held.buffer.writers, held.tensor.shape, held.tensor.stride())
        bad = torch.nonzero(shown == UNWRITTEN)
        missing, first = len(bad), tuple(int(i) for i in bad[0]) if len(bad) else ()
    if not missing:
        return None
    stores = [
        op
        for op in function.walk()
        if isinstance(op, StoreOp) and function.body.block.args[position] in views_of(op.tile)
    ]
    advice = suspects(stores) if stores else "no store reaches it"
    text = f"{held.buffer.name}: {missing} of {total} elements are never written ({advice}); the first is"
    return at(stores[-1] if stores else function, "KT211", text, coordinates=first)


def _has_nan(held: Buffer) -> bool:
    data = held.data
    if not data.is_floating_point():
        return False
    if held.writers is None or not data.numel():
        return False
    # A NaN makes the sum NaN, so a sum that is a number settles it in one cheap pass.
    if not bool(
        torch.isnan(_wide(data).sum(dtype=torch.float64 if data.dtype == torch.float64 else torch.float32))
    ):
        return False
    return bool((torch.isnan(_wide(data)) & (held.writers != UNWRITTEN)).any())


def _wide(value: Tensor) -> Tensor:
    return value.to(torch.float32) if value.element_size() == 1 else value


def _finite_inputs(args: Sequence[Any]) -> bool:
    for value in args:
        tensor = torch.as_tensor(value) if not isinstance(value, Tensor) else value
        if tensor.is_floating_point() and not bool(torch.isfinite(_wide(tensor)).all()):
            return False
    return True


class _FirstNan(Exception):
    def __init__(self, op: Operation, coordinates: tuple[int, ...]):
        self.op = op
        self.coordinates = coordinates


class _Watch:
    """Looks at every tile for the first NaN, and for what was infinite before it."""

    def __init__(self) -> None:
        self.infinite: set[Operation] = set()

    def probe(self, op: Operation) -> Callable[..., None]:
        """The function that is called with the results of `op`. It raises _FirstNan."""
        floats = [i for i, r in enumerate(op.results) if is_tensor(r.type) and element(r.type).is_float]

        def look(*values: Any) -> None:
            for i in floats:
                if isinstance(values[i], Tensor):
                    wide = _wide(values[i])
                    bad = torch.isnan(wide)
                    if bool(bad.any()):
                        raise _FirstNan(op, tuple(int(c) for c in torch.nonzero(bad)[0]))
                    if op not in self.infinite and bool(torch.isinf(wide).any()):
                        self.infinite.add(op)

        return look

    def before(self, op: Operation) -> str:
        """`; arith.divf in line 12 is infinite, which is behind it`: the first such operation."""
        values = {v.owner for operand in op.operands for v in behind(operand)}
        made = [o for o in self.infinite if o in values]
        if not made:
            return ""
        first = min(made, key=location)
        return f"; {first.name} in line {location(first)[1]}, which is behind it, is infinite"


def _trace_nan(
    function: func.FuncOp, again: Callable[[Probe], tuple[Session, list[Any]]]
) -> list[Diagnostic]:
    """Run once more, looking at every tile, to name the operation that makes the first NaN."""
    watch = _Watch()
    session, values = again(watch.probe)
    try:
        run_cores(session, values)
    except _FirstNan as first:
        text = "NaN from finite input" + watch.before(first.op)
        return [at(first.op, "KT210", text, core=session.core, coordinates=first.coordinates)]
    except KtirError:
        pass
    return [at(function, "KT210", "an output is NaN though every input is finite")]
