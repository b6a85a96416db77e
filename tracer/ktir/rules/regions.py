"""What the regions of an operation take and yield: one rule over all operations that hold some.

MLIR's verifiers are the reference. `func.func`, `scf.while`, `scf.forall`, `scf.reduce` and the operations of
`ktdp` state theirs in their own classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect.extra_ops import GenerateOp, MapOp, ReduceManyOp
from tracer.ktir.dialect.value_ops import PadOp

_SCF, _LINALG, _TENSOR = "scf.yield", "linalg.yield", "tensor.yield"


class Contract(NamedTuple):
    """The terminator of a region, the types of its arguments and of what it yields."""

    end: str
    takes: Sequence[Attribute]
    yields: Sequence[Attribute]
    wanted: str
    """Where the types of what it yields come from."""


def region_findings(op: Operation) -> Iterator[Diagnostic]:
    """KT102 for every region of `op` whose arguments or terminator are not those of its contract, and KT119
    for a region that is missing or ends with another operation.
    """
    contract = _contract(op)
    for region in op.regions if contract is not None else ():
        assert contract is not None
        yield from _held(op, region, contract)


def _contract(op: Operation) -> Contract | None:
    index = IndexType()
    match op:
        case scf.IfOp() | scf.ExecuteRegionOp() | scf.IndexSwitchOp():
            return Contract(_SCF, (), op.result_types, "the results")
        case scf.ForOp():
            return Contract(_SCF, (op.lb.type, *op.result_types), op.result_types, "the carried values")
        case ops.ReduceOp() | ReduceManyOp():
            kept = _elements(op.operands[len(op.operands) // 2 :])
            return Contract(_LINALG, _elements(op.operands), kept, "the elements of the outputs")
        case MapOp():
            return Contract(_LINALG, _elements(op.inputs), _elements([op.init]), "the elements of the output")
        case LinalgStructuredOperation() if op.regions:
            return Contract(
                _LINALG, _elements(op.operands), _elements(op.outputs), "the elements of the outputs"
            )
        case GenerateOp() | PadOp():
            rank = len(op.result.type.get_shape())
            return Contract(_TENSOR, [index] * rank, _elements([op.result]), "the elements of the result")
    return None


def _elements(values: Sequence[SSAValue]) -> list[Attribute]:
    return [getattr(v.type, "element_type", v.type) for v in values]


def _held(op: Operation, region: Region, contract: Contract) -> Iterator[Diagnostic]:
    if not region.blocks:
        if contract.yields:
            yield at(op, "KT119", f"a region of {op.name} is empty; it must end with {contract.end}")
        return
    takes = [a.type for a in region.blocks[0].args]
    if takes != list(contract.takes):
        text = f"its region takes {_listed(takes)}, where {_listed(contract.takes)} is needed"
        yield at(op, "KT102", text)
    for block in region.blocks:
        last = block.last_op
        if last is None or last.successors:
            continue
        if last.name != contract.end:
            text = f"the body of {op.name} must end with {contract.end}, not with {last.name}"
            yield at(last, "KT119", text)
        elif list(last.operand_types) != list(contract.yields):
            text = (
                f"yields {_listed(last.operand_types)}, but {contract.wanted} of {op.name} are "
                f"{_listed(contract.yields)}"
            )
            yield at(last, "KT102", text)


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types)) or "nothing"
