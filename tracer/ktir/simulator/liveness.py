"""Peak bytes of tiles alive at once on one core, from SSA liveness.

A tile lives from its definition to its last use; at an operation, operands and results live together. The
result of an operation with `outs`, of a reshape, and of a loop's carried value takes the place of the
value it continues where that value dies there. Splat constants and `tensor.empty` hold no elements of
their own.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.dialect import ForallOp
from tracer.ktir.simulator.dtypes import UnsupportedTypeError, element

_ALIASES = {
    "tensor.expand_shape",
    "tensor.collapse_shape",
    "tensor.reshape",
    "tensor.cast",
    "scf.yield",
}
_FREE = {"tensor.empty", "tensor.splat"}


def tile_bytes(value: SSAValue) -> int:
    """Bytes of a tile; 0 for anything else and for dynamic shapes."""
    if not isinstance(value.type, TensorType):
        return 0
    total = 1
    for extent in value.type.get_shape():
        if extent == DYNAMIC_INDEX:
            return 0
        total *= extent
    try:
        return total * element(value.type).bytes
    except UnsupportedTypeError:
        return 0


def peak(function: FuncOp) -> tuple[int, Operation]:
    """Largest number of live bytes, and the operation where it occurs."""
    best = (0, function)
    if len(function.body.blocks) != 1:
        return best
    found = _block(function.body.block, set())
    return found if found is not None and found[0] > 0 else best


def _free(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if owner.name in _FREE:
        return True
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, DenseIntOrFPElementsAttr)
        and owner.value.is_splat()
    )


def _cost(values: set[SSAValue]) -> int:
    return sum(tile_bytes(v) for v in values if not _free(v))


def _last_uses(block: Block) -> dict[SSAValue, int]:
    """Position in the block of the last op that uses each value, inside nested regions too."""
    last: dict[SSAValue, int] = {}
    for position, op in enumerate(block.ops):
        for inner in op.walk():
            for operand in inner.operands:
                last[operand] = position
    return last


def _block(block: Block, outer: set[SSAValue]) -> tuple[int, Operation] | None:
    last = _last_uses(block)
    live = outer | {a for a in block.args if tile_bytes(a)}
    best: tuple[int, Operation] | None = None
    for position, op in enumerate(block.ops):
        dying = {v for v in live if last.get(v, -1) <= position and v not in outer}
        inside = None
        if isinstance(op, scf.ForOp | scf.IfOp | scf.WhileOp | scf.ParallelOp | ForallOp):
            # Carried values take the place of their inits where those die here.
            passed = live - {v for v in op.operands if v in dying}
            for region in op.regions:
                for nested in region.blocks:
                    found = _block(nested, passed)
                    if found is not None and (inside is None or found[0] > inside[0]):
                        inside = found
            here = _cost(live)
        else:
            here = _cost(live | set(op.results)) - _reused(op, dying)
        if best is None or here > best[0]:
            best = (here, op)
        if inside is not None and inside[0] > best[0]:
            best = inside
        live = (live - dying) | {r for r in op.results if tile_bytes(r) and last.get(r, -1) > position}
    return best


def _reused(op: Operation, dying: set[SSAValue]) -> int:
    """Bytes that the result shares with an operand that ends here."""
    if not op.results:
        return 0
    size = tile_bytes(op.results[0])
    if op.name in _ALIASES:
        candidates = list(op.operands[:1])
    elif op.name.startswith("linalg.") or op.name in ("tensor.insert_slice", "tensor.insert"):
        candidates = list(op.operands[-1:]) if op.name.startswith("linalg.") else list(op.operands[1:2])
    else:
        return 0
    return size if any(v in dying and not _free(v) and tile_bytes(v) == size for v in candidates) else 0
