"""Which extremes lose a NaN: those whose loss no stored value shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.ir import Compute, Const, Load, Reduce, Statement, Store
from tracer.rewrite.nan import lose_nan

X = torch.empty(6, 10, dtype=torch.float16)
X_LOAD = Load("x", "in_ptr0", sympy.Integer(0), "float32")
EXTREME = Reduce("m", "max", ("x",), "float32")
SHIFTED = Compute("d", "sub", ("x", "m"), "float32")
SUM = Reduce("s", "sum", ("d",), "float32")


def kinds(*body: Statement) -> list[str]:
    found = lose_nan([X_LOAD, EXTREME, *body])
    return [s.kind for s in found if isinstance(s, Reduce) and s.kind != "sum"]


def compute(name: str, op: str, *args: object, dtype: str = "float32") -> Compute:
    return Compute(name, op, args, dtype)


def store(value: str) -> Store:
    return Store("out_ptr0", sympy.Integer(0), value)


@pytest.mark.parametrize(
    ("function", "tensor"),
    [
        (lambda x: F.softmax(x, -1), X),
        (lambda x: F.log_softmax(x, -1), X),
        (lambda x: x.amax(-1), X.to(torch.int32)),  # a whole number is never NaN
    ],
)
def test_triton_has_a_word(function: Callable, tensor: torch.Tensor, source_of: Callable):
    source = source_of(function, tensor)
    assert "tl.max(" in source
    assert "maximum" not in source


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda x: x.amax(-1), "maximum"),
        (lambda x: x.max(-1), "maximum"),
        (lambda x: x.amin(-1), "minimum"),
        (lambda x: x.max(), "maximum"),
    ],
)
def test_nan_is_kept(function: Callable, word: str, source_of: Callable):
    source = source_of(function, X)
    assert f"def {word}(a, b):" in source
    assert f"return tl.{word}(a, b, propagate_nan=tl.PropagateNan.ALL)" in source


def test_a_sum_of_what_is_nan_there_is_nan_everywhere():
    assert kinds(SHIFTED, SUM, store("s")) == ["maxnum"]
    assert kinds(SHIFTED, SUM, compute("q", "div", "d", "s"), store("q")) == ["maxnum"]


def test_beside_the_nan_the_extreme_is_seen():
    assert kinds(SHIFTED, store("d")) == ["max"]


def test_another_store_of_the_extreme_is_seen():
    assert kinds(SHIFTED, SUM, store("s"), store("m")) == ["max"]


def test_a_choice_between_nan_and_what_does_not_depend_tells_nothing():
    held = compute("c", "lt", "x", Const(0.0, "float32"), dtype="int1")
    chosen = compute("w", "where", "c", "s", Const(0.0, "float32"))
    assert kinds(held, SHIFTED, SUM, chosen, store("w")) == ["maxnum"]


@pytest.mark.parametrize(
    "step",
    [
        compute("w", "lt", "d", Const(0.0, "float32"), dtype="int1"),
        compute("w", "pow", "d", Const(0.0, "float32")),  # pow(nan, 0) is 1
        compute("w", "cast", "d", dtype="int32"),
        compute("w", "isnan", "d", dtype="int1"),
    ],
)
def test_what_makes_a_number_of_nan_ends_it(step: Compute):
    assert kinds(SHIFTED, step, Reduce("s", "sum", ("w",), step.dtype), store("s")) == ["max"]
