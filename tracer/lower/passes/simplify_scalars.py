"""Fold integer scalars that can take one value only, and arithmetic that changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from tracer.lower.analysis.scalars import Scalars, constant_of
from tracer.lower.edit import Emitter, erase, is_pure, operations
from tracer.lower.manager import Job


@dataclass(frozen=True)
class SimplifyScalars:
    """`tile % n` is `tile` where every tile number is below n, and so on; exact over all iterations."""

    name: ClassVar[str] = "simplify-scalars"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        scalars = Scalars(job.grid)
        for op in operations(module):
            if isinstance(op, arith.ConstantOp) or not _is_integer_op(op):
                continue
            _simplify(op, scalars)
        remove_dead(module)


def _is_integer_op(op: Operation) -> bool:
    return (
        len(op.results) == 1
        and isinstance(op.results[0].type, IntegerType | IndexType)
        and not op.regions
        and is_pure(op)
    )


def _simplify(op: Operation, scalars: Scalars) -> None:
    result = op.results[0]
    found = scalars.at([result], op)
    if found is not None and found[0].size and (found[0] == found[0][0]).all():
        value = int(found[0][0])
        if result.type == IntegerType(1):
            value = -value
        emitter = Emitter(op)
        emitter.replace([emitter.integer(value, result.type)])
        return
    same = _unchanged(op, scalars)
    if same is not None and same.type == result.type:
        hint = same.name_hint
        Emitter(op).replace([same])
        same.name_hint = hint or same.name_hint


def _unchanged(op: Operation, scalars: Scalars) -> SSAValue | None:
    """The operand that the result always equals, if any."""
    if len(op.operands) != 2:
        return None
    lhs, rhs = op.operands
    a, b = constant_of(lhs), constant_of(rhs)
    match op.name:
        case "arith.addi" | "arith.ori" | "arith.xori":
            return lhs if b == 0 else rhs if a == 0 else None
        case "arith.subi" | "arith.shli" | "arith.shrsi" if b == 0:
            return lhs
        case "arith.muli":
            return lhs if b == 1 else rhs if a == 1 else None
        case "arith.divsi" | "arith.divui" if b == 1:
            return lhs
        case "arith.remsi" | "arith.remui" if b is not None:
            bounds = scalars.bounds(lhs, op)
            return lhs if bounds and bounds[0] >= 0 and bounds[1] < b else None
    return None


def remove_dead(module: ModuleOp) -> None:
    """Erase pure operations that nobody uses."""
    for op in reversed(operations(module)):
        if op.results and is_pure(op) and not any(r.first_use for r in op.results):
            erase(op)
