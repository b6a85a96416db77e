"""What a call returned serves the next call like it, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from tracer.models.memo import Memo


@pytest.fixture
def memo() -> Iterator[Memo]:
    mode = FakeTensorMode()
    with mode, torch.no_grad():
        yield Memo(mode)


def remembered(memo: Memo, func: Callable[..., object], *args: object, **kwargs: object) -> object:
    """Run the call, keep its result, and recall it."""
    key = memo.key(func, args, kwargs)
    assert key is not None
    inputs = [a for a in args if isinstance(a, torch.Tensor)]
    memo.keep(key, func(*args, **kwargs), inputs)
    return memo.recall(key)


def test_a_result_is_a_new_tensor_of_the_same_layout(memo: Memo):
    x, w = torch.empty(2, 12, 64, dtype=torch.float16), torch.nn.Parameter(torch.empty(32, 64).half())
    first = remembered(memo, torch.nn.functional.linear, x, w)
    second = memo.recall(memo.key(torch.nn.functional.linear, (x, w), {}))
    for found in (first, second):
        assert isinstance(found, FakeTensor)
        assert (found.shape, found.stride(), found.dtype) == ((2, 12, 32), (384, 32, 1), torch.float16)
        assert found.device == x.device
    assert first.untyped_storage()._cdata != second.untyped_storage()._cdata


def test_strides_of_a_result_that_is_not_contiguous(memo: Memo):
    x = torch.empty(3, 5, 7).permute(2, 0, 1)
    found = remembered(memo, torch.neg, x)
    assert isinstance(found, FakeTensor)
    assert found.stride() == torch.neg(x).stride() == (1, 35, 7)


@pytest.mark.parametrize(
    "func",
    [
        lambda x: x,
        lambda x: x.view(-1),
        lambda x: x[1:],
        lambda x: x.expand(2, 4, 6),
        lambda x: (x + 1)[1:],
        lambda x: x.max(-1),
    ],
)
def test_views_parts_and_several_results_are_computed_anew(memo: Memo, func: Callable[..., object]):
    assert remembered(memo, func, torch.empty(4, 6)) is None


def test_an_argument_of_another_type_is_another_call(memo: Memo):
    x = torch.empty(4, 6, dtype=torch.int32)
    keys = [memo.key(torch.mul, (x, factor), {}) for factor in (1, 1.0, True)]
    assert len(set(keys)) == 3


def test_the_layout_of_an_argument_tells_calls_apart(memo: Memo):
    x = torch.empty(4, 4)
    assert memo.key(torch.neg, (x,), {}) != memo.key(torch.neg, (x.T,), {})
    assert memo.key(torch.neg, (x,), {}) != memo.key(torch.neg, (x.half(),), {})
    assert memo.key(torch.neg, (x,), {}) == memo.key(torch.neg, (torch.empty(4, 4),), {})


def test_what_says_nothing_of_the_result_has_no_key(memo: Memo):
    assert memo.key(torch.neg, (torch.empty(3, dtype=torch.complex64).conj(),), {}) is None
    assert memo.key(torch.func.vmap, (torch.neg,), {}) is None


def test_known_values_tell_calls_apart():
    """The widths of a padding may be tensors: what they hold is in the result's shape."""
    found = set()
    for known in (torch.tensor(2), torch.tensor(0), None):
        with FakeTensorMode() as mode:
            x, width = torch.empty(4), torch.empty((), dtype=torch.int64)
            memo = Memo(mode, lambda tensor, known=known, width=width: known if tensor is width else None)
            found.add(memo.key(torch.nn.functional.pad, (x, (width, width)), {}))
    assert len(found) == 3
    assert None not in found


def test_one_element_of_any_stride_has_a_value():
    mode = FakeTensorMode()
    values = [(torch.arange(12) + n).as_strided((1, 1), (12, 12)) for n in range(2)]
    with mode, torch.no_grad():
        x = torch.empty(1, 1, dtype=torch.int64)
        keys = [Memo(mode, lambda tensor, v=v: v).key(torch.neg, (x,), {}) for v in values]
    assert None not in keys
    assert keys[0] != keys[1]
