"""Type rules of operations on tensors that xDSL does not check. MLIR's verifiers are the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Operation

from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect.extra_ops import compatible

Found = Iterator[tuple[str, str]]
"""Code and message."""


def tensor_findings(op: Operation) -> Iterator[Diagnostic]:
    """What is wrong with the shapes of an elementwise operation, and with the types and static numbers of one
    of the tensor dialect: KT102, or KT215 for a slice that leaves its tensor.
    """
    elementwise = op.name.startswith(("arith.", "math."))
    for rule in (_one_shape,) if elementwise else _RULES.get(op.name, ()):
        wrong = list(rule(op))
        yield from (at(op, code, text) for code, text in wrong)
        if wrong:
            return


def outside(axis: int, offset: int, size: int, stride: int, extent: int) -> str | None:
    """How a slice leaves an axis of `extent` elements, or None where it does not."""
    for name, value, least in (("offset", offset, 0), ("size", size, 0), ("stride", stride, 1)):
        if value < least:
            return f"{name} {value} of axis {axis} is {'negative' if not least else 'not positive'}"
    last = offset + (size - 1) * stride
    if not size or last < extent:
        return None
    steps = f" in steps of {stride}" if stride != 1 else ""
    return f"elements {offset} to {last}{steps} of axis {axis}, which has {extent} elements"


def reduces(sizes: Sequence[int], kept: Sequence[int], units: Sequence[bool]) -> bool:
    """Whether `kept` may be the shape `sizes` without some of the axes that `units` marks."""
    reached = {0}
    for size, unit in zip(sizes, units, strict=True):
        matched = {k + 1 for k in reached if k < len(kept) and compatible([size], [kept[k]])}
        reached = matched | (reached if unit else set())
    return len(kept) in reached


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.type.get_shape())


def _one_shape(op: Operation) -> Found:
    """Scalars only or tiles of one shape only; a condition may be a scalar beside tiles."""
    values = op.operands[op.name == "arith.select" :]
    shapes = [v.type.get_shape() if isinstance(v.type, TensorType) else None for v in (*values, *op.results)]
    if len(set(shapes)) > 1:
        yield "KT102", f"{', '.join(str(v.type) for v in (*values, *op.results))} differ in shape"


def _moves(op: Operation) -> Found:
    source, moved = op.operands[0].type, (op.results or op.operands[1:])[0].type
    held = [t.element_type for t in (source, moved) if isinstance(t, TensorType)]
    if len(set(held)) > 1:
        yield "KT102", f"{source} and {moved} differ in element type, and it casts nothing"


def _indexed(op: Any) -> Found:
    whole = (op.tensor if op.name == "tensor.extract" else op.dest).type
    rank = len(whole.get_shape())
    if len(op.indices) != rank:
        yield "KT102", f"{len(op.indices)} indices for {whole}, which has rank {rank}"


def _sliced(op: Any) -> Found:
    cut = op.name == "tensor.extract_slice"
    whole, part = (op.source, op.result) if cut else (op.dest, op.source)
    extents = _shape(whole)
    numbers = [list(p.get_values()) for p in (op.static_offsets, op.static_sizes, op.static_strides)]
    counts = [len(n) for n in numbers]
    if counts != [len(extents)] * 3:
        given = f"{counts[0]} offsets, {counts[1]} sizes and {counts[2]} strides"
        yield "KT102", f"{given} for {whole.type}, which has rank {len(extents)}"
        return
    for axis, (offset, size, stride, extent) in enumerate(zip(*numbers, extents, strict=True)):
        # What is known at run time only is assumed to be harmless.
        text = outside(
            axis,
            0 if offset == DYNAMIC_INDEX else offset,
            0 if size == DYNAMIC_INDEX else size,
            1 if stride == DYNAMIC_INDEX else stride,
            1 << 64 if extent == DYNAMIC_INDEX else extent,
        )
        if text is not None:
            yield "KT215", text
    sizes = numbers[1]
    if not reduces(sizes, _shape(part), [size == 1 for size in sizes]):
        shown = ["?" if size == DYNAMIC_INDEX else size for size in sizes]
        yield "KT102", f"a slice of sizes {shown} is not {part.type}; only axes of size 1 may be left out"


def _counted(op: Operation) -> Found:
    """As many sizes as the result has dynamic extents."""
    result = op.results[0].type
    assert isinstance(result, TensorType)
    dynamic = result.get_shape().count(DYNAMIC_INDEX)
    if len(op.operands) != dynamic:
        yield "KT102", f"{len(op.operands)} sizes for {result}, which has {dynamic} dynamic extents"


def _listed(op: Operation) -> Found:
    result = op.results[0].type
    assert isinstance(result, TensorType)
    shape = result.get_shape()
    if DYNAMIC_INDEX in shape:
        yield "KT102", f"the result {result} must have a static shape"
    elif len(op.operands) != prod(shape):
        yield "KT102", f"{len(op.operands)} elements for {result}, which has {prod(shape)}"


def _concatenated(op: Any) -> Found:
    if op.dim.value.data < 0:
        yield "KT102", f"dimension {op.dim.value.data} is negative"


def _reshaped(op: Any) -> Found:
    source, result = _shape(op.source), _shape(op.result)
    if _shape(op.shape) != (len(result),):
        yield "KT102", f"a shape of {op.shape.type} for {op.result.type}, which has rank {len(result)}"
        return
    if DYNAMIC_INDEX not in (*source, *result) and prod(source) != prod(result):
        yield "KT102", f"{op.source.type} has {prod(source)} elements, {op.result.type} {prod(result)}"
        return
    owner = op.shape.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, DenseIntOrFPElementsAttr):
        return
    said = list(owner.value.get_values())
    if min(said, default=0) < 0 or not compatible(said, result):
        yield "KT102", f"the shape operand says {said}, the result is {op.result.type}"
    elif DYNAMIC_INDEX not in source and prod(said) != prod(source):
        yield "KT102", f"the shape operand says {said} for {op.source.type}"


Rule = Callable[[Any], Found]
_RULES: dict[str, tuple[Rule, ...]] = {
    "tensor.cast": (_moves,),
    "tensor.collapse_shape": (_moves,),
    "tensor.expand_shape": (_moves,),
    "tensor.extract_slice": (_moves, _sliced),
    "tensor.insert_slice": (_moves, _sliced),
    "tensor.parallel_insert_slice": (_moves, _sliced),
    "tensor.extract": (_indexed,),
    "tensor.insert": (_indexed,),
    "tensor.empty": (_counted,),
    "tensor.generate": (_counted,),
    "tensor.from_elements": (_listed,),
    "tensor.concat": (_concatenated,),
    "tensor.reshape": (_moves, _reshaped),
}
