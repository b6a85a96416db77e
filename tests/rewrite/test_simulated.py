"""Captured, rewritten, lowered and simulated: the smallest input of every fault that a sweep over PyTorch's
operators found. Triton's interpreter, which runs on NumPy, cannot tell some of these from a right kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.ktir.simulator import Module
from tracer.lower import lower
from tracer.rewrite import rewrite

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def simulated(captured: Callable) -> Callable[..., list[torch.Tensor]]:
    """`simulated(function, *tensors)`: the outputs of the one call in `function`, by its KTIR."""

    def run(function: Callable[..., object], *tensors: torch.Tensor) -> list[torch.Tensor]:
        op = captured(function, *tensors)
        given = iter(tensors)
        buffers: dict[str, torch.Tensor] = {}
        for buffer in op.buffers:
            if buffer.role == "input":
                buffers[buffer.name] = next(given)
            elif buffer.base is None:
                dtype = getattr(torch, buffer.spec.dtype.removeprefix("torch."))
                buffers[buffer.name] = torch.empty_strided(
                    buffer.spec.shape, buffer.spec.stride, dtype=dtype
                ).zero_()
        for kernel in rewrite(op):
            function_ = Module.parse(lower(kernel).text).function(kernel.name)
            names = [p.value for p in kernel.parameters if isinstance(p.value, str)]
            memory = [
                buffers[n].view(torch.int8) if buffers[n].dtype == torch.bool else buffers[n] for n in names
            ]
            function_.run(memory, inplace=True)
        for buffer in op.buffers:
            if buffer.base is not None:
                spec = buffer.spec
                buffers[buffer.name] = buffers[buffer.base].as_strided(spec.shape, spec.stride, spec.offset)
        return [buffers[name] for name in op.outputs]

    return run


@pytest.mark.parametrize("function", [torch.argmax, torch.argmin])
def test_the_first_nan_is_the_extreme(simulated: Callable, function: Callable):
    rows = torch.tensor([[1.0, INF, NAN, 2.0, NAN], [3.0, -INF, 5.0, 5.0, -INF]])
    [found] = simulated(lambda x: function(x, -1), rows)
    assert found.tolist() == [2, 2 if function is torch.argmax else 1]


def test_an_integer_extreme_is_found_by_the_order_of_places(simulated: Callable):
    assert simulated(lambda x: x.argmax(-1), torch.tensor([[1, 7, 7, 2]]))[0].tolist() == [1]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_a_shift_by_more_than_the_width_shifts_everything_out(simulated: Callable, dtype: torch.dtype):
    signed = dtype != torch.uint8
    values = torch.tensor([5, 5, 5, 5, -3 if signed else 253, -3 if signed else 253, 1], dtype=dtype)
    counts = torch.tensor([0, 1, 100, 64, 127, 2, -1 if signed else 255], dtype=dtype)
    wide = 8 * dtype.itemsize
    inside = [0 <= n < wide for n in counts.tolist()]
    left = [v << n if ok else 0 for v, n, ok in zip(values.tolist(), counts.tolist(), inside, strict=True)]
    right = [
        v >> (n if ok else 127) for v, n, ok in zip(values.tolist(), counts.tolist(), inside, strict=True)
    ]
    assert torch.equal(simulated(torch.bitwise_left_shift, values, counts)[0], torch.tensor(left).to(dtype))
    assert torch.equal(simulated(torch.bitwise_right_shift, values, counts)[0], torch.tensor(right).to(dtype))


def test_integers_beside_padding_stay_exact(simulated: Callable):
    # 2**53 + 1 is no float.
    data = torch.tensor([[[2**53 + 1, 2**53 + 3, 5]]])
    [found] = simulated(lambda x: F.avg_pool1d(x, 2, 2, 1), data)
    assert found.tolist() == [[[(2**53 + 1) // 2, (2**53 + 8) // 2]]]


def test_a_mask_that_always_holds_is_none(simulated: Callable):
    data = torch.arange(36.0).reshape(1, 2, 3, 6)
    [found] = simulated(lambda x: F.max_pool2d(x, 3, dilation=(1, 2)), data)
    assert found.tolist() == [[[[16.0]], [[34.0]]]]


def test_the_floor_of_a_quotient_is_not_that_of_its_rounded_value(simulated: Callable):
    ones, tenths = torch.tensor([1.0, -1.0, 6.0, INF, 1.0]), torch.tensor([0.1, 0.1, 0.1, 2.0, 0.0])
    [found] = simulated(torch.floor_divide, ones, tenths)
    assert found[:3].tolist() == [9.0, -10.0, 59.0]
    assert found[3].isnan()
    assert found[4] == INF


def test_circular_padding(simulated: Callable):
    [found] = simulated(lambda x: F.pad(x, (2, 1), mode="circular"), torch.arange(1.0, 5.0).reshape(1, 1, 4))
    assert found.tolist() == [[[3.0, 4.0, 1.0, 2.0, 3.0, 4.0, 1.0]]]


def test_factors_of_integers_are_integers(simulated: Callable):
    ones = torch.ones(1, 2, 2, dtype=torch.int64)
    [found] = simulated(lambda b, x: torch.baddbmm(b, x, x, beta=2.7, alpha=1.9), ones, ones)
    assert found.tolist() == [[[4, 4], [4, 4]]]


def test_bytes_are_repeated_as_bytes(simulated: Callable):
    data = torch.tensor([[[0, 200, 255]]], dtype=torch.uint8)
    [found] = simulated(lambda x: F.interpolate(x, size=5), data)
    assert found.tolist() == F.interpolate(data, size=5).tolist() == [[[0, 0, 200, 200, 255]]]


@pytest.mark.parametrize("expanded", [False, True])
def test_a_mask_takes_the_next_elements(simulated: Callable, expanded: bool):
    data = torch.arange(6.0).reshape(3, 2)
    mask = torch.tensor([[True], [False], [True]]).expand(3, 2)
    mask = mask if expanded else mask.contiguous()
    source = torch.tensor([10.0, 11.0, 12.0, 13.0])
    [found] = simulated(torch.masked_scatter, data, mask, source)
    assert found.tolist() == [[10.0, 11.0], [2.0, 3.0], [12.0, 13.0]]
    [found] = simulated(torch.masked_scatter, data, ~mask, source[:2])
    assert found.tolist() == [[0.0, 1.0], [10.0, 11.0], [4.0, 5.0]]


@pytest.mark.parametrize(
    ("function", "point", "value"),
    [
        (torch.lgamma, 0.25, 1.2880225246980774),
        (torch.lgamma, -1.5, 0.8600470153764809),
        (torch.digamma, 2.5, 0.7031566406452432),
        (torch.erfc, 4.0, 1.541725790028002e-08),
        (torch.erfinv, 1 - 2**-10, 2.331467773621948),
        (torch.i0, 10.0, 2815.716628466254),
        (torch.special.i1e, -3.0, -0.1968267133),
    ],
)
def test_special_functions(simulated: Callable, function: Callable, point: float, value: float):
    [found] = simulated(function, torch.tensor([point]))
    assert found.item() == pytest.approx(value, rel=5e-7)
