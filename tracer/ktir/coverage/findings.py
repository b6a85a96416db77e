"""Coverage as diagnostics, for KTIR of which nothing but the text is known: outputs that stores leave out or
write twice, and contractions that sum over a part of their operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr

from tracer.ktir.accessed import suspects
from tracer.ktir.coverage.accesses import AccessMap, Coverage, Missing
from tracer.ktir.coverage.contractions import operand_findings
from tracer.ktir.coverage.repeats import repetition
from tracer.ktir.diagnostics import Diagnostic, KtirError, at
from tracer.ktir.dialect import ktdp
from tracer.ktir.simulator.provenance import views_of
from tracer.ktir.simulator.session import MAX_STEPS
from tracer.ktir.simulator.traceable import Traceable
from tracer.ktir.slices import behind
from tracer.ktir.text.module import with_source

# What a trace cannot know from the text alone: addresses in data, numbers given at run time.
_UNDECIDED = ("KT304", "KT216")


def coverage_findings(
    function: Traceable,
    args: Sequence[Any] | None = None,
    *,
    grid: Sequence[int] | None = None,
    max_steps: int = MAX_STEPS,
) -> list[Diagnostic]:
    """Warnings KT301 (written more than once), KT302 (never written), KT303 (positions never read along an
    axis that a loop sums over, or that the cores of a collective divide), KT305 (elements that one sum takes
    more than once) and KT213 (cores that contribute to nothing), and the errors KT2xx of accesses outside
    their views and of groups that do not fit.

    An output is an argument that is stored and never loaded; its elements are those of its largest view.
    Nothing is said of arguments with dynamic views or computed pointers, nor of functions whose addresses
    depend on data or numbers that `args` (as for `coverage`) does not give.
    """
    try:
        trace = repetition(function, args, grid=grid, max_steps=max_steps)
    except KtirError as error:
        found = [d for d in error.diagnostics if d.code not in _UNDECIDED]
    else:
        operands = operand_findings(function, trace, _static_arguments(function))
        found = [*_outputs(function, trace.coverage), *operands, *trace.findings]
    return [with_source(d, function.module.lines) for d in found]


def _outputs(function: Traceable, seen: Coverage) -> Iterable[Diagnostic]:
    for position, name, sizes, strides in _static_arguments(function):
        stores = [o for o in function.op.walk() if isinstance(o, ktdp.StoreOp) and _is(o.tile, position)]
        if not stores or position in function.loaded:
            continue
        total = _elements(sizes)
        if missing := _within(seen.writes.get(position), stores, sizes, strides):
            text = (
                f"{missing.count} of {total} elements of {name} are never written ({suspects(stores)},"
                " unless another function writes them); the first is"
            )
            yield _warning(stores[-1], "KT302", text, missing)
        if repeated := seen.repeated_writes(position, sizes, strides):
            text = (
                f"{repeated.count} of {total} elements of {name} are written more than once"
                f" ({suspects(stores)}); the first is"
            )
            yield _warning(stores[-1], "KT301", text, repeated)


def _open_ends(stores: Sequence[Operation]) -> tuple[set[int], set[int]]:
    """Axes along which the stores are free to begin late, and those along which they may end early.

    A constant subscript means that part and no other, and so does one that is read from memory; a sum with a
    constant leaves out what lies before.
    """
    late: set[int] | None = None
    early: set[int] | None = None
    for store in stores:
        tile = store.operands[-1].owner
        subscripts = tile.base_map.data.results if isinstance(tile, ktdp.ConstructAccessTileOp) else ()
        fixed: set[int] = set()
        shifted: set[int] = set()
        for axis, expression in enumerate(subscripts):
            assert isinstance(tile, ktdp.ConstructAccessTileOp)
            used = [tile.indices[i] for i in expression.used_dims()]
            if all(isinstance(v.owner, arith.ConstantOp) or _from_data(v) for v in used):
                fixed.add(axis)
            if axis in fixed or any(map(_shifted, used)) or _has_constant(expression):
                shifted.add(axis)
        late = shifted if late is None else late & shifted
        early = fixed if early is None else early & fixed
    return late or set(), early or set()


def _from_data(value: SSAValue) -> bool:
    return any(isinstance(source.owner, ktdp.LoadOp) for source in behind(value))


def _shifted(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.index_cast":
        return _shifted(owner.operands[0])
    return isinstance(owner, arith.AddiOp) and any(
        isinstance(v.owner, arith.ConstantOp) for v in owner.operands
    )


def _has_constant(expression: AffineExpr) -> bool:
    if isinstance(expression, AffineBinaryOpExpr) and expression.kind is AffineBinaryOpKind.Add:
        return any(
            isinstance(e, AffineConstantExpr) or _has_constant(e) for e in (expression.lhs, expression.rhs)
        )
    return False


def _within(
    writes: AccessMap | None, stores: Sequence[Operation], sizes: tuple[int, ...], strides: tuple[int, ...]
) -> Missing:
    """Elements never written, of the part that the stores mean to cover."""
    writes = writes or AccessMap()
    late, early = _open_ends(stores)
    boxes = writes.boxes.get((0, sizes, strides), [])
    if not late or writes.points or len(writes.boxes) != 1 or not boxes:
        return writes.missing(sizes, strides)
    start = [min(lo[a] for lo, _ in boxes) if a in late else 0 for a in range(len(sizes))]
    end = [max(lo[a] + n[a] for lo, n in boxes) if a in early else sizes[a] for a in range(len(sizes))]
    if not any(start) and end == list(sizes):
        return writes.missing(sizes, strides)
    part = tuple(e - s for s, e in zip(start, end, strict=True))
    shifted = [(tuple(i - s for i, s in zip(lo, start, strict=True)), n) for lo, n in boxes]
    found = AccessMap({(0, part, strides): shifted}).missing(part, strides)
    first = tuple(i + s for i, s in zip(found.first, start, strict=True)) if found.first else None
    return Missing(found.count, first)


def _static_arguments(function: Traceable) -> Iterable[tuple[int, str, tuple[int, ...], tuple[int, ...]]]:
    """Position, name, sizes and strides of the arguments that are viewed as they come, all sizes known."""
    for argument in function.op.body.block.args:
        views = [o for o in function.op.walk() if isinstance(o, ktdp.ConstructMemoryViewOp)]
        own = [v for v in views if v.pointer is argument]
        if not own or any(v.sizes or v.strides for v in own):
            continue
        if any(not isinstance(u.operation, ktdp.ConstructMemoryViewOp) for u in argument.uses):
            continue
        largest = max(own, key=lambda v: _elements(v.static_sizes.get_values()))
        sizes = tuple(int(n) for n in largest.static_sizes.get_values())
        strides = tuple(int(n) for n in largest.static_strides.get_values())
        if min((*sizes, *strides), default=0) >= 0:
            yield argument.index, function.argument_names[argument.index], sizes, strides


def _is(tile: SSAValue, position: int) -> bool:
    return any(isinstance(p, BlockArgument) and p.index == position for p in views_of(tile))


def _elements(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= int(size)
    return total


def _warning(op: Operation, code: str, text: str, where: Missing) -> Diagnostic:
    return at(op, code, text, "warning", coordinates=where.first)
