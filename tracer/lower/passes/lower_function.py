"""`tt.func` becomes `func.func` over `index` pointers, with the launch grid as an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Region

from tracer.lower.build import INDEX
from tracer.lower.edit import erase, operations, retype
from tracer.lower.manager import Job
from tracer.lower.tt_ops import FuncOp, ReturnOp


@dataclass(frozen=True)
class LowerFunction:
    """Signature, grid and return."""

    name: ClassVar[str] = "lower-function"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        for function in [op for op in operations(module) if isinstance(op, FuncOp)]:
            _convert(function, job)


def _convert(function: FuncOp, job: Job) -> None:
    body = function.body
    for argument in body.block.args:
        retype(argument, INDEX)
    for op in list(body.block.ops):
        if isinstance(op, ReturnOp):
            body.block.insert_op_before(func.ReturnOp(), op)
            erase(op)
    block = body.detach_block(0)
    kinds = [argument.type for argument in block.args]
    new = func.FuncOp(function.sym_name.data, (kinds, []), Region(block))
    new.attributes["grid"] = ArrayAttr([IntegerAttr(job.grid, i64)])
    parent = function.parent_block()
    assert parent is not None
    parent.insert_op_before(new, function)
    erase(function)
