"""Which dimensions of which tensors must have one extent.

A class joins dimensions that operations tie together: elementwise operands position by position, a
reduction's kept dimensions, both sides of a transpose, a loop's carried values. Descriptor accesses tie a
class to the part of a view that they touch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, TensorType
from xdsl.ir import Operation, SSAValue

from tracer.lower.analysis.accesses import Access, block_shape
from tracer.lower.edit import operations, shape_of
from tracer.lower.tt_ops import (
    BroadcastOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DotOp,
    ExpandDimsOp,
    JoinOp,
    MakeRangeOp,
    ReduceOp,
    ReshapeOp,
    ScanOp,
    SplatOp,
    TransOp,
)

Dim = tuple[SSAValue, int]


@dataclass(frozen=True)
class Regroup:
    """A reshape in which `sources` dims become `results` dims, in memory order (unit dims left out)."""

    op: Operation
    sources: tuple[Dim, ...]
    results: tuple[Dim, ...]


@dataclass
class DimClasses:
    """Union-find over the dimensions of all tensor values of a function."""

    _parent: dict[Dim, Dim] = field(default_factory=dict)
    regroups: list[Regroup] = field(default_factory=list)

    def find(self, dim: Dim) -> Dim:
        """The representative of a dimension's class."""
        root = dim
        while (above := self._parent.get(root, root)) != root:
            root = above
        while (above := self._parent.get(dim, dim)) != root:
            self._parent[dim] = root
            dim = above
        return root

    def tie(self, a: Dim, b: Dim) -> None:
        """The two dimensions have one extent."""
        self._parent[self.find(a)] = self.find(b)

    def tie_all(self, a: SSAValue, b: SSAValue) -> None:
        """Two tensors of one shape, position by position."""
        for index in range(len(shape_of(a))):
            self.tie((a, index), (b, index))


def access_dims(access: Access) -> list[int | None]:
    """The tensor dimension that holds each descriptor dimension; None where a unit dim was dropped."""
    value = access.result if isinstance(access, DescriptorLoadOp) else access.source
    shape, block = shape_of(value), block_shape(access)
    dropped = len(block) - len(shape)
    found: list[int | None] = []
    position = 0
    for extent in block:
        if (
            dropped
            and extent == 1
            and (position == len(shape) or shape[position] != 1 or len(found) < dropped)
        ):
            found.append(None)
            dropped -= 1
        else:
            found.append(position)
            position += 1
    return found


def integers(attribute: object) -> list[int]:
    """The integers of an array attribute."""
    if isinstance(attribute, DenseArrayBase):
        return [int(v) for v in attribute.get_values()]
    assert isinstance(attribute, ArrayAttr)
    return [integer(v) for v in attribute]


def integer(attribute: object) -> int:
    """The value of an integer attribute."""
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def classify(root: Operation) -> DimClasses:
    """The classes of everything inside `root`."""
    classes = DimClasses()
    for op in operations(root):
        _relate(op, classes)
    return classes


def _relate(op: Operation, classes: DimClasses) -> None:
    match op:
        case scf.ForOp():
            yielded = op.body.block.last_op
            assert yielded is not None
            for init, arg, out, result in zip(
                op.iter_args, op.body.block.args[1:], yielded.operands, op.results, strict=True
            ):
                for other in (arg, out, result):
                    classes.tie_all(init, other)
        case scf.IfOp():
            for region in op.regions:
                if region.blocks and region.block.last_op is not None:
                    for out, result in zip(region.block.last_op.operands, op.results, strict=True):
                        classes.tie_all(out, result)
        case ReduceOp() | ScanOp():
            _relate_axis(op, classes)
        case ExpandDimsOp():
            axis = integer(op.attributes["axis"])
            for index in range(len(shape_of(op.source))):
                classes.tie((op.source, index), (op.result, index + (index >= axis)))
        case BroadcastOp():
            pairs = zip(shape_of(op.source), shape_of(op.result), strict=True)
            for index, (a, b) in enumerate(pairs):
                if a == b:
                    classes.tie((op.source, index), (op.result, index))
        case TransOp():
            for index, source in enumerate(integers(op.attributes["order"])):
                classes.tie((op.source, source), (op.result, index))
        case DotOp():
            _relate_dot(op, classes)
        case JoinOp():
            classes.tie_all(op.lhs, op.rhs)
            classes.tie_all(op.lhs, op.result)
        case ReshapeOp():
            _relate_reshape(op, classes)
        case DescriptorLoadOp() | DescriptorStoreOp() | SplatOp() | MakeRangeOp():
            pass
        case _ if len(op.results) == 1 and isinstance(op.results[0].type, TensorType) and not op.regions:
            for operand in op.operands:
                if isinstance(operand.type, TensorType):
                    classes.tie_all(operand, op.results[0])


def _relate_axis(op: ReduceOp | ScanOp, classes: DimClasses) -> None:
    axis = integer(op.axis)
    first = op.sources[0]
    for source, result in zip(op.sources, op.results, strict=True):
        classes.tie_all(first, source)
        if isinstance(op, ScanOp):
            classes.tie_all(source, result)
            continue
        for index in range(len(shape_of(source))):
            if index != axis:
                classes.tie((source, index), (result, index - (index > axis)))


def _relate_dot(op: DotOp, classes: DimClasses) -> None:
    rank = len(shape_of(op.a))
    classes.tie_all(op.c, op.result)
    classes.tie((op.a, rank - 2), (op.result, rank - 2))
    classes.tie((op.b, rank - 1), (op.result, rank - 1))
    classes.tie((op.a, rank - 1), (op.b, rank - 2))
    if rank == 3:
        classes.tie((op.a, 0), (op.b, 0))
        classes.tie((op.a, 0), (op.result, 0))


def _relate_reshape(op: ReshapeOp, classes: DimClasses) -> None:
    for sources, results in regroup(shape_of(op.source), shape_of(op.result)):
        if len(sources) == len(results) == 1:
            classes.tie((op.source, sources[0]), (op.result, results[0]))
        elif sources or results:
            classes.regroups.append(
                Regroup(op, tuple((op.source, i) for i in sources), tuple((op.result, i) for i in results))
            )


def regroup(source: Sequence[int], result: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Smallest runs of source dims and result dims with one product, unit dims left out.

    >>> regroup([8, 1, 64], [2, 4, 64])
    [([0], [0, 1]), ([2], [2])]
    """
    left = [i for i, extent in enumerate(source) if extent != 1]
    right = [i for i, extent in enumerate(result) if extent != 1]
    found: list[tuple[list[int], list[int]]] = []
    while left or right:
        a, b = [left.pop(0)], [right.pop(0)]
        size_a, size_b = source[a[0]], result[b[0]]
        while size_a != size_b:
            if size_a < size_b:
                a.append(left.pop(0))
                size_a *= source[a[-1]]
            else:
                b.append(right.pop(0))
                size_b *= result[b[-1]]
        found.append((a, b))
    return found
