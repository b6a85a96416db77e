"""Forms that the public simulator needs, and that mean the same everywhere else."""

from __future__ import annotations

import pytest
import torch

from tracer.ktir.simulator import Module
from tracer.lower.lowering import lower_source

SOURCE = """@triton.jit
def apply(in_ptr0, out_ptr0, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[4, 8], strides=[8, 1], block_shape=[4, 16])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[4, 8], strides=[8, 1], block_shape=[4, 16])
    x = in0.load([0, 0])
    out0.store([0, 0], {value})
"""


def text(value: str, source: str, target: str, profile: str = "current") -> str:
    types = {"in_ptr0": source, "out_ptr0": target, "CORES": "constexpr"}
    return lower_source(SOURCE.format(value=value), "apply", types, {"CORES": 1}, 1, profile=profile).text  # type: ignore[arg-type]


def test_signed_integers_become_floats_element_by_element(in_order):
    in_order(
        text("x.to(tl.float32)", "*i64", "*fp32"), "linalg.generic", "arith.sitofp %element : i64 to f32"
    )


def test_masks_become_halves_by_way_of_f32(in_order):
    in_order(
        text("(x > 0).to(tl.float16)", "*fp32", "*fp16"),
        "arith.uitofp",
        "tensor<4x8xf32>",
        "arith.truncf",
        "tensor<4x8xf16>",
    )


def test_extensions_to_i32_go_by_way_of_i64(in_order):
    in_order(text("(x > 0).to(tl.int32)", "*fp32", "*i32"), "arith.extui", "tensor<4x8xi64>", "arith.trunci")


def test_extensions_to_i64_are_direct(in_order):
    in_order(text("x.to(tl.int64)", "*i32", "*i64"), "arith.extsi", absent=("arith.trunci",))


@pytest.mark.parametrize("profile", ["current", "ktir_cpu"])
def test_floats_become_i64_in_one_step_unless_the_profile_says_otherwise(profile: str, in_order):
    found = text("x.to(tl.int64)", "*fp32", "*i64", profile)
    if profile == "current":
        in_order(found, "arith.fptosi", "tensor<4x8xi64>", absent=("arith.extsi",))
    else:
        in_order(found, "arith.fptosi", "tensor<4x8xi32>", "arith.extsi")


def test_every_reduction_has_a_start_of_its_own(in_order):
    value = "x + (tl.sum(x, axis=1) + tl.sum(x * x, axis=1))[:, None]"
    found = text(value, "*fp32", "*fp32")
    in_order(found, "%start = arith.constant", "linalg.reduce", "%start_1 = arith.constant", "linalg.reduce")


def test_float_scalars_are_tiles_of_one_element(in_order):
    value = "x * (1.0 / (tl.sum(x) + 1.0))"
    found = text(value, "*fp32", "*fp32")
    in_order(found, "arith.addf", ": tensor<1xf32>", "arith.divf", ": tensor<1xf32>", "linalg.broadcast")
    assert "arith.divf" not in [line.split()[2] for line in found.splitlines() if line.endswith(": f32")]


def test_scalar_coordinates_stay_scalars(lowered, in_order):
    values = {"x0_size": 4, "x1_size": 40, "rows": 7, "X1_BLOCK": 32, "CORES": 8}
    pointers = {"in_ptr0": "*i64", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}
    found = lowered("embedding", pointers, values).text
    in_order(found, "arith.muli %", ": index", "tensor.extract", "arith.index_cast")


def test_no_else_no_calls_no_multiple_results(lowered):
    values = {"x0_size": 100, "r0_size": 50, "in0_stride_x0": 50, "X0_BLOCK": 8, "R0_BLOCK": 64, "CORES": 13}
    found = lowered("softmax", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, values).text
    assert "else" not in found
    assert "call" not in found
    assert ":2 =" not in found
    assert "loc(" not in found


COORDINATES = """@triton.jit
def rows(out_ptr0, x0_size, CORES: tl.constexpr):
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[x0_size, 5], strides=[5, 1], block_shape=[1, 8])
    for tile in tl.range(tl.program_id(0), x0_size, CORES):
        x0 = tile.to(tl.int64) * 3
        out0.store([tile, 0], tl.zeros([1, 8], tl.int64) + x0)
"""


def test_coordinates_as_wide_values(in_order):
    types = {"out_ptr0": "*i64", "x0_size": "i32", "CORES": "constexpr"}
    found = lower_source(COORDINATES, "rows", types, {"x0_size": 9, "CORES": 4}, 4).text
    in_order(found, "arith.muli %tile", "arith.index_cast", "tensor.splat", "tensor<1x5xi32>", "arith.extsi")
    output = torch.zeros(9, 5, dtype=torch.int64)
    result = Module.parse(found).function("rows").run([output]).outputs[0]
    assert torch.equal(result, (torch.arange(9) * 3)[:, None].expand(9, 5))
