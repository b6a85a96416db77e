"""Bounds that hold for float32 arithmetic, that are tight enough to tell a mistake, and exact where nothing
rounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.validate.error_bounds import ErrorBounds, gamma
from tracer.validate.inputs import random_tensor
from tracer.validate.oracle import observing, round_once, rounded, widened
from tracer.validate.tolerance import Expected, difference, expect


def tensor(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    stride = torch.empty(shape, device="meta").stride()
    return random_tensor(shape, stride, dtype, generator=torch.Generator().manual_seed(seed))


OPS = {
    "silu": lambda x: F.silu(x["a"]),
    "gelu": lambda x: F.gelu(x["a"]),
    "gelu tanh": lambda x: F.gelu(x["a"], approximate="tanh"),
    "softmax": lambda x: torch.softmax(x["a"] * 5, -1),
    "log_softmax": lambda x: torch.log_softmax(x["a"], -1),
    "layer_norm": lambda x: F.layer_norm(x["a"], (100,), x["v"], x["v"]),
    "group_norm": lambda x: F.group_norm(x["a"][None], 7),
    "linear": lambda x: F.linear(x["a"], x["b"]),
    "addmm": lambda x: torch.addmm(x["v"][:40], x["a"], x["b"].T),
    "bmm": lambda x: x["a"][None] @ x["b"].T[None],
    "conv1d": lambda x: F.conv1d(x["a"][None], x["c"]),
    "mean": lambda x: x["a"].mean(-1),
    "var": lambda x: x["a"].var(-1),
    "cumsum": lambda x: x["a"].cumsum(-1),
    "logsumexp": lambda x: torch.logsumexp(x["a"], -1),
    "rms": lambda x: x["v"] * (x["a"] * torch.rsqrt(x["a"].pow(2).mean(-1, keepdim=True) + 1e-5)),
    # Small queries: an exponential magnifies the rounding of large scores beyond any tight bound.
    "attention": lambda x: F.scaled_dot_product_attention(x["a"][None] / 64, x["b"][None], x["b"][None]),
    "tanh": lambda x: torch.tanh(x["a"]),
    "exp": lambda x: torch.exp(x["a"] * 8),
    "cos": lambda x: torch.cos(x["a"] * 100),
    "in place": lambda x: x["a"].clone().add_(x["v"]).mul_(x["v"]),
    "norm": lambda x: torch.linalg.norm(x["a"], dim=-1),
    "softplus": lambda x: F.softplus(x["a"]),
    "avg_pool": lambda x: F.avg_pool1d(x["a"][None], 4),
    "adaptive avg_pool3d": lambda x: F.adaptive_avg_pool3d(x["a"][None, None], (1, 7, 50)),
    "batch_norm": lambda x: F.batch_norm(x["a"][:, :, None], x["v"], x["v"].abs() + 1, x["v"], x["v"]),
    "instance_norm": lambda x: F.instance_norm(x["a"][None]),
    "rms_norm": lambda x: F.rms_norm(x["a"], (100,), x["v"]),
    "fold": lambda x: F.fold(x["a"].T[None, :96, :12], (8, 4), (4, 2), stride=(2, 1), padding=(1, 0)),
    "scatter_add": lambda x: x["b"].scatter_add(0, torch.arange(1400).reshape(14, 100) % 7, x["a"]),
    "index_add": lambda x: x["b"].index_add(0, torch.arange(14) % 3, x["a"]),
    "largest of rounded": lambda x: torch.exp(x["a"]).max(-1)[0],
    "sorted after rounding": lambda x: torch.exp(x["a"]).sort(-1)[0],
    "median of rounded": lambda x: torch.exp(x["a"]).median(-1)[0],
    "max_pool of rounded": lambda x: F.max_pool1d(torch.exp(x["a"])[None], 3),
    "bilinear": lambda x: F.interpolate(x["a"][None, None], scale_factor=2, mode="bilinear"),
}  # fmt: skip

# PyTorch's vectorised float32 erf is off by up to 1.5e-7 on some CPUs (Abramowitz and Stegun, 7.1.26): the
# bound is about functions that are good to a few units in the last place, as Triton's are.
FLOAT32 = {"gelu": lambda x: x["a"] * 0.5 * (1 + torch.erf((x["a"] * math.sqrt(0.5)).double()).float())}


@pytest.mark.parametrize("name", OPS)
def test_float32_arithmetic_stays_within_the_bound_and_the_bound_is_tight(name):
    inputs = {
        "a": tensor(14, 100),
        "b": tensor(40, 100, seed=1),
        "v": tensor(100, seed=2),
        "c": tensor(8, 14, 3, seed=3),
    }

    def run(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return rounded(OPS[name](widened(given)), {}, {"out": ((), (), torch.float32)}, ("out",))

    with torch.no_grad():
        (expected,) = expect(run, inputs, ("out",))
        got = FLOAT32.get(name, OPS[name])(inputs)
    assert difference(expected, got) == ""
    assert expected.allowed is not None
    scale = expected.value.abs().double().mean()
    assert float(expected.allowed.mean() / scale) < 1e-4
    assert difference(expected, got * 1.001)
    assert difference(expected, torch.zeros_like(got))


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x["a"].T.reshape(-1),
        lambda x: torch.cat((x["a"], -x["a"]), -1),
        lambda x: x["a"][:, ::2].clone().index_copy_(0, torch.tensor([1, 0]), x["a"][:2, :50]),
        lambda x: F.pad(x["a"], (1, 2)),
        lambda x: torch.where(x["a"] > 0, x["a"], 7.0),
        lambda x: x["a"].relu().amax(-1),
        lambda x: F.embedding(torch.tensor([3, 1]), x["a"]),
        lambda x: x["a"].median(-1)[0],
        lambda x: x["a"].kthvalue(3, 0)[0],
        lambda x: x["a"].cummax(-1)[0],
        lambda x: x["a"].max(),
        lambda x: x["a"].aminmax(dim=-1)[1],
        lambda x: F.max_pool2d(x["a"][None], 3, 1, 1),
        lambda x: F.adaptive_max_pool2d(x["a"][None], 5),
        lambda x: x["a"].scatter_reduce(1, torch.zeros(14, 3, dtype=torch.int64), x["a"][:, :3], "amax"),
    ],
)
def test_data_movement_is_exact(op):
    inputs = {"a": tensor(14, 100, dtype=torch.float16)}

    def run(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return rounded(op(widened(given)), {}, {"out": ((), (), torch.float16)}, ("out",))

    (expected,) = expect(run, inputs, ("out",))
    assert expected.allowed is None
    got = op(inputs)
    assert difference(expected, got) == ""
    wrong = got.clone()
    wrong.view(-1)[min(3, wrong.numel() - 1)] *= 1 + 2**-10
    assert "1 of" in difference(expected, wrong)


def test_a_norm_that_cancels_is_bounded_by_what_cancels():
    # In the first row, x * scale and b - mean * scale cancel: the result is off by a step of either.
    x = tensor(4, 512, dtype=torch.float32) + 3.0
    bias = -(x[0] - x[0].mean()) / x[0].std(correction=0)
    weight = torch.ones(512)

    def run(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        result = F.layer_norm(given["x"], (512,), given["w"], given["b"])
        return rounded(result, {}, {"y": ((), (), torch.float32)}, ("y",))

    inputs = {"x": x, "w": weight, "b": bias}
    (expected,) = expect(lambda given: run(widened(given)), inputs, ("y",))
    rstd = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + 1e-5)
    centred = (x - x.mean(-1, keepdim=True)) * rstd * weight + bias
    scaled = x * (rstd * weight) + (bias - x.mean(-1, keepdim=True) * (rstd * weight))
    assert float(expected.value[0].abs().max()) < 2e-5
    assert bool(((scaled - expected.value).abs()[0] > gamma(9, 2.0**-24) * expected.value[0].abs()).any())
    assert difference(expected, centred) == ""
    assert difference(expected, scaled) == ""
    assert expected.allowed is not None
    assert float(expected.allowed.max()) < 5e-4
    assert difference(expected, scaled + 1e-3)


def test_bounds_grow_with_the_length_of_the_sum_and_shrink_in_float64():
    assert gamma(1, 2.0**-24) == pytest.approx(2.0**-24, rel=1e-6)
    assert gamma(16, 2.0**-24) < gamma(4096, 2.0**-24) < 4096 * 2.0**-24
    assert gamma(10, 2.0**-53) < 1e-14


def test_an_operation_without_a_rule_is_named_and_still_bounded():
    mode = ErrorBounds()
    x = tensor(8, 8).double()
    with mode:
        result = torch.linalg.det(x)
    assert mode.guessed
    bound = mode.bound(result)
    assert bound is not None
    assert bound > 0


def test_a_worst_element_is_told_with_everything_about_it():
    inputs = {"a": tensor(4, 8)}

    def run(given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
        return rounded(widened(given)["a"].exp(), {}, {"y": ((), (), torch.float32)}, ("y",))

    (expected,) = expect(run, inputs, ("y",))
    got = inputs["a"].exp()
    got[2, 5] = 100
    text = difference(expected, got)
    assert "1 of 32 elements of y" in text
    assert "worst at [2, 5]" in text
    assert "got 100, allowed difference" in text
    got[2, 5] = float("nan")
    assert "got nan" in difference(expected, got)
    assert "torch.float64" in difference(expected, got.double())


def test_results_are_rounded_once():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(20000, dtype=torch.float64, generator=generator) * 1000
    # Between two neighbours of float16, a hair beside the middle: two roundings go the wrong way.
    tie = torch.tensor(
        [1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 1e9, 6e-8, -0.0], dtype=torch.float64
    )
    values = torch.cat([values, tie, tie * 2.0**-20])
    expected = torch.from_numpy(values.numpy().astype(np.float16))
    assert torch.equal(round_once(values, torch.float16), expected)
    assert values.to(torch.float16)[20000] != expected[20000]
    assert (
        float(round_once(torch.tensor([1 + 2.0**-8 + 2.0**-40], dtype=torch.float64), torch.bfloat16))
        == 1 + 2.0**-7
    )


def test_observers_see_the_values_before_rounding():
    seen: list[torch.Tensor] = []
    with observing(seen.extend):
        rounded(torch.tensor([1 / 3], dtype=torch.float64), {}, {"y": ((), (), torch.float16)}, ("y",))
    assert seen[0].dtype == torch.float64


def test_the_rounding_of_a_large_argument_shows_in_softmax():
    x = tensor(4, 160).double() * 64
    bounds = ErrorBounds()
    with bounds:
        y = torch.softmax(x, -1)
    allowed = bounds.bound(y)
    assert not bounds.guessed
    assert allowed is not None
    # exp(-67 +- 67 u) is off by 67 u of itself; where the result is near 1 nothing is magnified.
    smallest = y.argmin()
    assert float(allowed.flatten()[smallest] / y.min()) > 60 * 2.0**-24


def test_a_bias_is_added_to_a_bound_once_and_only_if_it_is_inexact():
    left, right, bias = (tensor(*shape).double() for shape in ((6, 40), (40, 8), (8,)))

    def bound(add: torch.Tensor, factor: torch.Tensor) -> float:
        mode = ErrorBounds()
        with mode:
            found = mode.bound(torch.addmm(add(bias), factor(left), right))
        return float(found.max())

    def exact(x: torch.Tensor) -> torch.Tensor:
        return x

    # With an inexact factor the bound stays far below the bias; an inexact bias adds what it is off by.
    assert bound(exact, torch.exp) < 1e-3
    assert bound(torch.exp, torch.exp) > bound(exact, torch.exp)


def test_a_sum_that_passes_through_float16_is_rounded_by_its_own_size():
    left, right = tensor(6, 4000).double(), tensor(4000, 8, seed=1).double()
    mode = ErrorBounds(stored=2.0**-11)
    with mode:
        result = left @ right
        found = mode.bound(result)
    terms = left.abs() @ right.abs()
    assert bool((found <= 2.0**-11 * result.abs() + gamma(4002, 2.0**-24) * terms * 1.001).all())
    assert bool((found >= 2.0**-11 * result.abs()).all())


def test_a_bound_that_overflows_allows_any_finite_value():
    x = torch.tensor([1.0, 800.0], dtype=torch.float64)
    mode = ErrorBounds(unit=1.0)
    with mode:
        # 800 * 1 may be off by 800 in an arithmetic without digits: exp(0) may be anything up to exp(800).
        result = torch.exp(x * 1 - x)
        found = mode.bound(result)
    assert result.tolist() == [1.0, 1.0]
    assert math.isfinite(math.exp(float(found[0])))
    assert float(found[1]) >= 1e30
    expected = Expected("out", result, found)
    assert difference(expected, torch.tensor([1.0, 5.0], dtype=torch.float64)) == ""
    assert difference(expected, torch.tensor([1.0, math.nan], dtype=torch.float64))


IN_PLACE = {
    "transpose_": lambda x: x.transpose_(0, 1),
    "t_": lambda x: x.t_(),
    "swapaxes_": lambda x: x.swapaxes_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "squeeze_": lambda x: x.unsqueeze_(1).squeeze_(),
    "squeeze_ dim": lambda x: x.unsqueeze_(1).squeeze_(1),
    "as_strided_": lambda x: x.as_strided_((3, 2), (1, 3)),
    "detach_": lambda x: x.detach_(),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_bound_follows_a_view_that_changes_its_tensor_in_place(name: str):
    mode = ErrorBounds()
    with mode:
        x = tensor(2, 3).double().exp()
        before = mode.bound(x)
        assert before is not None
        IN_PLACE[name](x)
        found = mode.bound(x)
        after = mode.bound(x + x)
    assert found is not None
    assert torch.equal(found, IN_PLACE[name](before.clone()))
    assert not mode.guessed
    assert after is not None
    assert after.shape == x.shape


def test_products_of_tiles_that_are_rounded_before_they_cancel():
    # Two tiles of K = 64, as the public simulator computes them: 64 * 1.001 rounded to float16, minus 64.
    left = torch.cat([torch.full((1, 64), 1.001), torch.full((1, 64), -1.0)], 1).double()
    right = torch.ones(128, 1, dtype=torch.float64)
    rounded_products = float((left[:, :64] @ right[:64]).half() + (left[:, 64:] @ right[64:]).half())
    result = left @ right
    for products, within in ((0.0, False), (2.0**-11, True)):
        mode = ErrorBounds(stored=2.0**-11, products=products)
        with mode:
            found = mode.bound(left @ right)
        assert (abs(rounded_products - float(result)) <= float(found)) is within
