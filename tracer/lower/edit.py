"""Small helpers that passes share: inserting, retyping, replacing and walking operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import Pure

Number = int | float


class Emitter:
    """Inserts operations before one, with its location and (for results) a name."""

    def __init__(self, anchor: Operation):
        self.anchor = anchor

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert `op`; its first result."""
        self.insert(op, hint)
        return op.results[0]

    def insert(self, op: Operation, hint: str | None = None) -> None:
        """Insert an `op` that may have no result."""
        op.location = self.anchor.location
        block = self.anchor.parent_block()
        assert block is not None
        block.insert_op_before(op, self.anchor)
        if op.results and hint is None and self.anchor.results:
            hint = self.anchor.results[0].name_hint
        if op.results and hint is not None:
            op.results[0].name_hint = hint

    def integer(self, value: int, kind: Attribute | None = None) -> SSAValue:
        """An integer constant, `index` by default."""
        return self.emit(
            integer_constant(value, kind or IndexType()), f"c{value}" if value >= 0 else f"cm{-value}"
        )

    def splat(self, value: Number, kind: TensorType) -> SSAValue:
        """A tensor constant of one value."""
        return self.emit(splat_constant(value, kind), "cst")

    def replace(self, values: Sequence[SSAValue]) -> None:
        """Replace the anchor's results and erase it."""
        replace(self.anchor, values)


def integer_constant(value: int, kind: Attribute) -> arith.ConstantOp:
    """`arith.constant value : kind` for an integer or index type."""
    assert isinstance(kind, IntegerType | IndexType)
    return _constant(IntegerAttr(value, kind), kind)


def splat_constant(value: Number, kind: TensorType) -> arith.ConstantOp:
    """`arith.constant dense<value> : kind`."""
    number = float(value) if isinstance(kind.element_type, AnyFloat) else int(value)
    return dense_constant([number], kind)


def dense_constant(values: Sequence[Number], kind: TensorType) -> arith.ConstantOp:
    """`arith.constant dense<[...]> : kind`; one value stands for all."""
    return _constant(DenseIntOrFPElementsAttr.from_list(cast(Any, kind), list(values)), kind)


def _constant(value: Attribute, kind: Attribute) -> arith.ConstantOp:
    # Every third operation is a constant, and the constructor takes three times as long as this.
    return arith.ConstantOp.create(result_types=[kind], properties={"value": value})


def splat_value(value: SSAValue) -> Number | None:
    """The one value of a constant (scalar or splat tensor), else None. Booleans are 0 and 1."""
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return None
    attribute = owner.value
    if isinstance(attribute, IntegerAttr):
        number: Number = attribute.value.data
    elif isinstance(attribute, FloatAttr):
        return attribute.value.data
    elif isinstance(attribute, DenseIntOrFPElementsAttr) and len(attribute):
        values = cast(Iterable[Number], attribute.iter_values())
        number = next(iter(values))
        # NaN differs from itself, so the attribute does not see that it is a splat.
        if not attribute.is_splat() and not all(v != v for v in values):
            return None
    else:
        return None
    return abs(number) if element_type(value.type) == IntegerType(1) else number


def is_pure(op: Operation) -> bool:
    """Whether an op has no effect but its results. xDSL calls integer division impure, since it may trap."""
    return op.has_trait(Pure()) or (op.name.startswith(("arith.", "math.")) and not op.regions)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tensor value; () for a scalar."""
    return tuple(value.type.get_shape()) if isinstance(value.type, TensorType) else ()


def element_type(kind: Attribute) -> Attribute:
    """The element type of a tensor, or the scalar type itself."""
    return kind.element_type if isinstance(kind, TensorType) else kind


def with_shape(kind: Attribute, shape: Sequence[int]) -> TensorType:
    """A tensor type of the same elements."""
    return TensorType(element_type(kind), list(shape))


def retype(value: SSAValue, kind: Attribute) -> None:
    """Give a value another type, keeping its uses."""
    value._type = kind


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Replace all results of `op`, then erase it."""
    for old, new in zip(op.results, values, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()


def operations(root: Operation) -> list[Operation]:
    """`root` and all operations inside it, in order of appearance; a list, so that they may be rewritten.

    A pass walks the whole module, and this takes a third of the time of `root.walk()`.
    """
    found = [root]
    for region in root.regions:
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                if op.regions:
                    found += operations(op)
                else:
                    found.append(op)
                op = op.next_op
    return found


def erase(op: Operation) -> None:
    """Erase an op without uses."""
    op.detach()
    op.erase()


def inline_block(block: Block, before: Operation, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """Move a block's operations before an op; the values that its terminator yields."""
    terminator = block.last_op
    assert isinstance(terminator, scf.YieldOp)
    results = list(terminator.operands)
    erase(terminator)
    replaced: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    results = [replaced.get(r, r) for r in results]
    Rewriter.inline_block(block, InsertPoint.before(before), arguments)
    return results


def clone_ops(ops: Iterable[Operation], values: dict[SSAValue, SSAValue]) -> list[Operation]:
    """Clones in order, operands mapped through `values`, which gains the results."""
    return [op.clone(values) for op in ops]


def single_block(ops: Sequence[Operation] = (), arg_types: Sequence[Attribute] = ()) -> Region:
    """A region of one block."""
    return Region(Block(list(ops), arg_types=list(arg_types)))
