"""What the names of a kernel under evaluation mean, and the statements emitted so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from tracer.rewrite.ir import (
    Const,
    Operand,
    Range,
    Statement,
)


class InRange:
    """A condition that holds on every iteration of the ranges."""


IN_RANGE = InRange()


@dataclass(frozen=True)
class Accumulator:
    """A value carried by Inductor's reduction loop: its start, then how it is updated."""

    start: Const
    kind: str | None = None
    args: tuple[Operand, ...] = ()


@dataclass
class State:
    """What is known at one point of the kernel: the scope, the ranges, the statements so far."""

    params: dict[str, str]
    source: list[str]
    scope: dict[str, object] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    bounds: dict[str, int] = field(default_factory=dict)
    helpers: dict[str, ast.FunctionDef] = field(default_factory=dict)
    line: str = ""
    fresh: int = 0


def dotted(node: ast.expr) -> str:
    """The dotted name of a function, empty for any other expression."""
    return ast.unparse(node) if isinstance(node, ast.Attribute | ast.Name) else ""
