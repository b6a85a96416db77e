"""Tiles alive at once on one core, from SSA liveness.

A tile lives from its definition to its last use; at an operation, operands and results live together. The
result of an operation with `outs`, of a reshape, and of a loop's carried value takes the place of the
value it continues where that value dies there. Splat constants and `tensor.empty` hold no elements of
their own. A future holds what the core produced until its last use on that core: the yielded tile itself
where the core has it anyway. A producer has one round under way, as one that ran ahead could wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, Attribute, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.dialect.ktdp import ForallOp, InterTileProduceOp, InterTileReduceOp, TileFutureType
from tracer.ktir.dialect.region_ops import BRANCHES
from tracer.ktir.simulator.dtypes import UnsupportedTypeError, element

_ALIASES = {
    "tensor.expand_shape",
    "tensor.collapse_shape",
    "tensor.reshape",
    "tensor.cast",
}
_FREE = {"tensor.empty", "tensor.splat"}
_NESTED = (
    scf.ForOp,
    scf.WhileOp,
    scf.ParallelOp,
    ForallOp,
    InterTileProduceOp,
    InterTileReduceOp,
    *BRANCHES,
)


@dataclass(frozen=True)
class Held:
    """What a core holds while an operation runs."""

    op: Operation
    values: frozenset[SSAValue]
    """Tiles and futures that take space of their own."""
    around: frozenset[SSAValue]
    """Those of them that stay while the regions of the operation run, or the function that it calls."""

    @property
    def known(self) -> int:
        """Bytes of those whose extents are known without running."""
        return sum(tile_bytes(v) for v in self.values)

    @property
    def unknown(self) -> tuple[SSAValue, ...]:
        """Those whose extents are known at run time only."""
        return tuple(v for v in self.values if _is_unknown(v))


def tile_bytes(value: SSAValue) -> int:
    """Bytes of a tile or of a future's partial; 0 for anything else and for dynamic shapes."""
    tile = _tile_type(value)
    if tile is None or DYNAMIC_INDEX in tile.get_shape():
        return 0
    total = 1
    for extent in tile.get_shape():
        total *= extent
    return total * element_bytes(value)


def element_bytes(value: SSAValue) -> int:
    """Bytes of one element of a tile or of a future's partial; 0 for anything else."""
    tile = _tile_type(value)
    if tile is None:
        return 0
    try:
        return element(tile).bytes
    except UnsupportedTypeError:
        return 0


def peak(function: func.FuncOp) -> tuple[int, Operation]:
    """Largest number of live bytes, and the operation where it occurs; tiles whose extents are known at run
    time only count nothing.
    """
    best: tuple[int, Operation] = (0, function)
    if len(function.body.blocks) != 1:
        return best
    for held in tiles_held(function.body.block):
        if (known := held.known) > best[0]:
            best = (known, held.op)
    return best


def measured(module: Operation) -> bool:
    """Whether some tile has extents that are known at run time only."""
    return any(_is_unknown(result) for op in module.walk() for result in op.results)


def called(call: func.CallOp) -> Block | None:
    """The body of the function that a call names, where it is one block."""
    module: Operation = call
    while (parent := module.parent_op()) is not None:
        module = parent
    for op in module.walk():
        if isinstance(op, func.FuncOp) and op.sym_name.data == call.callee.string_value():
            return op.body.block if len(op.body.blocks) == 1 else None
    return None


def tiles_held(
    block: Block, around: frozenset[SSAValue] = frozenset(), callers: tuple[Block, ...] = ()
) -> Iterator[Held]:
    """What is held at every operation of a block, of its regions and of what it calls, in order.

    `around` is held all the time; a caller holds the arguments of what it calls until that returns.
    """
    last = _last_uses(block)
    arguments = () if isinstance(block.parent_op(), func.FuncOp) else block.args
    live = around | {a for a in arguments if element_bytes(a)}
    for position, op in enumerate(block.ops):
        dying = {v for v in live if last.get(v, -1) <= position and v not in around}
        operands = [place(v) for v in op.operands]
        made = {r for r in op.results if element_bytes(r) and place(r) is r and not _free(r)}
        if isinstance(op, func.CallOp):
            yield Held(op, live | made, live)
            body = called(op)
            if body is not None and body not in callers:
                yield from tiles_held(body, live, (*callers, body))
        elif isinstance(op, _NESTED):
            # Carried values take the place of their inits where those die here, unread by what carries them.
            read = {place(v) for r in op.regions for inner in r.walk() for v in inner.operands}
            inside = live - (dying.intersection(operands) - read)
            yield Held(op, live, inside)
            for region in op.regions:
                for nested in region.blocks:
                    yield from tiles_held(nested, inside, callers)
        else:
            yield Held(op, (live - dying.intersection(_continued(op, operands))) | made, frozenset())
        live = (live - dying) | {r for r in made if last.get(r, -1) > position}


def place(value: SSAValue) -> SSAValue:
    """The tile that a future holds on to, where the core has it anyway; any other value itself."""
    produce = value.owner
    if not isinstance(produce, InterTileProduceOp):
        return value
    end = produce.body.block.last_op
    assert end is not None
    partial = end.operands[0]
    return value if partial.owner in (produce.body.block, *produce.body.block.ops) else partial


def _continued(op: Operation, operands: Sequence[SSAValue]) -> Iterator[SSAValue]:
    """The operands whose place the results may take."""
    if op.name in _ALIASES:
        pairs = [(op.results[0], operands[0])]
    elif op.name.startswith("linalg."):
        pairs = list(zip(op.results, operands[len(operands) - len(op.results) :], strict=True))
    elif op.name in ("tensor.insert_slice", "tensor.insert"):
        pairs = [(op.results[0], operands[1])]
    else:
        return
    for result, operand in pairs:
        # Where extents are known at run time only, these operations make a tile of the same size too.
        if tile_bytes(result) == tile_bytes(operand) or _is_unknown(result) or _is_unknown(operand):
            yield operand


def _free(value: SSAValue) -> bool:
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if owner.name in _FREE:
        return True
    return (
        isinstance(owner, arith.ConstantOp)
        and isinstance(owner.value, DenseIntOrFPElementsAttr)
        and len(owner.value) > 0
        and owner.value.is_splat()
    )


def _last_uses(block: Block) -> dict[SSAValue, int]:
    """Position in the block of the last op that uses each value, inside nested regions too."""
    last: dict[SSAValue, int] = {}
    for position, op in enumerate(block.ops):
        for inner in op.walk():
            for operand in inner.operands:
                last[place(operand)] = position
    return last


def _tile_type(value: SSAValue) -> TensorType[Attribute] | None:
    found: Attribute = value.type
    if isinstance(found, TileFutureType):
        found = found.partial
    return found if isinstance(found, TensorType) else None


def _is_unknown(value: SSAValue) -> bool:
    tile = _tile_type(value)
    return tile is not None and DYNAMIC_INDEX in tile.get_shape() and element_bytes(value) > 0
