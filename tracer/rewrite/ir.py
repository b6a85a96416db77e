"""Structured IR of one kernel: what it computes per element, with all tiling forgotten.

Inductor's source says which element every access touches (an index expression over the iteration
ranges) and what is computed from it; blocks, masks against the range ends and broadcasts only serve its
own tiling. The IR keeps the former and drops the latter, so that the plan is free to tile anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy


class FloorDiv(sympy.Function):
    """`a // b` of non-negative integers, kept opaque until the axes are refined."""

    nargs = 2


class Modulo(sympy.Function):
    """`a % b` of non-negative integers, kept opaque until the axes are refined."""

    nargs = 2


@dataclass(frozen=True)
class Range:
    """One iteration range. `extent` is its number of iterations."""

    symbol: sympy.Symbol
    extent: int
    reduced: bool


@dataclass(frozen=True)
class Const:
    """A literal of Triton dtype `dtype` (`float32`, `int64`, `int1`).

    `text`, where it is set, is an expression over runtime parameters that equals the literal at the traced
    size (see `extents`).
    """

    value: bool | int | float
    dtype: str
    text: str = ""


Operand: TypeAlias = "Const | str"


@dataclass(frozen=True)
class Load:
    """`name = memory[index]`. Where `mask` (a value) is false the result is `other`, and nothing is read."""

    name: str
    param: str
    index: sympy.Expr
    dtype: str
    mask: str | None = None
    other: Const | None = None
    line: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Values that this statement reads, indices included."""
        return (*((self.mask,) if self.mask else ()), *value_symbols(self.index))


@dataclass(frozen=True)
class Index:
    """`name = expression over the ranges`, as a value of integer `dtype`."""

    name: str
    index: sympy.Expr
    dtype: str
    line: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Values inside the expression."""
        return value_symbols(self.index)


@dataclass(frozen=True)
class Compute:
    """`name = op(args)`, element by element; `op` is a key of `functions.OPS`."""

    name: str
    op: str
    args: tuple[Operand, ...]
    dtype: str
    line: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The arguments."""
        return self.args


@dataclass(frozen=True)
class Reduce:
    """`name = kind of args over every reduced range`; `kind` is a key of `functions.REDUCTIONS` or `dot`.

    A `dot` multiplies its two arguments before the sum.
    """

    name: str
    kind: str
    args: tuple[Operand, ...]
    dtype: str
    line: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The reduced values."""
        return self.args


@dataclass(frozen=True)
class Scan:
    """`name = inclusive prefix combination of args[0] along the reduced range`."""

    name: str
    kind: str
    args: tuple[Operand, ...]
    dtype: str
    line: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The scanned value."""
        return self.args


@dataclass(frozen=True)
class Store:
    """`memory[index] = value`."""

    param: str
    index: sympy.Expr
    value: Operand
    line: str = ""
    name: str = ""

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Values that this statement reads, indices included."""
        return (self.value, *value_symbols(self.index))


Statement: TypeAlias = "Load | Index | Compute | Reduce | Scan | Store"


@dataclass(frozen=True)
class Kernel:
    """One kernel: its ranges, its statements in a valid order, and bounds known of index values.

    `bounds[name] = n` says `0 <= name < n` (Inductor asserts it before an indirect access).
    """

    name: str
    params: tuple[str, ...]
    ranges: tuple[Range, ...]
    body: tuple[Statement, ...]
    bounds: tuple[tuple[str, int], ...] = ()

    def statement(self, name: str) -> Statement:
        """The statement that defines the value `name`."""
        return next(s for s in self.body if s.name == name)

    def with_body(self, body: Iterator[Statement] | tuple[Statement, ...]) -> Kernel:
        """The same kernel around another body."""
        return replace(self, body=tuple(body))


def value_symbols(index: sympy.Expr) -> tuple[str, ...]:
    """Names of the values (not ranges) that an index expression holds, sorted."""
    return tuple(sorted(s.name for s in index.free_symbols if s.name.startswith("tmp")))
