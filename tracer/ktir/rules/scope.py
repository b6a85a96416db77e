"""Whether every value is defined where it is used: before, in the same block or one around it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.diagnostics import Diagnostic, at, location


def out_of_scope(module: ModuleOp) -> Iterator[Diagnostic]:
    """KT103 for every operand whose definition does not dominate its use.

    The parser takes any value that is defined somewhere in the text; generic form may name one of another
    region, or a later one.
    """
    order = {op: index for index, op in enumerate(module.walk())}
    for op in order:
        for operand in dict.fromkeys(op.operands):
            if not _reaches(operand, op, order):
                name = f"%{operand.name_hint}" if operand.name_hint else "an operand"
                line = location(operand.owner)[1] if isinstance(operand.owner, Operation) else 0
                where = f" (line {line})" if line else ""
                yield at(op, "KT103", f"{name} is defined later or in another region{where}")


def _reaches(value: SSAValue, user: Operation, order: dict[Operation, int]) -> bool:
    home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    current: Operation | None = user
    while current is not None:
        block = current.parent_block()
        if block is home:
            return isinstance(value.owner, Block) or order[value.owner] < order[current]
        if block is not None and home is not None and block.parent is home.parent:
            return True  # Two blocks of one region: control flow, which functions are refused for.
        current = current.parent_op()
    return False
