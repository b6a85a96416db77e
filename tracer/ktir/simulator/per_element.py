"""What a region that runs once for all elements may do with a scalar that differs from element to element.

Such a scalar is held as a tile. Elementwise arithmetic takes one; an operation that makes or moves tiles
would take it for another tile, and a loop has one count for all elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, scf, tensor
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from tracer.ktir.dialect.region_ops import BRANCHES
from tracer.ktir.simulator.dtypes import is_tensor


def differing_results(op: Operation, differing: set[SSAValue]) -> bool:
    """Add to `differing` what differs between elements because of `op`; whether such a region may hold it."""
    inside = [v for region in op.regions for inner in region.walk() for v in inner.operands]
    if op.name == "linalg.index":
        differing.update(op.results)
    if differing.isdisjoint([*op.operands, *inside]):
        return True
    if (common := _common(op)) is None or not differing.isdisjoint(common):
        return False
    match op:
        case scf.ForOp():
            differing.update(op.body.block.args[1:])
        case scf.WhileOp():
            differing.update([*op.before_region.block.args, *op.after_region.block.args])
        case scf.ReduceOp():
            differing.update(a for region in op.reductions for a in region.block.args)
    differing.update(op.results)
    return True


def _common(op: Operation) -> Sequence[SSAValue] | None:
    """The operands that must be one for all elements; None where all must."""
    match op:
        case tensor.ExtractOp():
            return (op.tensor,)
        case scf.ForOp():
            return (op.lb, op.ub, op.step)
        case scf.ParallelOp():
            return (*op.lowerBound, *op.upperBound, *op.step)
        case scf.ConditionOp():
            return op.operands[:1]
        case scf.WhileOp() | scf.ReduceOp() | func.CallOp():
            return ()
    if op.has_trait(IsTerminator) or isinstance(op, BRANCHES):
        # Branches are refused in such a region whatever they are of.
        return ()
    scalar = op.name.startswith(("arith.", "math."))
    return () if scalar and not any(is_tensor(v.type) for v in (*op.operands, *op.results)) else None
