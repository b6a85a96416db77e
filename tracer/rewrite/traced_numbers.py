"""Numbers in a kernel's text that may stand for an extent of the op.

Inductor writes the extents of its tensors as numbers. The rewrite names those that an access proves to be
extents; what is left over (the end of a pooling window, the far edge of a reflection) cannot be told from a
constant of the computation, so that every number counts that the call itself does not give.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Sequence

from tracer.models.op_call import OpCall, leaves
from tracer.rewrite.kernel import SpyreKernel

Number = int | float

_OF_VALUES = ("tl.minimum", "tl.maximum", "tl.where", "tl.full", "tl.range", "tl.static_range")
"""Functions whose arguments, beside lists and keywords, are numbers to compute with."""

_WIDEST = 2**31 - 1
"""No extent is as large; such numbers are the limits of a dtype."""


def traced_numbers(kernels: Sequence[SpyreKernel], call: OpCall) -> tuple[Number, ...]:
    """Numbers of the kernels' text that may follow an extent of `call`, in order of appearance.

    A text without any holds at all extents. An integer is one unless it is 0, a 1 with no extent of 2, or
    among the numbers of the call; a float if it is an extent, a product of extents, one less, half or the
    inverse of that. In computations of places (which read no element) a number of the call is one as well if
    it equals an extent less a number of the call: a roll of 8 by 3 elements says 5, one of 6 says 3.
    """
    extents = {n for spec in call.tensors for n in spec.shape if n > 1}
    given = {abs(v) for v in leaves([*call.args, dict(call.kwargs)]) if isinstance(v, int | float)}
    distances = {n - v for n in extents for v in given}
    products = {
        float(math.prod(dims))
        for spec in call.tensors
        for length in range(1, len(spec.shape) + 1)
        for dims in itertools.combinations(spec.shape, length)
    }
    follows = {f for p in products if p > 2 for f in (p, p - 1, p / 2, (p - 1) / 2, 1 / p)}
    found: dict[Number, None] = {}
    for value, is_place in itertools.chain.from_iterable(_numbers(kernel.source) for kernel in kernels):
        size = abs(value)
        if isinstance(value, float):
            suspect = size in follows and size not in given and size != 1
        elif size <= 1:
            suspect = size == 1 and 2 in extents and 1 not in given
        else:
            suspect = size < _WIDEST and (size not in given or (is_place and size in distances))
        if suspect:
            found[size] = None
    return tuple(found)


def _numbers(source: str) -> Iterator[tuple[Number, bool]]:
    """Numbers that are computed with, and whether they are in a computation of places.

    Blocks, shapes of tiles and axes are no such numbers; shapes, strides and starts of descriptors are.
    """
    read: set[str] = set()
    for statement in ast.walk(ast.parse(source)):
        if not isinstance(statement, ast.Assign | ast.Expr | ast.For | ast.Return):
            continue
        whole = statement.iter if isinstance(statement, ast.For) else statement.value
        nodes = list(ast.walk(whole)) if whole else []
        is_place = not any(
            _is_load(node) or (isinstance(node, ast.Name) and node.id in read) for node in nodes
        )
        if isinstance(statement, ast.Assign) and not is_place:
            read |= {
                node.id
                for target in statement.targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name)
            }
        for node in nodes:
            yield from ((number, is_place) for number in map(_number, _operands(node)) if number is not None)
            yield from ((number, True) for number in map(_number, _coordinates(node)) if number is not None)


def _operands(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return left, right
        case ast.UnaryOp(operand=operand):
            return (operand,)
        case ast.Compare(left=left, comparators=comparators):
            return left, *comparators
        case ast.Call(func=func, args=args) if ast.unparse(func) in _OF_VALUES:
            return args
    return ()


def _coordinates(node: ast.AST) -> Sequence[ast.expr]:
    """What an access or a descriptor lists by dimension; without a descriptor's ones, which are the last
    stride and dimensions of one element."""
    match node:
        case ast.Call(func=ast.Attribute(attr="load" | "store"), args=[ast.List(elts=parts), *_]):
            return parts
        case ast.Call(func=ast.Attribute(attr="make_tensor_descriptor"), keywords=keywords):
            lists = [
                k.value for k in keywords if k.arg in ("shape", "strides") and isinstance(k.value, ast.List)
            ]
            return [part for parts in lists for part in parts.elts if _number(part) != 1]
    return ()


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load"


def _number(node: ast.expr) -> Number | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
