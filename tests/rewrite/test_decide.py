"""Conditions that the extents decide disappear; those they do not decide stay."""

from __future__ import annotations

import pytest
import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.decide import decide
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Operand, Store

X0 = Axis("x0", 20, False)
x0 = X0.symbol


def decided(op: str, limit: int, dtype: str = "index") -> Operand:
    """What `where(x0 op limit, 1.0, 2.0)` is stored as; a `dtype` compares a loaded value instead."""
    left = Index("tmp0", x0, "int32") if dtype == "index" else Load("tmp0", "in_ptr0", x0, dtype)
    body = (
        left,
        Compute("tmp1", op, ("tmp0", Const(limit, "int64")), "int1"),
        Compute("tmp2", "where", ("tmp1", Const(1.0, "float32"), Const(2.0, "float32")), "float32"),
        Store("out_ptr0", x0, "tmp2"),
    )
    return decide(Kernel("kernel", (), (), body), (X0,)).body[-1].value


TRUE, FALSE = Const(1.0, "float32"), Const(2.0, "float32")


@pytest.mark.parametrize(
    ("op", "limit", "value"),
    [
        ("lt", 20, TRUE), ("lt", 19, "tmp2"), ("lt", 0, FALSE),
        ("le", 19, TRUE), ("le", 18, "tmp2"), ("le", -1, FALSE),
        ("ge", 0, TRUE), ("ge", 1, "tmp2"), ("ge", 20, FALSE),
        ("gt", -1, TRUE), ("gt", 0, "tmp2"), ("gt", 19, FALSE),
    ],
)  # fmt: skip
def test_comparisons(op: str, limit: int, value: Operand):
    assert decided(op, limit) == value


@pytest.mark.parametrize(
    ("op", "offset", "value"),
    [
        ("lt", 3, TRUE),
        ("lt", 0, FALSE),
        ("le", 0, TRUE),
        ("gt", 0, FALSE),
        ("ge", -1, TRUE),
        ("ge", 1, FALSE),
    ],
)
def test_indices_at_a_constant_distance(op: str, offset: int, value: Operand):
    assert two(op, 3 * x0, 3 * x0 + offset) == value


def test_indices_at_a_varying_distance_stay():
    assert two("lt", 3 * x0, 4 * x0 + 1) == "tmp3"


def two(op: str, left: sympy.Expr, right: sympy.Expr) -> Operand:
    """What `where(left op right, 1.0, 2.0)` is stored as."""
    body = (
        Index("tmp0", left, "int32"),
        Index("tmp1", right, "int32"),
        Compute("tmp2", op, ("tmp0", "tmp1"), "int1"),
        Compute("tmp3", "where", ("tmp2", Const(1.0, "float32"), Const(2.0, "float32")), "float32"),
        Store("out_ptr0", x0, "tmp3"),
    )
    return decide(Kernel("kernel", (), (), body), (X0,)).body[-1].value


def test_an_unsigned_value_is_not_negative():
    assert decided("lt", 0, "uint8") == FALSE
    assert decided("lt", 0, "int8") == "tmp2"


@pytest.mark.parametrize(("limit", "loads"), [(20, 1), (0, 0), (7, 1)])
def test_loads_under_decided_masks(limit: int, loads: int):
    body = (
        Index("tmp0", x0, "int32"),
        Compute("tmp1", "lt", ("tmp0", Const(limit, "int64")), "int1"),
        Load("tmp2", "in_ptr0", x0, "float32", "tmp1", Const(0.0, "float32")),
        Store("out_ptr0", x0, "tmp2"),
    )
    found = decide(Kernel("kernel", (), (), body), (X0,)).body
    kept = [s for s in found if isinstance(s, Load)]
    assert len(kept) == loads
    assert [s.mask for s in kept] == {20: [None], 0: [], 7: ["tmp1"]}[limit]
    assert found[-1].value == ("tmp2" if loads else Const(0.0, "float32"))


@pytest.mark.parametrize(
    ("op", "literal", "value"),
    [("and", True, "tmp0"), ("and", False, Const(False, "int1")), ("or", True, Const(True, "int1"))],
)
def test_logic_with_a_literal(op: str, literal: bool, value: Operand):
    body = (
        Load("tmp0", "in_ptr0", x0, "int1"),
        Compute("tmp1", op, ("tmp0", Const(literal, "int1")), "int1"),
        Store("out_ptr0", x0, "tmp1"),
    )
    assert decide(Kernel("kernel", (), (), body), (X0,)).body[-1].value == value
