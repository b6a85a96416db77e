"""Which values differ between lanes, and which loops may run their iterations as lanes.

A lane is one core, or one iteration of a core's loop where iterations do not depend on each other. The
analysis is a forward data flow to a fixpoint; everything it cannot place makes the function run core by
core instead.
"""

from __future__ import annotations

from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.dynamic import is_dynamic
from tracer.ktir.slices import ends

_IGNORES_OUTS = {
    *(f"linalg.{name}" for name in ("fill", "transpose", "broadcast", "add", "sub", "mul", "max", "min")),
    *(f"linalg.{name}" for name in ("exp", "log", "sqrt", "select", "copy")),
    *ktdp.ELEMENTWISE,
}
_CORE_BY_CORE = {
    "func.call", "scf.while", "scf.parallel", "scf.forall", "scf.execute_region", "scf.index_switch",
    "ktdp.inter_tile_reduce",
}  # fmt: skip
_LOOPS = (scf.ForOp, scf.IfOp, scf.WhileOp)


def expandable(loop: Operation) -> bool:
    """Whether the iterations of a loop carry nothing from one to the next and never wait for other cores."""
    if not isinstance(loop, scf.ForOp) or loop.iter_args:
        return False
    return not any(op.name == "ktdp.inter_tile_reduce" for op in loop.walk())


def batchable(function: func.FuncOp) -> bool:
    """Whether the function has only operations that lanes are worth trying for, and returns nothing."""
    if function.function_type.outputs.data:
        return False
    for op in function.walk():
        if op.name in _CORE_BY_CORE:
            return False
        # Every core has a scratchpad of its own, whatever the address.
        if isinstance(op, ktdp.ConstructMemoryViewOp) and op.memory_space.is_local:
            return False
        # Extents that may differ from lane to lane, and are checked at run time, core by core.
        if is_dynamic(op):
            return False
    return True


def varying_values(function: func.FuncOp) -> set[SSAValue]:
    """Every value that may differ between lanes."""
    found: set[SSAValue] = set()
    ops = list(function.walk())
    while True:
        before = len(found)
        for op in ops:
            _visit(op, found)
        if len(found) == before:
            return found


def _visit(op: Operation, found: set[SSAValue]) -> None:
    if isinstance(op, ktdp.GetComputeTileIdOp):
        found.update(op.results)
    elif isinstance(op, scf.ForOp):
        induction, *carried = op.body.block.args
        if expandable(op) or found & {op.lb, op.ub, op.step}:
            found.add(induction)
        end = op.body.block.last_op
        assert end is not None
        for arg, init, final, result in zip(carried, op.iter_args, end.operands, op.results, strict=True):
            if found & {arg, init, final} or found & {op.lb, op.ub, op.step}:
                found.update((arg, result))
    elif isinstance(op, scf.IfOp):
        for lane, result in enumerate(op.results):
            yields = {ends(r)[lane] for r in op.regions if r.blocks}
            if op.cond in found or found & yields:
                found.add(result)
    elif any(v in found for v in inputs(op)):
        found.update(op.results)


def inputs(op: Operation) -> list[SSAValue]:
    """The values an operation's results depend on, captured ones included, `outs` that only give a shape
    left out.
    """
    operands = list(op.operands)
    if op.name in _IGNORES_OUTS:
        operands = operands[:-1]
    if op.regions and not isinstance(op, _LOOPS):
        operands += captured(op)
    return operands


def captured(op: Operation) -> list[SSAValue]:
    """Values from outside that the regions of an operation use."""
    own: set[SSAValue] = set()
    used: list[SSAValue] = []
    for region in op.regions:
        for block in region.blocks:
            own.update(block.args)
        for inner in region.walk():
            own.update(inner.results)
            own.update(a for r in inner.regions for b in r.blocks for a in b.args)
            used += inner.operands
    return [v for v in dict.fromkeys(used) if v not in own]
