"""Which arguments a function may store to, by following pointers backwards from its stores."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import BlockArgument, Operation, SSAValue

from tracer.ktir.dialect import ktdp
from tracer.ktir.slices import sources


def stored_arguments(function: func.FuncOp) -> tuple[int, ...]:
    """Positions of the index arguments that reach the pointer of a stored view, in order.

    Follows views, tiles, integer arithmetic, loop-carried values and calls; never misses a stored
    argument, and may name a number that only enters the address arithmetic.
    """
    return pointer_arguments(function, ktdp.StoreOp)


def loaded_arguments(function: func.FuncOp) -> tuple[int, ...]:
    """As `stored_arguments`, for loads and the index views of indirect tiles."""
    found = set(pointer_arguments(function, ktdp.LoadOp))
    if any(isinstance(op, ktdp.ConstructIndirectAccessTileOp) for op in function.walk()):
        found |= set(viewed_arguments(function))
    return tuple(sorted(found))


def viewed_arguments(function: func.FuncOp) -> tuple[int, ...]:
    """As `stored_arguments`, for every memory view, index views of indirect tiles included."""
    return pointer_arguments(function, ktdp.ConstructMemoryViewOp)


def pointer_arguments(function: func.FuncOp, kind: type[Operation]) -> tuple[int, ...]:
    """Positions of the arguments behind the views that ops of `kind` access."""
    todo: list[SSAValue] = []
    for op in function.walk():
        if isinstance(op, kind) and isinstance(op, ktdp.ConstructMemoryViewOp):
            todo.append(op.pointer)
        elif isinstance(op, kind):
            todo += views_of(op.operands[-1 if isinstance(op, ktdp.StoreOp) else 0])
        elif isinstance(op, func.CallOp):
            todo += _through_call(function, op, kind)
    parameters = set(function.body.block.args)
    seen: set[SSAValue] = set()
    found: set[int] = set()
    while todo:
        value = todo.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in parameters:
            assert isinstance(value, BlockArgument)
            found.add(value.index)
        todo += sources(value)
    return tuple(sorted(found))


def views_of(tile: SSAValue) -> list[SSAValue]:
    """Pointers behind an access tile."""
    owner = tile.owner
    if isinstance(owner, ktdp.ConstructAccessTileOp | ktdp.ConstructIndirectAccessTileOp):
        return _pointers(owner.base)
    return [tile]


def _pointers(view: SSAValue) -> list[SSAValue]:
    owner = view.owner
    if isinstance(owner, ktdp.ConstructMemoryViewOp):
        return [owner.pointer]
    if isinstance(owner, ktdp.ConstructDistributedMemoryViewOp):
        return [p for part in owner.views for p in _pointers(part)]
    return [view]


def _through_call(function: func.FuncOp, call: func.CallOp, kind: type[Operation]) -> list[SSAValue]:
    module = function.parent_op()
    callee = call.callee.string_value()
    for other in module.walk() if module is not None else ():
        if isinstance(other, func.FuncOp) and other.sym_name.data == callee and other is not function:
            return [call.operands[i] for i in pointer_arguments(other, kind)]
    return []
