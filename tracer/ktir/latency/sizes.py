"""What operations cost over tiles whose extents are known at run time only: the function is run, and the cost
of every execution follows from the shapes that its tiles had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.dialect.ktdp import InterTileReduceOp
from tracer.ktir.latency.ops import Cost, cost_of
from tracer.ktir.simulator.compile import compile_function
from tracer.ktir.simulator.compiler import Unsupported
from tracer.ktir.simulator.dynamic import Shapes, is_dynamic
from tracer.ktir.simulator.run import Function
from tracer.ktir.simulator.schedule import run_cores
from tracer.ktir.text.module import with_source
from tracer.target import SPYRE

_TAKES_A_RUN = "the latency of tiles whose extents are known at run time only takes a run"


def unsized(op: Operation, mode: str) -> bool:
    """Whether an operation costs something that follows from extents known at run time only."""
    if not is_dynamic(op):
        return False
    try:
        cost_of(op, mode)
    except Unsupported:
        return True
    return False


def measured_costs(
    function: Function, args: Sequence[Any] | None, grid: Sequence[int], mode: str, max_steps: int
) -> dict[tuple[int, Operation], Cost]:
    """Cost of all executions of an operation on a core, of those that are `unsized`.

    Raises Unsupported where an argument is missing, where the function needs memory beside its arguments, and
    for an operation that has no cost; KtirError where the run fails.
    """
    pointers = [p for p in range(len(function.argument_names)) if args is None or args[p] is None]
    if args is None or pointers:
        missing = ", ".join(function.argument_names[p] for p in pointers)
        raise Unsupported(f"{_TAKES_A_RUN}; pass a value for {missing}")
    ops = {op for op in function.module.module.walk() if unsized(op, mode)}
    program = compile_function(function.module.module, function.op, shaped=ops)
    session, _, values = function._prepare(
        args, grid, False, False, (), None, None, SPYRE, program, max_steps=max_steps
    )
    counts: Counter[tuple[int, Operation, Shapes]] = Counter()
    try:
        run_cores(session, values, counts)
    except KtirError as error:
        if error.code == "KT221":
            raise Unsupported(f"{_TAKES_A_RUN}, with all memory in arguments") from None
        raise KtirError(with_source(d, function.module.lines) for d in error.diagnostics) from None
    costs: dict[tuple[Operation, Shapes], Cost] = {}
    found: dict[tuple[int, Operation], Cost] = {}
    for (core, op, shapes), runs in counts.items():
        if (op, shapes) not in costs:
            costs[op, shapes] = _cost(op, shapes, mode)
        found[core, op] = found.get((core, op), Cost()) + costs[op, shapes] * runs
    return found


def _cost(op: Operation, shapes: Shapes, mode: str) -> Cost:
    """Cost of one execution over tiles of these shapes, of operands and results in order."""
    sized = [_typed(v.type, s) for v, s in zip((*op.operands, *op.results), shapes, strict=True)]
    operands = Block(arg_types=sized[: len(op.operands)])
    clone = op.clone(dict(zip(op.operands, operands.args, strict=True)))
    for result, type_ in zip(list(clone.results), sized[len(op.operands) :], strict=True):
        Rewriter.replace_value_with_new_type(result, type_)
    if isinstance(clone, InterTileReduceOp):
        for value in _inside(clone):
            if value.type == op.operands[1].type:
                Rewriter.replace_value_with_new_type(value, clone.identity.type)
    try:
        return cost_of(clone, mode)
    finally:
        # The regions of the clone may use values of the function.
        clone.drop_all_references()


def _typed(type_: Attribute, shape: tuple[int, ...] | None) -> Attribute:
    if shape is None or not isinstance(type_, TensorType):
        return type_
    return TensorType(type_.get_element_type(), shape)


def _inside(op: InterTileReduceOp) -> list[SSAValue]:
    return [*op.body.block.args, *(result for inner in op.body.block.ops for result in inner.results)]
