"""Intervals of the axes outside of which a mask is false."""

from __future__ import annotations

import pytest
import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.guards import Interval, guards, value_bounds
from tracer.rewrite.ir import Compute, Const, FloorDiv, Index, Kernel, Load, Statement

X0, X1 = Axis("x0", 20, False), Axis("x1", 10, False)
x0, x1 = X0.symbol, X1.symbol


def compare(op: str, expression: sympy.Expr, limit: int, *, swapped: bool = False) -> list[Statement]:
    index = Index("tmp0", expression, "int32")
    args = ("tmp0", Const(limit, "int64"))
    return [index, Compute("tmp1", op, args[::-1] if swapped else args, "int1")]


def found(body: list[Statement], mask: str = "tmp1") -> dict[Axis, Interval]:
    return guards(Kernel("kernel", (), (), tuple(body)), (X0, X1), mask)


@pytest.mark.parametrize(
    ("op", "expression", "limit", "interval"),
    [
        ("lt", x0, 7, Interval(0, 7)),
        ("le", x0, 7, Interval(0, 8)),
        ("ge", x0, 7, Interval(7, 20)),
        ("gt", x0, 7, Interval(8, 20)),
        ("eq", x0, 7, Interval(7, 8)),
        ("ge", x0 - 1, 0, Interval(1, 20)),
        ("lt", 2 * x0, 7, Interval(0, 4)),
        ("ge", 2 * x0 + 1, 4, Interval(2, 20)),
    ],
)
def test_one_comparison(op: str, expression: sympy.Expr, limit: int, interval: Interval):
    assert found(compare(op, expression, limit)) == {X0: interval}


def test_the_literal_may_stand_first():
    assert found(compare("gt", x0, 7, swapped=True)) == {X0: Interval(0, 7)}


def test_both_sides_of_an_and():
    body = [
        *compare("ge", x0, 2),
        Compute("tmp2", "lt", ("tmp0", Const(9, "int64")), "int1"),
        Compute("tmp3", "and", ("tmp1", "tmp2"), "int1"),
    ]
    assert found(body, "tmp3") == {X0: Interval(2, 9)}


def test_an_or_restricts_nothing():
    body = [
        *compare("ge", x0, 2),
        Compute("tmp2", "lt", ("tmp0", Const(9, "int64")), "int1"),
        Compute("tmp3", "or", ("tmp1", "tmp2"), "int1"),
    ]
    assert found(body, "tmp3") == {}


@pytest.mark.parametrize("expression", [x0 + x1, -x0, x0 * x1])
def test_what_is_no_rising_function_of_one_axis_restricts_nothing(expression: sympy.Expr):
    assert found(compare("lt", expression, 7)) == {}


def test_a_mask_from_memory_restricts_nothing():
    assert found([Load("tmp1", "in_ptr0", x0, "int1")]) == {}


def test_a_comparison_that_always_holds_restricts_nothing():
    assert found(compare("lt", x0, 20)) == {}


START = Index("start", FloorDiv(5 * x0, 2), "int32")
END = Index("end", FloorDiv(5 * x0 + 7, 2), "int32")  # at most 51


@pytest.mark.parametrize(
    ("op", "offset", "bounds"),
    [("lt", 3, (0, 47)), ("le", 3, (0, 47)), ("lt", 9, (0, 41)), ("gt", -9, (13, 47)), ("ge", -9, (12, 47))],
)
def test_values_that_the_mask_compares(op: str, offset: int, bounds: tuple[int, int]):
    left = Index("left", START.index + offset, "int32")
    body = (START, END, left, Compute("tmp1", op, ("left", "end"), "int1"))
    assert value_bounds(Kernel("kernel", (), (), body), (X0, X1), "tmp1")["start"] == bounds


def test_a_loaded_value_needs_both_sides():
    load = Load("place", "in_ptr0", x0, "int64")
    low = Compute("tmp1", "ge", ("place", Const(0, "int64")), "int1")
    high = Compute("tmp2", "lt", ("place", Const(7, "int64")), "int1")
    both = Compute("tmp3", "and", ("tmp1", "tmp2"), "int1")
    kernel = Kernel("kernel", (), (), (load, low, high, both))
    assert value_bounds(kernel, (X0,), "tmp3") == {"place": (0, 6)}
    assert value_bounds(kernel, (X0,), "tmp2") == {}
