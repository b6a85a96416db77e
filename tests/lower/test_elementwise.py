"""Elementwise operations of Triton, one by one, through the simulator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tracer.ktir.simulator import Module
from tracer.lower.errors import PaddedReductionError
from tracer.lower.lowering import lower_source

SOURCE = """@triton.jit
def apply(in_ptr0, in_ptr1, out_ptr0, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[5, 7], strides=[7, 1], block_shape=[8, 16])
    in1 = tl.make_tensor_descriptor(in_ptr1, shape=[5, 7], strides=[7, 1], block_shape=[8, 16])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[5, 7], strides=[7, 1], block_shape=[8, 16])
    x = in0.load([0, 0])
    y = in1.load([0, 0])
    out0.store([0, 0], {value})
"""
TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.uint8: "*u8",
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


def apply(value: str, x: Tensor, y: Tensor, dtype: torch.dtype, profile: str = "current") -> Tensor:
    types = {
        "in_ptr0": TYPES[x.dtype],
        "in_ptr1": TYPES[y.dtype],
        "out_ptr0": TYPES[dtype],
        "CORES": "constexpr",
    }
    ktir = lower_source(SOURCE.format(value=value), "apply", types, {"CORES": 1}, 1, profile=profile)  # type: ignore[arg-type]
    output = torch.zeros(5, 7, dtype=dtype)
    # Values outside a function's domain are part of the test.
    return Module.parse(ktir.text).function("apply").run([x, y, output], check=False).outputs[-1]


def floats(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(5, 7, generator=generator).to(dtype), torch.randn(5, 7, generator=generator).to(dtype)


def integers(dtype: torch.dtype = torch.int32) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x = torch.randint(-50, 50, (5, 7), generator=generator).to(dtype)
    return x, torch.randint(1, 9, (5, 7), generator=generator).to(dtype)


FLOAT_CASES: list[tuple[str, Callable[[Tensor, Tensor], Tensor]]] = [
    ("tl.exp2(x)", lambda x, y: torch.exp2(x)),
    ("tl.log(tl.abs(x))", lambda x, y: x.abs().log()),
    ("tl.sin(x) + tl.cos(y)", lambda x, y: x.sin() + y.cos()),
    ("tl.erf(x)", lambda x, y: torch.erf(x)),
    ("tl.sqrt_rn(tl.abs(x))", lambda x, y: x.abs().sqrt()),
    ("tl.rsqrt(tl.abs(x))", lambda x, y: x.abs().rsqrt()),
    ("tl.div_rn(x, y)", lambda x, y: x / y),
    ("tl.floor(x) + tl.ceil(y)", lambda x, y: x.floor() + y.ceil()),
    ("tl.fma(x, y, y)", lambda x, y: x * y + y),
    ("tl.maximum(x, y)", lambda x, y: torch.maximum(x, y)),
    ("tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)", lambda x, y: torch.minimum(x, y)),
    ("tl.clamp(x, -0.5, 0.5)", lambda x, y: x.clamp(-0.5, 0.5)),
    ("tl.where(x < y, x, 2.0)", lambda x, y: torch.where(x < y, x, 2.0)),
    ("libdevice.tanh(x)", lambda x, y: torch.tanh(x)),
    ("libdevice.pow(tl.abs(x), y)", lambda x, y: x.abs() ** y),
    ("libdevice.expm1(x) + libdevice.log1p(tl.abs(y))", lambda x, y: torch.expm1(x) + torch.log1p(y.abs())),
    ("libdevice.fmod(x, y)", lambda x, y: torch.fmod(x, y)),
    ("libdevice.copysign(x, y)", lambda x, y: torch.copysign(x, y)),
    ("(x > 0).to(tl.float32)", lambda x, y: (x > 0).float()),
    ("x.to(tl.int32).to(tl.float32)", lambda x, y: x.int().float()),
    ("x.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)", lambda x, y: x),
]


@pytest.mark.parametrize(("value", "expected"), FLOAT_CASES, ids=[value for value, _ in FLOAT_CASES])
def test_floats(value: str, expected: Callable[[Tensor, Tensor], Tensor]):
    x, y = floats()
    torch.testing.assert_close(apply(value, x, y, torch.float32), expected(x, y), rtol=2e-5, atol=2e-6)


INTEGER_CASES: list[tuple[str, Callable[[Tensor, Tensor], Tensor]]] = [
    ("x // y", lambda x, y: torch.div(x, y, rounding_mode="trunc")),
    ("x % y", lambda x, y: torch.fmod(x, y)),
    ("(x & y) | (x ^ 3)", lambda x, y: (x & y) | (x ^ 3)),
    ("(x << 2) + (x >> 1)", lambda x, y: (x << 2) + (x >> 1)),
    ("tl.where(x >= y, x - y, y * 2)", lambda x, y: torch.where(x >= y, x - y, y * 2)),
    ("tl.minimum(x, y) + tl.abs(x)", lambda x, y: torch.minimum(x, y) + x.abs()),
]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize(("value", "expected"), INTEGER_CASES, ids=[value for value, _ in INTEGER_CASES])
def test_integers(value: str, expected: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype):
    x, y = integers(dtype)
    assert torch.equal(apply(value, x, y, dtype), expected(x, y))


def test_upper_half_of_a_product():
    x = torch.full((5, 7), -(2**30), dtype=torch.int32)
    y = torch.full((5, 7), 12345, dtype=torch.int32)
    unsigned = (int(x[0, 0]) % 2**32) * 12345 >> 32
    value = (
        "tl.umulhi(x.to(tl.uint32, bitcast=True), y.to(tl.uint32, bitcast=True)).to(tl.int32, bitcast=True)"
    )
    assert torch.equal(apply(value, x, y, torch.int32), torch.full_like(x, unsigned))


@pytest.mark.parametrize(
    "source", [torch.float16, torch.bfloat16, torch.float32, torch.int8, torch.int16, torch.int64]
)
@pytest.mark.parametrize(
    ("target", "name"),
    [
        (torch.float16, "tl.float16"),
        (torch.bfloat16, "tl.bfloat16"),
        (torch.float32, "tl.float32"),
        (torch.float64, "tl.float64"),
        (torch.int8, "tl.int8"),
        (torch.int32, "tl.int32"),
        (torch.int64, "tl.int64"),
    ],
)
def test_casts(source: torch.dtype, target: torch.dtype, name: str):
    x, y = integers(source)
    assert torch.equal(apply(f"x.to({name})", x, y, target), x.to(target))


def test_comparisons_leave_as_bytes():
    x, y = floats()
    assert torch.equal(apply("(x < y).to(tl.int8)", x, y, torch.int8), (x < y).to(torch.int8))


def test_nan_is_kept_or_dropped_as_the_source_says():
    x, y = floats()
    x[2, 3] = float("nan")
    kept = apply("tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)", x, y, torch.float32)
    dropped = apply("tl.maximum(x, y)", x, y, torch.float32)
    assert kept[2, 3].isnan()
    assert dropped[2, 3] == y[2, 3]


def test_a_hypotenuse_neither_overflows_nor_vanishes():
    x = torch.zeros(5, 7)
    y = torch.zeros(5, 7)
    pairs = [(3e30, 4e30), (-3e-30, 4e-30), (0.0, 0.0), (0.0, -2.0), (torch.inf, torch.nan), (1.0, torch.nan)]
    for lane, (a, b) in enumerate(pairs):
        x[0, lane], y[0, lane] = a, b
    found = apply("libdevice.hypot(x, y)", x, y, torch.float32)
    expected = torch.tensor([5e30, 5e-30, 0.0, 2.0, torch.inf, torch.nan])
    torch.testing.assert_close(found[0, :6], expected, rtol=1e-6, atol=0, equal_nan=True)


UNSIGNED = [
    ("tl.max({0}, axis=1)", lambda x: x.amax(1)),
    ("tl.min({1}, axis=1)", lambda x: x.amin(1)),
    ("tl.argmax({0}, axis=1)", lambda x: x.argmax(1)),
    ("tl.argmin({1}, axis=1)", lambda x: x.argmin(1)),
]


@pytest.mark.parametrize(("value", "expected"), UNSIGNED, ids=[value for value, _ in UNSIGNED])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_extremes_of_narrow_integers_over_masked_padding(
    value: str, expected: Callable[[Tensor], Tensor], dtype: torch.dtype
):
    limits = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(5)
    x = torch.randint(limits.min, limits.max + 1, (5, 7), generator=generator).to(dtype)
    inside = "tl.where((tl.arange(0, 16) < 7)[None, :], x, {})"
    text = value.format(inside.format(limits.min), inside.format(limits.max))
    spread = f"tl.broadcast_to({text}.to(tl.int32)[:, None], [8, 16])"
    found = apply(spread, x, torch.zeros_like(x), torch.int32)
    assert torch.equal(found, expected(x).to(torch.int32)[:, None].expand(5, 7))


def test_extremes_over_padding_that_may_win_are_refused():
    x = torch.ones(5, 7, dtype=torch.int8)
    for name in ("max", "argmax"):
        text = f"tl.broadcast_to(tl.{name}(x, axis=1).to(tl.int32)[:, None], [8, 16])"
        with pytest.raises(PaddedReductionError, match=name):
            apply(text, x, x, torch.int32)


def test_the_public_profile_has_no_exp2():
    x, y = floats()
    torch.testing.assert_close(apply("tl.exp2(x)", x, y, torch.float32, "ktir_cpu"), torch.exp2(x))
    types = {"in_ptr0": "*fp32", "in_ptr1": "*fp32", "out_ptr0": "*fp32", "CORES": "constexpr"}
    text = SOURCE.format(value="tl.exp2(x)")
    assert "math.exp2" in lower_source(text, "apply", types, {"CORES": 1}, 1).text
    assert "math.exp2" not in lower_source(text, "apply", types, {"CORES": 1}, 1, profile="ktir_cpu").text
