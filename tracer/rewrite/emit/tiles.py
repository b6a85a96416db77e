"""Tiles: which axes a value's tile has, and the text that puts its dims as somebody wants them.

Every value is a tile over the axes along which it varies, in axis order; a value whose axes all have block
1 is a scalar. Operands of lower rank are widened where they are used (`tmp2[:, None]`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from tracer.rewrite.access import Access
from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Operand, Reduce, Statement, Store
from tracer.rewrite.padding import zero_padded
from tracer.rewrite.signature import Descriptor, block_text

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass(frozen=True)
class Tiles:
    """One region of a kernel with its plan: everything that the text of a statement depends on.

    `blocks` are the plan's; `looped` says that reductions run in blocks, `neighbours` that a core's tiles
    follow each other. `helpers` collects the helper functions that the text calls, `noted` the comments that
    the kernel has already.
    """

    kernel: Kernel
    axes: tuple[Axis, ...]
    accesses: tuple[Access, ...]
    varies: dict[str, frozenset[Axis]]
    blocks: dict[Axis, int]
    looped: bool
    neighbours: bool
    descriptors: dict[Access, Descriptor]
    helpers: set[str] = field(default_factory=set)
    noted: set[str] = field(default_factory=set)

    @cached_property
    def reduced(self) -> tuple[Axis, ...]:
        """Reduced axes, outermost first."""
        return tuple(a for a in self.axes if a.reduced)

    @cached_property
    def parallel(self) -> tuple[Axis, ...]:
        """Parallel axes, outermost first."""
        return tuple(a for a in self.axes if not a.reduced)

    @cached_property
    def defined(self) -> dict[str, Statement]:
        """The statement that defines each value."""
        return {s.name: s for s in self.kernel.body if s.name}

    @cached_property
    def users(self) -> dict[str, list[Statement]]:
        """The statements that read each value."""
        found: dict[str, list[Statement]] = {name: [] for name in self.defined}
        for statement in self.kernel.body:
            for operand in set(statement.operands):
                if isinstance(operand, str):
                    found[operand].append(statement)
        return found

    @cached_property
    def zero(self) -> dict[str, frozenset[Axis]]:
        """Axes beyond whose extent each value's tile holds zeros."""
        return zero_padded(self.kernel, self.accesses)

    @cached_property
    def access_of(self) -> dict[int, Access]:
        """Access of each load and store, by identity of the statement."""
        return {id(a.statement): a for a in self.accesses}

    def dtype(self, operand: Operand) -> str:
        """Triton dtype of a value or literal."""
        return operand.dtype if isinstance(operand, Const) else self.defined[operand].dtype  # type: ignore[union-attr]

    def tile(self, axes: frozenset[Axis]) -> tuple[Axis, ...]:
        """Axes of the dims of a tile over `axes`; none where it is a scalar."""
        if all(self.blocks[a] == 1 for a in axes):
            return ()
        return tuple(a for a in self.axes if a in axes)

    def tile_of(self, name: str) -> tuple[Axis, ...]:
        """Axes of the dims of a value's tile."""
        return self.memory_order.get(name) or self.tile(self.varies[name])

    @cached_property
    def memory_order(self) -> dict[str, tuple[Axis, ...]]:
        """Loads that only contractions read keep memory's dims: the contraction permutes once."""
        found: dict[str, tuple[Axis, ...]] = {}
        for access in self.accesses:
            name, axes = access.statement.name, tuple(dim.axis for dim in access.dims if dim.axis)
            plain = all(dim.axis or dim.steps for dim in access.dims) and not access.lanes(self.blocks)
            if (
                plain
                and self.tile(frozenset(axes))
                and isinstance(access.statement, Load)
                and all(_is_dot(user) for user in self.users[name])
            ):
                found[name] = axes
        return found

    def shape(self, axes: tuple[Axis | None, ...]) -> str:
        """Block shape over `axes` as a list literal; None is a dim of 1."""
        return f"[{', '.join('1' if a is None else block_text(a, self.blocks) for a in axes)}]"

    def widen(self, text: str, have: tuple[Axis, ...], want: tuple[Axis, ...]) -> str:
        """`text`, a tile over `have`, indexed so that it broadcasts over `want`."""
        if not have or have == want:
            return text
        return f"{text}[{', '.join(':' if a in have else 'None' for a in want)}]"

    def text(self, operand: Operand, want: tuple[Axis, ...]) -> str:
        """An operand widened to broadcast over `want`."""
        if isinstance(operand, Const):
            return literal(operand)
        if (axis := self.inlined_index(operand)) is not None:
            return axis.name
        return self.widen(operand, self.tile_of(operand), want)

    def arrange(self, text: str, have: tuple[Axis | None, ...], want: tuple[Axis | None, ...]) -> str:
        """`text`, a tile whose dims are `have`, with its dims put as `want`. None stands for a dim of 1.

        Axes of `have` that `want` lacks must have block 1.
        """
        kept = tuple(a for a in want if a is not None and a in have)
        if len(kept) == len(have):
            text = permute(text, [have.index(a) for a in kept])
            if len(want) != len(kept):
                text = f"{text}[{', '.join(':' if a in kept else 'None' for a in want)}]"
            return text
        wide = tuple(a for a in have if a is not None and self.blocks[a] > 1)
        order = tuple(a for a in kept if a in wide)
        if wide != order:
            if len(wide) != len(have):
                text = f"tl.reshape({text}, {self.shape(wide)})"
            text = permute(text, [wide.index(a) for a in order])
            if order == want:
                return text
        return f"tl.reshape({text}, {self.shape(want)})"

    def inlined_load(self, name: str) -> bool:
        """Whether a value is a load whose one use is a cast: both are written in one line."""
        statement, users = self.defined[name], self.users[name]
        return (
            isinstance(statement, Load)
            and not statement.mask
            and len(users) == 1
            and isinstance(users[0], Compute)
            and users[0].op == "cast"
        )

    def access_written(self, statement: Statement) -> Access | None:
        """The access in the line of a statement: its own, or that of a load which a cast has in line."""
        if isinstance(statement, Compute) and isinstance(source := statement.args[0], str):
            statement = (
                self.defined[source] if statement.op == "cast" and self.inlined_load(source) else statement
            )
        return self.access_of[id(statement)] if isinstance(statement, Load | Store) else None

    def inlined_index(self, name: str) -> Axis | None:
        """The axis of block 1 that a value is, if it is only compared: comparisons name the axis itself."""
        statement = self.defined[name]
        if not isinstance(statement, Index) or statement.dtype != "int32":
            return None
        compared = all(isinstance(user, Compute) and user.op in COMPARISONS for user in self.users[name])
        axis = next((a for a in self.axes if a.symbol == statement.index), None)
        return axis if compared and axis is not None and self.blocks[axis] == 1 else None

    def stored_cast(self, name: str) -> bool:
        """Whether a value is a cast whose one use is a store: it is written in the store."""
        statement, users = self.defined[name], self.users[name]
        return (
            isinstance(statement, Compute)
            and statement.op == "cast"
            and isinstance(statement.args[0], str)
            and not self.inlined_load(statement.args[0])
            and len(users) == 1
            and isinstance(users[0], Store)
        )

    def unsafe(self, statement: Reduce) -> tuple[Axis, ...]:
        """Reduced axes along which the padding of the reduced value is not the reduction's identity."""
        axes = tuple(a for a in self.reduced if self.blocks[a] > 1)
        if not all(isinstance(arg, str) for arg in statement.args):
            return axes
        names = [str(arg) for arg in statement.args]
        if statement.kind == "dot":
            return tuple(a for a in axes if not all(a in self.zero[name] for name in names))
        missing = set(axes) - self.varies[names[0]]
        if statement.kind in ("sum", "any"):
            return tuple(a for a in axes if a in missing or a not in self.zero[names[0]])
        return axes


def _is_dot(statement: Statement) -> bool:
    return isinstance(statement, Reduce) and statement.kind == "dot"


def permute(text: str, order: list[int]) -> str:
    """`text` with its dims in `order`."""
    if order == sorted(order):
        return text
    return f"tl.trans({text})" if order == [1, 0] else f"tl.permute({text}, {order})"


def literal(constant: Const) -> str:
    """A constant in Triton source: the runtime parameters that it stands for, else the number."""
    value = constant.value
    if constant.text:
        return constant.text
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def identity_of(start: float, dtype: str) -> Const:
    """A reduction's identity (0, 1 or an infinity) as a literal of `dtype`."""
    if "float" in dtype:
        return Const(float(start), dtype)
    if dtype == "int1":
        return Const(start > 0, dtype)
    if math.isfinite(start):
        return Const(int(start), dtype)
    bits = int("".join(c for c in dtype if c.isdigit()))
    if dtype.startswith("uint"):
        return Const(0 if start < 0 else 2**bits - 1, dtype)
    return Const(-(2 ** (bits - 1)) if start < 0 else 2 ** (bits - 1) - 1, dtype)
