"""Bounds of values and index expressions; Hypothesis checks them against every point."""

from __future__ import annotations

import itertools

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.rewrite.axes import Axis
from tracer.rewrite.intervals import Intervals
from tracer.rewrite.ir import Compute, Const, FloorDiv, Index, Load, Modulo

AXES = (Axis("x0", 5, False), Axis("x1", 3, False))
x0, x1 = (axis.symbol for axis in AXES)


def bounds(*statements: object, of: str = "tmp0") -> tuple[int, int] | None:
    return Intervals(AXES, {s.name: s for s in statements}).operand(of)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (x0, (0, 4)),
        (3 - x0, (-1, 3)),
        (2 * x0 + 7 * x1 - 1, (-1, 21)),
        (FloorDiv(x0 + 5 * x1, sympy.Integer(4)), (0, 3)),
        (Modulo(x0 + 5 * x1, sympy.Integer(4)), (0, 3)),
        (Modulo(x0, sympy.Integer(9)), (0, 4)),
        (x0 * x1, (0, 8)),
        (FloorDiv(x0 - 1, sympy.Integer(2)), None),  # Triton truncates where SymPy floors
    ],
)
def test_expressions(expression: sympy.Expr, expected: tuple[int, int] | None):
    assert bounds(Index("tmp0", expression, "int32")) == expected


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("abs", ("tmp1",), (0, 3)),
        ("neg", ("tmp1",), (-3, 1)),
        ("minimum", ("tmp1", Const(2, "int32")), (-1, 2)),
        ("maximum", ("tmp1", Const(0, "int32")), (0, 3)),
        ("where", ("tmp2", "tmp1", Const(9, "int32")), (-1, 9)),
        ("sub", (Const(4, "int32"), "tmp1"), (1, 5)),
        ("mul", ("tmp1", Const(-2, "int32")), (-6, 2)),
        ("cast", ("tmp1",), (-1, 3)),
        ("xor", ("tmp1", "tmp1"), None),
        ("add", ("tmp1", "tmp2"), None),  # tmp2 comes from memory
    ],
)
def test_operations(op: str, args: tuple[object, ...], expected: tuple[int, int] | None):
    index = Index("tmp1", 3 - x0, "int32")
    load = Load("tmp2", "in_ptr0", x0, "int64")
    assert bounds(index, load, Compute("tmp0", op, args, "int32")) == expected


def test_dtypes_and_assertions_bound_what_comes_from_memory():
    load = Load("tmp0", "in_ptr0", x0, "uint8")
    assert bounds(load) == (0, 255)
    assert bounds(Load("tmp0", "in_ptr0", x0, "int1")) == (0, 1)
    assert bounds(Load("tmp0", "in_ptr0", x0, "int16")) is None
    assert bounds(Load("tmp0", "in_ptr0", x0, "float32")) is None
    assert Intervals(AXES, {"tmp0": load}, {"tmp0": 50}).operand("tmp0") == (0, 49)


TERMS = st.recursive(
    st.sampled_from([x0, x1]) | st.integers(-6, 6).map(sympy.Integer),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
        st.tuples(inner, inner).map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.integers(1, 5)).map(lambda p: FloorDiv(p[0], sympy.Integer(p[1]))),
        st.tuples(inner, st.integers(1, 5)).map(lambda p: Modulo(p[0], sympy.Integer(p[1]))),
    ),
    max_leaves=6,
)


def value(expression: sympy.Expr, point: dict[sympy.Symbol, int]) -> int:
    if isinstance(expression, FloorDiv | Modulo):
        left, right = (value(arg, point) for arg in expression.args)
        return left // right if isinstance(expression, FloorDiv) else left % right
    if expression.is_Add or expression.is_Mul:
        parts = [value(arg, point) for arg in expression.args]
        return sum(parts) if expression.is_Add else int(sympy.prod(parts))
    if expression.is_Pow:
        return int(value(expression.base, point) ** int(expression.exp))
    return point[expression] if expression.is_Symbol else int(expression)


@settings(max_examples=150, deadline=None)
@given(TERMS)
def test_no_point_lies_outside(expression: sympy.Expr):
    found = Intervals(AXES, {}).expression(expression)
    for i, j in itertools.product(range(5), range(3)):
        point = value(expression, {x0: i, x1: j})
        assert found is None or found[0] <= point <= found[1]
