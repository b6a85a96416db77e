"""Casts, repeated loads and dead statements; and which in-place kernels are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.errors import AliasedAccess
from tracer.rewrite.ir import Compute, Load
from tracer.rewrite.simplify import check_aliases

X = torch.empty(9, 9, dtype=torch.float16)


def casts(kernel: object) -> list[str]:
    return [s.dtype for s in kernel.body if isinstance(s, Compute) and s.op == "cast"]


def test_pure_movement_casts_nothing(refined: Callable):
    _, kernel = refined(lambda x: x.t().contiguous(), X)
    assert casts(kernel) == []


def test_arithmetic_widens_once_and_narrows_once(refined: Callable):
    _, kernel = refined(lambda x: x.exp(), X)
    assert casts(kernel) == ["float32", "float16"]


def test_a_conversion_is_one_cast(refined: Callable):
    _, kernel = refined(lambda x: x.to(torch.float32), X)
    assert casts(kernel) == ["float32"]


def test_one_element_is_loaded_once(refined: Callable):
    _, kernel = refined(lambda x: torch.mul(x, x), X)
    assert sum(isinstance(s, Load) for s in kernel.body) == 1


def test_a_comparison_of_a_boolean_with_zero_is_the_boolean(source_of: Callable):
    source = source_of(torch.signbit, torch.empty(40))
    assert "bitcast=True) < 0" in source
    assert "!= 0" not in source


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x: x.add_(1), (X,)),
        (lambda x, y: x[:, :5].add_(y), (X, torch.empty(9, 5, dtype=torch.float16))),
        (lambda x, m: x.masked_fill_(m, 0), (X, torch.empty(9, 9, dtype=torch.bool))),
    ],
)
def test_in_place_at_the_same_element(function: Callable, tensors: tuple, rewritten: Callable):
    [kernel] = rewritten(function, *tensors)
    pointers = [p.value for p in kernel.parameters if p.type.startswith("*")]
    assert len(pointers) > len(set(pointers))  # read and written under two names


def test_in_place_at_another_element_is_refused(made_kernel: Callable):
    same = made_kernel({"y": 9, "x": 9}, "9*y + x", "9*y + x")
    other = made_kernel({"y": 9, "x": 9}, "y + 9*x", "9*y + x")
    one_buffer = {"in_ptr0": "input", "out_ptr0": "input"}
    check_aliases(same, one_buffer)
    check_aliases(other, {"in_ptr0": "input", "out_ptr0": "out"})
    with pytest.raises(AliasedAccess, match="read and written at different elements"):
        check_aliases(other, one_buffer)


def test_circular_padding_never_reads_what_it_writes(rewritten: Callable):
    for kernel in rewritten(lambda x: F.pad(x, (2, 3), mode="circular"), torch.empty(2, 5, 17)):
        pointers = [p.value for p in kernel.parameters if p.type.startswith("*")]
        assert len(pointers) == len(set(pointers))


def test_a_maximum_with_minus_infinity_is_the_other_value(source_of: Callable):
    source = source_of(lambda x: F.max_pool2d(x, 3, 2, 1), torch.empty(1, 8, 14, 14))
    assert "tl.maximum(" in source
    assert 'tl.maximum(float("-inf")' not in source
    assert ', float("-inf"), propagate_nan' not in source


def test_no_boolean_is_compared_with_zero(source_of: Callable):
    source = source_of(torch.logical_not, torch.empty(9, dtype=torch.bool))
    assert "= 0" not in source
    assert "~" in source
