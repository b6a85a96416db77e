"""The operations that decide which elements a function touches: addresses, bounds and conditions, not
arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue

from tracer.ktir.dialect import ktdp
from tracer.ktir.dialect.region_ops import BRANCHES

_ADDRESSING = (
    ktdp.ConstructMemoryViewOp,
    ktdp.ConstructDistributedMemoryViewOp,
    ktdp.ConstructAccessTileOp,
    ktdp.ConstructIndirectAccessTileOp,
)


def addressing(function: func.FuncOp) -> set[Operation]:
    """The backward slice of every access tile, loop bound and condition of the function and what it calls."""
    todo: list[SSAValue] = []
    for op in _everything(function):
        if isinstance(op, _ADDRESSING):
            todo += [*op.results]
        elif isinstance(op, scf.ForOp):
            todo += [op.lb, op.ub, op.step]
        elif isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ConditionOp):
            todo.append(op.operands[0])
        elif isinstance(op, scf.ParallelOp | ktdp.ForallOp):
            todo += _bounds(op)
    kept: set[Operation] = set()
    seen: set[SSAValue] = set()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Operation):
            kept |= _whole(owner)
        todo += sources(value)
    return kept


def sources(value: SSAValue) -> list[SSAValue]:
    """The values that `value` is computed from, carried values of loops lane by lane."""
    owner = value.owner
    if isinstance(owner, Operation):
        assert isinstance(value, OpResult)
        match owner:
            case scf.ForOp():
                return [*_carried(owner, value.index), owner.lb, owner.ub, owner.step]
            case scf.IfOp() | scf.ExecuteRegionOp() | scf.IndexSwitchOp():
                return [
                    *owner.operands,
                    *(ends(r)[value.index] for r in owner.regions if r.blocks),
                ]
            case scf.WhileOp():
                return [ends(owner.before_region)[1 + value.index]]
        inside = [v for region in owner.regions for op in region.walk() for v in op.operands]
        return [*owner.operands, *inside]
    parent = owner.parent_op()
    assert isinstance(value, BlockArgument)
    if isinstance(parent, scf.ForOp):
        return [parent.lb, parent.ub, parent.step] if value.index == 0 else _carried(parent, value.index - 1)
    if isinstance(parent, ktdp.ForallOp) and value in parent.shared:
        return [parent.outputs[value.index - len(parent.indices)]]
    if isinstance(parent, scf.ParallelOp | ktdp.ForallOp):
        return _bounds(parent)
    if isinstance(parent, scf.WhileOp):
        if owner is parent.before_region.block:
            return [parent.arguments[value.index], ends(parent.after_region)[value.index]]
        return [ends(parent.before_region)[1 + value.index]]
    return []


def behind(value: SSAValue) -> set[SSAValue]:
    """Everything that a value is computed from, itself included."""
    todo, passed = [value], set[SSAValue]()
    while todo:
        current = todo.pop()
        if current not in passed:
            passed.add(current)
            todo += sources(current)
    return passed


def ends(region: Region) -> Sequence[SSAValue]:
    """What a one-block region yields."""
    last = region.block.last_op
    return last.operands if last is not None else ()


def _bounds(loop: scf.ParallelOp | ktdp.ForallOp) -> list[SSAValue]:
    if isinstance(loop, ktdp.ForallOp):
        return [*loop.lower, *loop.upper, *loop.step]
    return [*loop.lowerBound, *loop.upperBound, *loop.step]


def _carried(loop: scf.ForOp, lane: int) -> list[SSAValue]:
    end = loop.body.block.last_op
    return [loop.iter_args[lane], *([end.operands[lane]] if end is not None else [])]


def _whole(op: Operation) -> set[Operation]:
    """An op with the payload in its regions; control flow is compiled in any case."""
    if isinstance(op, (scf.ForOp, scf.WhileOp, *BRANCHES)):
        return {op}
    return set(op.walk())


def _everything(function: func.FuncOp) -> list[Operation]:
    ops = list(function.walk())
    module = function.parent_op()
    called = {op.callee.string_value() for op in ops if isinstance(op, func.CallOp)}
    for other in module.walk() if module is not None and called else ():
        if isinstance(other, func.FuncOp) and other.sym_name.data in called and other is not function:
            ops += _everything(other)
    return ops
