"""What the combining region of a reduction computes.

A region of one operation is named after it. Anything longer is run on sample values, NaN included, and
compared with the combiners that KTIR has; nothing is guessed from the shape of the code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Block, Operation, SSAValue

from tracer.ktir.dialect.arith_ops import CmpfOp, CmpiOp
from tracer.lower.edit import splat_value


@dataclass(frozen=True)
class Combiner:
    """`name` is an `arith` op, or `argmax`/`argmin` (value and index; lowest index wins a tie).

    Of an arg-reduction, `nan_wins` says whether NaN beats every number, and `best` is the `arith` op that
    finds the value.
    """

    name: str
    nan_wins: bool = False
    best: str = ""


def recognise(block: Block) -> Combiner | None:
    """The combiner that a region's block is; None if it is none that is known."""
    body = [op for op in block.ops if op is not block.last_op]
    terminator = block.last_op
    assert terminator is not None
    if len(body) == 1 and len(block.args) == 2 and set(body[0].operands) == set(block.args):
        return Combiner(body[0].name)
    kinds = [argument.type for argument in block.args]
    if len(kinds) == 2:
        samples = _samples(kinds[0])
        for name, function in _BINARY.items():
            if _agrees(
                block, [(a, b) for a in samples for b in samples], lambda a, b, f=function: (f(a, b),)
            ):
                return Combiner(name)
    if len(kinds) == 4:
        pairs = list(itertools.product(_samples(kinds[0]), (0, 3, 7)))
        points = [(*p, *q) for p in pairs for q in pairs if p[1] != q[1]]
        if not isinstance(kinds[0], AnyFloat):
            for name, unsigned in itertools.product(("argmax", "argmin"), (False, True)):
                if _agrees(block, points, _arg(name, False, _bits if unsigned else int)):
                    return Combiner(name, best=f"arith.{name[3:]}{'ui' if unsigned else 'si'}")
            return None
        for name, nan_wins in itertools.product(("argmax", "argmin"), (True, False)):
            usable = points if nan_wins else [p for p in points if not any(map(_is_nan, p))]
            if _agrees(block, usable, _arg(name, nan_wins)):
                return Combiner(name, nan_wins, f"arith.{name[3:]}{'imumf' if nan_wins else 'numf'}")
    return None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _bits(number: Any) -> int:
    """The key of unsigned order: a negative number comes after all others."""
    return int(number) % (1 << 64)


def _samples(kind: object) -> list[Any]:
    if isinstance(kind, AnyFloat):
        return [-2.0, 0.5, 3.0, -math.inf, math.inf, math.nan]
    if kind == IntegerType(1):
        return [0, 1]
    return [-5, 0, 2, 9]


def _nan_first(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: math.nan if a != a or b != b else choose(a, b)


def _number_first(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: b if a != a else a if b != b else choose(a, b)


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "arith.maximumf": _nan_first(max),
    "arith.minimumf": _nan_first(min),
    "arith.maxnumf": _number_first(max),
    "arith.minnumf": _number_first(min),
    "arith.addf": lambda a, b: a + b,
    "arith.mulf": lambda a, b: a * b,
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.maxui": lambda a, b: max(a, b, key=_bits),
    "arith.minui": lambda a, b: min(a, b, key=_bits),
}


def _arg(
    name: str, nan_wins: bool, order: Callable[[Any], Any] = lambda value: value
) -> Callable[..., tuple[Any, Any]]:
    sign = 1 if name == "argmax" else -1

    def combine(a: Any, i: int, b: Any, j: int) -> tuple[Any, Any]:
        def key(value: Any, index: int) -> tuple[Any, int]:
            return (math.inf if value != value and nan_wins else sign * order(value), -index)

        first, second = key(a, i), key(b, j)
        if nan_wins and (a != a) != (b != b):
            return (a, i) if a != a else (b, j)
        return (a, i) if first >= second else (b, j)

    return combine


def _agrees(
    block: Block, points: Sequence[tuple[Any, ...]], expected: Callable[..., tuple[Any, ...]]
) -> bool:
    for point in points:
        found = _run(block, point)
        if found is None or not all(map(_same, found, expected(*point))):
            return False
    return True


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def _run(block: Block, point: Sequence[Any]) -> tuple[Any, ...] | None:
    """The region's results for one point; None if it holds an operation that is not understood."""
    values: dict[SSAValue, Any] = dict(zip(block.args, point, strict=True))
    for op in block.ops:
        if op.next_op is None:
            return tuple(values[o] for o in op.operands)
        operands = [values[o] if o in values else splat_value(o) for o in op.operands]
        found = _step(op, operands)
        if found is None:
            return None
        values[op.results[0]] = found
    return None


def _step(op: Operation, operands: list[Any]) -> Any:
    if op.name == "arith.constant":
        return splat_value(op.results[0])
    if isinstance(op, CmpfOp | CmpiOp):
        return compare(op, *operands)
    if op.name == "arith.select":
        return operands[1] if operands[0] else operands[2]
    function = _BINARY.get(op.name) or _LOGIC.get(op.name)
    return function(*operands) if function else None


def compare(op: CmpfOp | CmpiOp, a: Any, b: Any) -> int:
    """The comparison of two numbers."""
    word = op.word
    if isinstance(op, CmpiOp):
        if word[0] == "u":
            a, b = _bits(a), _bits(b)
        return int(_RELATION[word if len(word) == 2 else word[1:]](a, b))
    unordered = a != a or b != b
    if word in ("ord", "uno"):
        return int(unordered == (word == "uno"))
    if word in ("true", "false"):
        return int(word == "true")
    if unordered:
        return int(word[0] == "u")
    return int(_RELATION[word[1:]](a, b))


_RELATION: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
}
