"""Numbers of the traced extents in a kernel's text are told from those of the computation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tests.rewrite.conftest import capture_function
from tracer.models.op_call import OpCall, TensorSpec
from tracer.rewrite import SpyreKernel, rewrite
from tracer.rewrite.kernel import Plan
from tracer.rewrite.traced_numbers import Number, traced_numbers


def half(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


def found(function: Callable[..., object], *tensors: torch.Tensor) -> tuple[Number, ...]:
    captured = capture_function(function, *tensors)
    return traced_numbers(rewrite(captured), captured.call)


@pytest.mark.parametrize(
    ("function", "tensors", "numbers"),
    [
        (lambda x: torch.roll(x, 3, 1), (half(1024, 56, 96),), {53}),
        (lambda x: torch.roll(x, 28, 1), (half(1024, 56, 96),), {28}),
        (lambda x: F.pad(x, (2, 3), mode="reflect"), (half(2, 4, 14),), {13}),
        (lambda x, y: x.select_scatter(y, 1, -1), (half(4, 14, 18), half(4, 18)), {13}),
        (lambda x: torch.mean(x, -1, keepdim=True), (half(1, 12, 8, 256).transpose(1, 2),), {256.0}),
        (lambda x: torch.max(x, 1), (half(1, 4, 784, 192),), {2, 3}),
    ],
)
def test_follows(
    function: Callable[..., object], tensors: tuple[torch.Tensor, ...], numbers: set[Number]
) -> None:
    assert numbers <= set(found(function, *tensors))


@pytest.mark.parametrize(
    ("function", "tensors"),
    [
        (lambda x: F.silu(x), (half(4, 14),)),
        (lambda x: x * 14, (half(4, 14),)),
        (lambda x: F.gelu(x), (half(2, 14),)),
        (lambda x: F.hardswish(x), (half(9, 14),)),
        (lambda x: F.softmax(x, -1), (half(4, 14),)),
        (lambda x, y: x @ y, (half(2, 14, 16), half(2, 16, 18))),
        (lambda x, w: F.conv2d(x, w, padding=1), (half(1, 3, 14, 14), half(8, 3, 3, 3))),
        (lambda x, w: F.layer_norm(x, (14,), w), (half(4, 14), half(14))),
        (lambda x: torch.cat((x[:, 7:], x[:, :7]), 1), (half(4, 14),)),
    ],
)
def test_does_not(function: Callable[..., object], tensors: tuple[torch.Tensor, ...]) -> None:
    assert found(function, *tensors) == ()


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("tmp0 = in0.load([13, x0])", (13,)),
        ("tmp0 = in0.load([x0 * 3])", ()),
        ("tmp0 = x0 + 11", (11,)),
        ("tmp0 = in0.load([x0]) + 11", (11,)),
        ("tmp0 = in0.load([x0]) + 3", ()),
        ("tmp0 = in0.load([x0]) * 14.0", (14.0,)),
        ("tmp0 = in0.load([x0]) * 0.5", ()),
        ("for r0 in tl.range(0, 14, R0_BLOCK): tmp0 = r0", (14,)),
        ("tmp0 = tl.zeros([14], tl.float32)", ()),
        ("in0 = tl.make_tensor_descriptor(p, shape=[14, 1], strides=[15, 1], block_shape=[16, 1])", (14, 15)),
        ("tmp0 = tl.minimum(x0, 2147483647)", ()),
    ],
)
def test_places(line: str, numbers: tuple[Number, ...]) -> None:
    """Of a call with the number 3 on an extent of 14."""
    call = OpCall("torch.roll", (TensorSpec((14,), (1,), 0, "torch.float16"),), (3,))
    kernel = SpyreKernel("f", f"def f(p, x0, R0_BLOCK):\n    {line}\n", (), 1, Plan(1, 1, 0, 0))
    assert traced_numbers([kernel], call) == numbers
