"""Tile numbers, coordinates and loop bounds are `index` values; Triton has them as i32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, i1
from xdsl.ir import Operation, SSAValue

from tracer.ktir.dialect.arith_ops import CmpiOp
from tracer.ktir.dialect.ktdp import GetComputeTileIdOp
from tracer.lower.analysis.scalars import Scalars, constant_of
from tracer.lower.build import ARITH, INDEX, index_cast
from tracer.lower.edit import Emitter, element_type, erase, operations, replace, retype
from tracer.lower.manager import Job
from tracer.lower.tt_ops import DescriptorLoadOp, DescriptorStoreOp, GetProgramIdOp

_ARITHMETIC = (
    "arith.addi",
    "arith.subi",
    "arith.muli",
    "arith.divsi",
    "arith.remsi",
    "arith.divui",
    "arith.remui",
    "arith.minsi",
    "arith.maxsi",
)
_CASTS = ("arith.extsi", "arith.trunci")
_UNSIGNED = {"arith.divsi": "arith.divui", "arith.remsi": "arith.remui"}


@dataclass(frozen=True)
class IndexScalars:
    """Program ids become compute tile ids; what is computed from them becomes `index`."""

    name: ClassVar[str] = "index-scalars"

    def apply(self, module: ModuleOp, job: Job) -> None:
        """Rewrite in place."""
        _unsigned_division(module, job)
        original = _Converted({}, {})
        for op in operations(module):
            if isinstance(op, GetProgramIdOp):
                tile = GetComputeTileIdOp(1)
                emitter = Emitter(op)
                kind = op.result.type
                emitter.insert(tile, "core")
                tile.ids[0].name_hint = "core"
                original.types[tile.ids[0]] = kind
                for use in list(op.result.uses):
                    use.operation.operands[use.index] = tile.ids[0]
                erase(op)
            elif isinstance(op, scf.ForOp):
                _convert_loop(op, original)
            elif op.name in _ARITHMETIC and _scalar(op):
                _convert_arithmetic(op, original)
            elif op.name in _CASTS and op.operands[0] in original:
                _convert_cast(op, original)
            elif isinstance(op, CmpiOp) and any(o in original for o in op.operands):
                _convert_operands(op, list(range(2)), original)
        for op in operations(module):
            _restore(op, original)


@dataclass
class _Converted:
    """`types`: the integer type that an index had. `casts`: the index behind an integer of another width."""

    types: dict[SSAValue, IntegerType]
    casts: dict[SSAValue, SSAValue]

    def __contains__(self, value: SSAValue) -> bool:
        return value in self.types or value in self.casts

    def index(self, emitter: Emitter, value: SSAValue) -> SSAValue:
        """The value as an index."""
        found = self.casts.get(value, value)
        return found if found in self.types else index_cast(emitter, found, INDEX)


def _convert_cast(op: Operation, original: _Converted) -> None:
    """A change of width means nothing for an index; whoever wants the integer gets it at that width."""
    source = original.casts.get(op.operands[0], op.operands[0])
    emitter = Emitter(op)
    value = index_cast(emitter, source, op.results[0].type)
    original.casts[value] = source
    replace(op, [value])


def _scalar(op: Operation) -> bool:
    return isinstance(op.results[0].type, IntegerType) and op.results[0].type != i1


def _unsigned_division(module: ModuleOp, job: Job) -> None:
    """Division of what is never negative; the public simulator divides exactly only there."""
    scalars = Scalars(job.grid)
    for op in operations(module):
        if op.name in _UNSIGNED and _scalar(op):
            bounds = [scalars.bounds(o, op) for o in op.operands]
            if all(b is not None and b[0] >= 0 for b in bounds):
                emitter = Emitter(op)
                emitter.replace([emitter.emit(ARITH[_UNSIGNED[op.name]](*op.operands))])


def _known(value: SSAValue, original: _Converted) -> bool:
    return value in original or constant_of(value) is not None


def _convert_loop(loop: scf.ForOp, original: _Converted) -> None:
    if not all(_known(v, original) for v in (loop.lb, loop.ub, loop.step)):
        return
    induction = loop.body.block.args[0]
    if isinstance(induction.type, IntegerType):
        original.types[induction] = induction.type
    retype(induction, INDEX)
    _convert_operands(loop, [0, 1, 2], original)


def _convert_arithmetic(op: Operation, original: _Converted) -> None:
    if not all(_known(v, original) for v in op.operands) or not any(v in original for v in op.operands):
        return
    result = op.results[0]
    assert isinstance(result.type, IntegerType)
    original.types[result] = result.type
    retype(result, INDEX)
    _convert_operands(op, list(range(len(op.operands))), original)


def _convert_operands(op: Operation, positions: list[int], original: _Converted) -> None:
    for position in positions:
        op.operands[position] = original.index(Emitter(op), op.operands[position])


def _restore(op: Operation, original: _Converted) -> None:
    """Give users that want the integer a cast of it, and accesses their coordinates as `index`."""
    coordinates = op.indices if isinstance(op, DescriptorLoadOp | DescriptorStoreOp) else ()
    wants_index = range(1, 1 + len(coordinates))
    for position, value in enumerate(op.operands):
        if position in wants_index:
            op.operands[position] = original.index(Emitter(op), value)
        elif value in original.types and not _takes_index(op):
            op.operands[position] = index_cast(Emitter(op), value, original.types[value])


def _takes_index(op: Operation) -> bool:
    if isinstance(op, scf.ForOp | CmpiOp | arith.IndexCastOp) or op.name == "arith.index_cast":
        return True
    return bool(op.results) and isinstance(element_type(op.results[0].type), IndexType)
