"""Peeling and narrowing: every access has one extent, and nothing outside a view is touched."""

from __future__ import annotations

import pytest

from tracer.lower.errors import GridError, InexactTileError, PaddedReductionError
from tracer.lower.lowering import lower_source

HALF = {"in_ptr0": "*fp16", "out_ptr0": "*fp16"}
LINEAR = {"in_ptr0": "*fp16", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}


def linear_values(m: int, n: int, k: int, cores: int) -> dict[str, int]:
    return {
        "x0_size": m,
        "x1_size": n,
        "r0_size": k,
        "X0_BLOCK": 16,
        "X1_BLOCK": 32,
        "R0_BLOCK": 32,
        "CORES": cores,
    }


def test_whole_tiles_are_left_alone(text_after, in_order):
    text = text_after("narrow-tiles", "silu", HALF, {"x0_size": 64, "X0_BLOCK": 16, "CORES": 4})
    in_order(text, "lanes = [array<i64: 0, 16>]", "tensor<16xf16>", absent=("scf.if", "scf.for"))


def test_a_wide_block_is_narrowed_to_the_extent(text_after, in_order):
    text = text_after("narrow-tiles", "silu", HALF, {"x0_size": 12, "X0_BLOCK": 16, "CORES": 1})
    in_order(text, "tensor<12xf16>", absent=("-> tensor<16x", "tensor<16xf32>", "scf.if"))


def test_the_last_tile_of_a_loop_is_split_off(text_after, in_order):
    text = text_after("peel-tiles", "silu", HALF, {"x0_size": 100, "X0_BLOCK": 16, "CORES": 2})
    # Seven tiles on two programs: the ragged seventh is the first one's.
    in_order(text, "arith.constant 6", "scf.for", "arith.cmpi eq", "scf.if", "tt.descriptor_load")


def test_the_last_tile_without_a_loop_is_guarded(text_after, in_order):
    text = text_after("narrow-tiles", "silu", HALF, {"x0_size": 100, "X0_BLOCK": 16, "CORES": 7})
    in_order(
        text,
        "arith.cmpi slt",
        "scf.if",
        "tensor<16xf16>",
        "arith.cmpi eq",
        "scf.if",
        "tensor<4xf16>",
        absent=("scf.for", "else"),
    )


def test_neighbouring_tiles_are_split_at_the_first_ragged_one(text_after, in_order):
    text = text_after("narrow-tiles", "near_linear", LINEAR, linear_values(16, 150, 32, 2))
    # Five tiles, three on the first program: the ragged fifth is the last one of the second.
    in_order(
        text,
        "arith.constant 4",
        "arith.minsi",
        "arith.maxsi",
        "scf.for",
        "-> tensor<16x32xf32>",
        "scf.for",
        "-> tensor<16x22xf32>",
        absent=("scf.if",),
    )


def test_neighbouring_tiles_that_are_whole_keep_one_loop(text_after):
    text = text_after("peel-tiles", "near_linear", LINEAR, linear_values(16, 160, 32, 2))
    assert text.count("scf.for") == 1


def test_several_ragged_rows_of_tiles_get_a_loop_of_their_own(text_after, in_order):
    text = text_after("narrow-tiles", "linear", LINEAR, linear_values(20, 160, 32, 3))
    in_order(text, "scf.for", "-> tensor<16x32xf32>", "scf.for", "-> tensor<4x32xf32>", absent=("scf.if",))


def test_a_ragged_inner_dimension_is_guarded_inside_the_loop(text_after, in_order):
    text = text_after("narrow-tiles", "linear", LINEAR, linear_values(64, 40, 32, 3))
    in_order(text, "scf.for", "scf.if", "-> tensor<16x32xf32>", "scf.if", "-> tensor<16x8xf32>")


def test_only_combinations_that_occur_are_written(text_after):
    both = text_after("narrow-tiles", "linear", LINEAR, linear_values(20, 40, 32, 4))
    assert both.count("scf.if") == 4
    assert both.count("tt.dot") == 4


def test_the_last_step_of_a_contraction_is_split_off(text_after, in_order):
    text = text_after("narrow-tiles", "linear", LINEAR, linear_values(16, 32, 100, 1))
    in_order(
        text, "scf.for", "tensor<16x32xf16>", "scf.yield", "tensor<16x4xf16>", "tensor<4x32xf16>", "tt.dot"
    )
    assert text.count("tt.dot") == 2


def test_a_contraction_of_one_step_has_no_loop(text_after, in_order):
    text = text_after("narrow-tiles", "linear", LINEAR, linear_values(16, 32, 20, 1))
    in_order(text, "tensor<16x20xf16>", absent=("scf.for",))
    assert text.count("tt.dot") == 1


def test_true_masks_and_their_selects_vanish(text_after, in_order):
    values = {"x0_size": 8, "r0_size": 50, "in0_stride_x0": 50, "X0_BLOCK": 8, "R0_BLOCK": 64, "CORES": 1}
    text = text_after("narrow-tiles", "softmax", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, values)
    in_order(text, "tensor<8x50xf32>", "tt.reduce", absent=("arith.select", "-> tensor<8x64xf32>"))


