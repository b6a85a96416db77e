"""Reductions over padded tiles: a mask where the padding is not the identity, none where it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.access import accesses_of
from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Compute, Const, Kernel, Load
from tracer.rewrite.padding import zero_padded

X = torch.empty(4, 100, dtype=torch.float16)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(-1),
        lambda x: x.mean(-1),
        lambda x: torch.linalg.norm(x, dim=-1),  # 0 * 0 is 0
        lambda x: torch.linalg.vector_norm(x, 1, dim=-1),  # |0| is 0
    ],
)
def test_sums_of_what_is_zero_in_the_padding_need_no_mask(function: Callable, source_of: Callable):
    assert "mask" not in source_of(function, X)


@pytest.mark.parametrize(
    ("function", "identity"),
    [
        (lambda x: x.amax(-1), 'float("-inf")'),
        (lambda x: x.amin(-1), 'float("inf")'),
        (lambda x: x.prod(-1), "1.0"),
        (lambda x: x.argmax(-1), 'float("-inf")'),
        (lambda x: x.argmin(-1), 'float("inf")'),
        (lambda x: x.var(-1), "0.0"),  # x - mean is not 0 where x is
        (lambda x: F.softmax(x, -1), "0.0"),  # nor is exp(0)
    ],
)
def test_other_reductions_mask_with_their_identity(function: Callable, identity: str, source_of: Callable):
    source = source_of(function, X)
    assert "r0_mask = " in source
    assert identity in source


@pytest.mark.parametrize(
    ("dtype", "function", "identity"),
    [
        (torch.int32, lambda x: x.amax(-1), "-2147483648"),
        (torch.int8, lambda x: x.amin(-1), "127"),
        (torch.uint8, lambda x: x.amax(-1), "0"),
        (torch.uint8, lambda x: x.amin(-1), "255"),
    ],
)
def test_identities_of_integers(dtype: torch.dtype, function: Callable, identity: str, source_of: Callable):
    assert f", {identity})" in source_of(function, torch.empty(4, 100, dtype=dtype))


def test_a_contraction_needs_a_mask_only_where_an_operand_is_computed(source_of: Callable):
    weight = torch.empty(50, 100, dtype=torch.float16)
    assert "mask" not in source_of(F.linear, X, weight)


def test_a_masked_load_with_another_fill_is_not_zero_in_the_padding(refined: Callable):
    r0 = Axis("r0", 8, True)
    flag = Load("tmp0", "in_ptr1", sympy.Integer(0), "int1")
    memory, numel = {"in_ptr0": "float16", "in_ptr1": "int1"}, {"in_ptr0": 8, "in_ptr1": 1}
    for fill, zero in ((0.0, frozenset({r0})), (1.0, frozenset())):
        load = Load("tmp1", "in_ptr0", r0.symbol, "float16", "tmp0", Const(fill, "float16"))
        kernel = Kernel("kernel", (), (), (flag, load))
        assert zero_padded(kernel, accesses_of(kernel, (r0,), memory, numel))["tmp1"] == zero


def test_a_factor_that_may_be_infinite_keeps_no_zero():
    r0 = Axis("r0", 8, True)
    row = Load("tmp0", "in_ptr0", r0.symbol, "float32")
    factor = Load("tmp1", "in_ptr1", sympy.Integer(0), "float32")
    memory, numel = {"in_ptr0": "float32", "in_ptr1": "float32"}, {"in_ptr0": 8, "in_ptr1": 1}
    for other, zero in (
        ("tmp1", frozenset()),
        (Const(0.5, "float32"), frozenset({r0})),
        ("tmp0", frozenset({r0})),
    ):
        product = Compute("tmp2", "mul", ("tmp0", other), "float32")
        kernel = Kernel("kernel", (), (), (row, factor, product))
        assert zero_padded(kernel, accesses_of(kernel, (r0,), memory, numel))["tmp2"] == zero
