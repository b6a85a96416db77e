"""Arguments whose shape or strides are not those of the views that a function makes of them.

A view counts elements of memory, whatever shape the array has, so that an array of another layout is read in
another order than its own. One dimension is memory of any form, unless a view of as many elements takes some
twice; so is an array whose axes a view only merges or splits. A view that takes elements twice is a window
that slides, or a row for all, as long as it stays in the rows of the array: of a wrong stride that does, and
of one over an array of one dimension with more or fewer elements, nothing can be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from torch import Tensor
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from tracer.ktir.diagnostics import Diagnostic, at
from tracer.ktir.dialect import ktdp
from tracer.ktir.rules.overlap import overlapping
from tracer.ktir.simulator.memory import span
from tracer.ktir.slices import sources

Axes = list[tuple[int, int]]
"""Extent and stride of every axis of more than one element, in order."""


@dataclass(frozen=True)
class Seen:
    """A view with its sizes and strides; `whole` where it begins at the argument itself."""

    op: ktdp.ConstructMemoryViewOp
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    whole: bool

    @property
    def axes(self) -> Axes:
        """Its axes of more than one element."""
        return _axes(self.sizes, self.strides)


def layout_findings(
    function: func.FuncOp, tensors: Mapping[int, tuple[str, Tensor]], numbers: Mapping[int, object]
) -> list[Diagnostic]:
    """Warnings KT226, one an argument, at the first view of it where none has its layout.

    `tensors` and `numbers` are by position; the former with their names.
    """
    found = []
    by_argument: dict[int, list[Seen]] = {}
    for position, seen in _views(function, set(tensors), numbers):
        by_argument.setdefault(position, []).append(seen)
    for position, views in sorted(by_argument.items()):
        name, tensor = tensors[position]
        reasons = [differs(tensor.shape, tensor.stride(), view) for view in views]
        if None not in reasons:
            text = _text(name, tensor, views[0], str(reasons[0]))
            found.append(at(views[0].op, "KT226", text, "warning"))
        elif (missing := _beyond(tensor, views)) is not None:
            text = f"argument {name} is {_by(tensor.shape)}, {tensor.numel()} elements; {missing}"
            found.append(at(views[0].op, "KT226", text, "warning"))
        elif (twice := _folded(tensor, views)) is not None:
            text = f"argument {name} is {_by(tensor.shape)}, and this view is {_by(twice.sizes)}, as many"
            text += f" elements; but strides {list(twice.strides)} take some twice and leave others out"
            found.append(at(twice.op, "KT226", text, "warning"))
    return found


def differs(shape: Sequence[int], stride: Sequence[int], view: Seen) -> str | None:
    """Why a view does not take the elements of an array as its axes say; None where it does.

    `shape` and `stride` are those of the array, in elements.
    """
    array, own = _axes(shape, stride), view.axes
    if array == own or 0 in shape or (len(array) <= 1 and all(s == 1 for _, s in array)):
        return None
    merged = _merged(array)
    contiguous = len(merged) == 1 and merged[0][1] == 1 and array == sorted(array, key=lambda axis: -axis[1])
    extents, wanted = [n for n, _ in array], [n for n, _ in own]
    if sorted(array) == sorted(own):
        # The same memory with its axes named in another order: equal extents alone leave open which is which.
        return None if contiguous or extents != wanted else "it takes the axes in another order"
    if extents == wanted:
        return "the strides differ"
    if sorted(extents) == sorted(wanted):
        return "the axes are in another order"
    if not contiguous:
        return None if _within(_merged(own), merged) else "it takes what lies between the array's elements"
    if prod(view.sizes) == prod(shape):
        return None
    if not _along(own, array) or (overlapping(view.sizes, view.strides) and not _in_rows(own, array)):
        return "it goes on from one row to the middle of another"
    return None


def _text(name: str, tensor: Tensor, view: Seen, reason: str) -> str:
    order = "" if tensor.is_contiguous() else f"; pass {name}.contiguous(), or memory as a 1-D array"
    return (
        f"argument {name} is {_by(tensor.shape)} with strides {list(tensor.stride())}, and no view of it is;"
        f" this one is {_by(view.sizes)} with strides {list(view.strides)}: {reason}{order}"
    )


def _by(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _beyond(tensor: Tensor, views: Sequence[Seen]) -> str | None:
    """What is left of an array beside its views, where every view is of the argument itself and dense."""
    most = max(prod(view.sizes) for view in views)
    dense = all(
        view.whole and span(0, view.sizes, view.strides) == (0, prod(view.sizes) - 1) for view in views
    )
    if len(_axes(tensor.shape, tensor.stride())) <= 1 or not dense or most >= tensor.numel():
        return None
    largest = next(view for view in views if prod(view.sizes) == most)
    return f"its largest view is {_by(largest.sizes)}, {most} elements"


def _folded(tensor: Tensor, views: Sequence[Seen]) -> Seen | None:
    """A view of as many elements as the array, that meets itself; sliding windows have more."""
    for view in views:
        if view.whole and prod(view.sizes) == tensor.numel() and overlapping(view.sizes, view.strides):
            return view
    return None


def _axes(shape: Sequence[int], stride: Sequence[int]) -> Axes:
    return [(int(n), int(s)) for n, s in zip(shape, stride, strict=True) if n != 1]


def _merged(axes: Axes) -> Axes:
    """Axes by falling stride, neighbours without a gap as one."""
    out: Axes = []
    for n, s in sorted(axes, key=lambda axis: -axis[1]):
        if out and out[-1][1] == s * n:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out


def _within(view: Axes, array: Axes) -> bool:
    """Whether the axes of a view stay on the elements of an array, each along one of its axes."""
    left = {stride: extent - 1 for extent, stride in array}
    for extent, stride in view:
        steps = [s for s in left if s and stride % s == 0]
        if not stride:
            continue
        if not steps:
            return False
        left[max(steps)] -= (extent - 1) * (stride // max(steps))
    return min(left.values(), default=0) >= 0


def _along(view: Axes, array: Axes) -> bool:
    """Whether every axis of a view steps along one axis of a contiguous array, or from one to the next."""
    for extent, stride in view:
        steps = [(s, n) for n, s in array if stride % s == 0]
        if not stride or not steps:
            continue
        step, length = max(steps)
        if step != stride and (extent - 1) * (stride // step) >= length:
            return False
    return True


def _in_rows(view: Axes, array: Axes) -> bool:
    """Whether the axes of a view that slides over a contiguous array stay in its rows, all together."""
    reach: dict[int, int] = {}
    for extent, stride in view:
        steps = [s for _, s in array if stride % s == 0]
        if stride and steps:
            reach[max(steps)] = reach.get(max(steps), 0) + (extent - 1) * (stride // max(steps))
    return all(reach.get(stride, 0) < extent for extent, stride in array)


def _views(
    function: func.FuncOp, tensors: set[int], numbers: Mapping[int, object]
) -> Iterator[tuple[int, Seen]]:
    for op in function.walk():
        if not isinstance(op, ktdp.ConstructMemoryViewOp) or op.memory_space.is_local:
            continue
        behind = _arguments(op.pointer, function) & tensors
        sizes = _known(op.static_sizes.get_values(), op.sizes, numbers)
        strides = _known(op.static_strides.get_values(), op.strides, numbers)
        if len(behind) == 1 and sizes is not None and strides is not None:
            yield min(behind), Seen(op, sizes, strides, isinstance(op.pointer, BlockArgument))


def _arguments(pointer: SSAValue, function: func.FuncOp) -> set[int]:
    todo, passed = [pointer], set[SSAValue]()
    while todo:
        value = todo.pop()
        if value not in passed:
            passed.add(value)
            todo += sources(value)
    return {value.index for value in function.body.block.args if value in passed}


def _known(
    static: Sequence[int], dynamic: Sequence[SSAValue], numbers: Mapping[int, object]
) -> tuple[int, ...] | None:
    """Sizes or strides, where those that are values are constants or arguments."""
    values = iter(dynamic)
    found = []
    for number in static:
        held: object = int(number)
        if number == DYNAMIC_INDEX and dynamic:
            value = next(values, None)
            if value is not None:
                held = _number(value, numbers)
        if not isinstance(held, int) or held < 0:
            return None
        found.append(held)
    return tuple(found)


def _number(value: SSAValue, numbers: Mapping[int, object]) -> object:
    owner = value.owner
    if isinstance(owner, Block):
        assert isinstance(value, BlockArgument)
        return numbers.get(value.index) if isinstance(owner.parent_op(), func.FuncOp) else None
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    cast = owner.name == "arith.index_cast"
    if cast or (isinstance(owner, ktdp.RuntimeArgExtractOp) and owner.field.data == "value"):
        return _number(owner.operands[0], numbers)
    return None
