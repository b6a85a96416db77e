from __future__ import annotations

import pytest

from tracer.rewrite.fold import cast_constant, fold
from tracer.rewrite.ir import Const

ONE, TWO, HALF = Const(1, "int32"), Const(2, "int64"), Const(0.5, "float32")
TRUE, FALSE = Const(True, "int1"), Const(False, "int1")


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("add", (ONE, TWO), Const(3, "int64")),
        ("neg", (ONE,), Const(-1, "int32")),
        ("lt", (ONE, TWO), TRUE),
        ("and", (TRUE, FALSE), FALSE),
        ("minimum", (ONE, TWO), Const(1, "int64")),
        ("add", (Const(1.0, "float32"), Const(2.0, "float32")), Const(3.0, "float32")),
        ("signbit", (Const(-0.0, "float32"),), TRUE),
        ("where", (TRUE, "tmp0", "tmp1"), "tmp0"),
        ("where", (FALSE, "tmp0", HALF), HALF),
    ],
)
def test_folded(op: str, args: tuple[object, ...], expected: object):
    assert fold(op, args) == expected


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("add", (HALF, HALF)),  # float rounding is the dtype's, not Python's
        ("add", (ONE, "tmp0")),
        ("add", (Const(2.0**24, "float32"), Const(1.0, "float32"))),
        ("add", (Const(1.0, "float16"), Const(2.0, "float16"))),
        ("mul", (Const(2.0, "float32"), TWO)),
        ("minimum", (Const(float("nan"), "float32"), Const(1.0, "float32"))),
        ("floordiv", (Const(-7, "int32"), TWO)),  # Triton truncates, Python floors
        ("where", ("tmp0", ONE, TWO)),
    ],
)
def test_left_to_the_kernel(op: str, args: tuple[object, ...]):
    assert fold(op, args) is None


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [(2.7, "int32", 2), (-2.7, "int64", -2), (3, "float16", 3.0), (0.5, "int1", True), (0, "int1", False)],
)
def test_casts(value: float, dtype: str, expected: float):
    found = cast_constant(Const(value, "float32"), dtype)
    assert found == Const(expected, dtype)
    assert type(found.value) is type(expected)
