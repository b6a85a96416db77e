"""Rules of structured linalg operations that xDSL does not check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, i1
from xdsl.dialects.linalg.abstract_ops import ElementwiseOperation
from xdsl.dialects.linalg.ops import CopyOp, FillOp, GenericOp, SelectOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect.extra_ops import ELEMENTWISE


def linalg_findings(op: Operation) -> Iterator[Diagnostic]:
    """KT102 for element types that an elementwise operation would have to cast, and for a parallel loop whose
    iterations all write one element.
    """
    if isinstance(op, ElementwiseOperation | FillOp | CopyOp) or op.name in ELEMENTWISE:
        yield from _mixed(op)
    elif isinstance(op, GenericOp):
        yield from _repeated(op)


def _mixed(op: Operation) -> Iterator[Diagnostic]:
    # MLIR's contractions cast their inputs. Its linalg.copy does so too; KTIR has that of one type only.
    values: Sequence[SSAValue] = op.operands
    if isinstance(op, SelectOp):
        if (condition := _element(values[0])) != i1:
            yield at(op, "KT102", f"its first input is a condition of i1, not of {condition}")
        values = values[1:]
    held = dict.fromkeys(str(_element(v)) for v in values)
    if len(held) > 1:
        text = f"casts nothing, but its operands are of {' and '.join(held)}; cast them before it"
        yield at(op, "KT102", text)


def _element(value: SSAValue) -> object:
    return getattr(value.type, "element_type", value.type)


def _repeated(op: GenericOp) -> Iterator[Diagnostic]:
    kinds = [t.data.value for t in op.iterator_types]
    maps = [m.data for m in op.indexing_maps]
    # A loop of one iteration repeats nothing.
    single = {
        expr.position
        for map_, value in zip(maps, op.operands, strict=True)
        for expr, extent in zip(map_.results, _extents(value), strict=False)
        if isinstance(expr, AffineDimExpr) and extent == 1
    }
    for number, map_ in enumerate(maps[len(op.inputs) :]):
        kept = map_.used_dims()
        for loop, kind in enumerate(kinds):
            if kind == "parallel" and loop not in kept and loop not in single:
                text = (
                    f"loop {loop} is parallel, but output {number} does not keep it, so that its iterations"
                    " write one element in no order; call it a reduction, or add it to the map of the output"
                )
                yield at(op, "KT102", text)


def _extents(value: SSAValue) -> Sequence[int]:
    return value.type.get_shape() if hasattr(value.type, "get_shape") else (DYNAMIC_INDEX,)
