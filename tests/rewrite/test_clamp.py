"""Masked sums of axes are clamped where the load would leave its buffer, and nowhere else."""

from __future__ import annotations

import pytest
import sympy

from tracer.rewrite.axes import Axis
from tracer.rewrite.clamp import clamp_sums
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Statement, Store

X0, R0 = Axis("x0", 7, False), Axis("r0", 5, True)
ROW = 2 * X0.symbol + R0.symbol - 2


def window(total: sympy.Expr, index: sympy.Expr, high: int, op: str = "and") -> tuple[Statement, ...]:
    """A load at `index` under the mask `0 <= total < high`."""
    return (
        Index("tmp0", total, "int32"),
        Compute("tmp1", "ge", ("tmp0", Const(0, "int64")), "int1"),
        Compute("tmp2", "lt", ("tmp0", Const(high, "int64")), "int1"),
        Compute("tmp3", op, ("tmp1", "tmp2"), "int1"),
        Load("tmp4", "in_ptr0", index, "float32", "tmp3", Const(0.0, "float32")),
        Store("out_ptr0", X0.symbol, "tmp4"),
    )


def index_after(body: tuple[Statement, ...], numel: int) -> tuple[str, dict[str, Statement]]:
    found = clamp_sums(Kernel("kernel", (), (), body), (X0, R0), {"in_ptr0": numel})
    named = {s.name: s for s in found.body if s.name}
    load = named["tmp4"]
    assert isinstance(load, Load)
    return str(load.index), named


def test_the_sum_becomes_a_clamped_value():
    index, named = index_after(window(ROW, 3 * ROW + 1, 14), 41)
    assert index == "3*tmp_clamped0 + 1"
    assert named["tmp_clamped0_raised"].operands == ("tmp_clamped0_whole", Const(0, "int32"))
    assert named["tmp_clamped0"].operands == ("tmp_clamped0_raised", Const(13, "int32"))
    whole = named["tmp_clamped0_whole"]
    assert isinstance(whole, Index)
    assert whole.index == ROW


@pytest.mark.parametrize(
    ("body", "numel"),
    [
        (window(ROW + 2, ROW + 2, 17), 17),  # never outside
        (window(ROW, ROW, 14, "or"), 14),  # the mask does not keep both sides
        (window(ROW, 2 * X0.symbol + 3 * R0.symbol - 2, 14), 14),  # another sum
        (window(ROW, -ROW, 14), 14),  # a falling index
    ],
)
def test_what_is_left_alone(body: tuple[Statement, ...], numel: int):
    index, named = index_after(body, numel)
    assert index == str(next(s.index for s in body if isinstance(s, Load)))
    assert "tmp_clamped0" not in named