def test_a_mask_that_may_be_false_stays(text_after, in_order):
    values = {"x0_size": 12, "x1_size": 12, "X0_BLOCK": 8, "X1_BLOCK": 16, "CORES": 2}
    text = text_after("narrow-tiles", "triangle", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    in_order(text, "arith.select", "tensor<8x12xf32>", "arith.select", "tensor<4x12xf32>")


def test_equal_blocks_of_unrelated_dimensions_stay_apart(text_after, in_order):
    values = {"x0_size": 16, "x1_size": 12, "X0_BLOCK": 16, "X1_BLOCK": 16, "CORES": 1}
    text = text_after("narrow-tiles", "triangle", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    in_order(text, "end = 16 : i32", "end = 12 : i32", "tensor<16x12xf32>")


def test_a_carried_dimension_is_padded_instead(lowered, in_order):
    values = {"x0_size": 8, "r0_size": 40, "X0_BLOCK": 8, "R0_BLOCK": 16, "CORES": 1}
    ktir = lowered("wide_sum", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, values)
    in_order(
        ktir.text,
        "scf.for",
        "access_tile<8x16xindex>",
        "access_tile<8x8xindex>",
        "tensor.insert_slice",
        "[0, 0] [8, 8] [1, 1]",
    )


def test_reading_below_the_view_is_padded(lowered, in_order):
    values = {"x0_size": 32, "shift": 5, "X0_BLOCK": 16, "CORES": 1}
    ktir = lowered("shifted", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    in_order(
        ktir.text, "access_tile<11xindex>", "tensor.insert_slice", "[5] [11] [1]", "access_tile<16xindex>"
    )


def test_a_tile_outside_its_view_is_all_padding(text_after, in_order):
    values = {"x0_size": 16, "shift": 40, "X0_BLOCK": 16, "CORES": 1}
    text = text_after("bound-accesses", "shifted", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    in_order(text, "dense<0.000000e+00>", "tt.descriptor_store", absent=("tt.descriptor_load",))


def test_a_reshape_of_a_narrowed_inner_dimension_keeps_the_block(lowered, in_order):
    values = {"x0_size": 4, "r0_size": 10, "R0_BLOCK": 16, "CORES": 1}
    ktir = lowered("flat_sum", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    in_order(
        ktir.text, "access_tile<4x10xindex>", "tensor.insert_slice", "tensor<4x16xf32>", "tensor<64xf32>"
    )


def test_padding_that_is_no_identity_is_refused(lowered):
    values = {"x0_size": 8, "r0_size": 10, "X0_BLOCK": 8, "R0_BLOCK": 16, "CORES": 1}
    with pytest.raises(PaddedReductionError) as caught:
        lowered("unmasked_max", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values)
    assert "maxnumf" in caught.value.reason
    assert "tl.max" in (caught.value.line or "")
    lowered("unmasked_max", {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}, values | {"r0_size": 16})


@pytest.mark.parametrize(
    ("test", "allowed"), [("!= 0", True), ("> 0.0", True), ("<= 0", False), ("== 1", True)]
)
def test_counting_lanes_needs_padding_that_does_not_count(test: str, allowed: bool):
    source = f"""@triton.jit
def count(in_ptr0, out_ptr0, CORES: tl.constexpr):
    in0 = tl.make_tensor_descriptor(in_ptr0, shape=[4, 12], strides=[12, 1], block_shape=[4, 16])
    out0 = tl.make_tensor_descriptor(out_ptr0, shape=[4], strides=[1], block_shape=[4])
    out0.store([0], tl.sum((in0.load([0, 0]) {test}).to(tl.int32), axis=1))
"""
    types = {"in_ptr0": "*fp32" if "." in test else "*i8", "out_ptr0": "*i32", "CORES": "constexpr"}
    if allowed:
        assert "linalg.reduce" in lower_source(source, "count", types, {"CORES": 1}, 1).text
    else:
        with pytest.raises(PaddedReductionError, match="addi"):
            lower_source(source, "count", types, {"CORES": 1}, 1)


def test_a_wide_block_at_an_unknown_offset_is_refused(lowered):
    pointers = {"in_ptr0": "*i64", "in_ptr1": "*fp32", "out_ptr0": "*fp32"}
    with pytest.raises(InexactTileError, match="depends on data") as caught:
        lowered("wide_gather", pointers, {"x0_size": 1, "rows": 8, "X0_BLOCK": 4, "CORES": 1})
    assert "in1.load" in (caught.value.line or "")


@pytest.mark.parametrize("grid", [0, 33])
def test_a_grid_beyond_the_accelerator_is_refused(lowered, grid: int):
    with pytest.raises(GridError) as caught:
        lowered("silu", HALF, {"x0_size": 16 * 33, "X0_BLOCK": 16, "CORES": grid})
    assert str(grid) in caught.value.reason
