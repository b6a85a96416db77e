"""The smaller passes, each with what it must do and what it must leave."""

from __future__ import annotations

import pytest

HALF = {"in_ptr0": "*fp16", "out_ptr0": "*fp16"}
ROWS = {"in_ptr0": "*i64", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}


def test_modulo_by_the_tile_count_vanishes_where_it_changes_nothing(text_after, in_order):
    values = {
        "x0_size": 12,
        "x1_size": 96,
        "r0_size": 32,
        "X0_BLOCK": 16,
        "X1_BLOCK": 32,
        "R0_BLOCK": 32,
        "CORES": 3,
    }
    pointers = {"in_ptr0": "*fp16", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}
    one_row = text_after("simplify-scalars", "linear", pointers, values)
    in_order(one_row, "arith.muli", absent=("arith.remsi", "arith.divsi"))
    two_rows = text_after("simplify-scalars", "linear", pointers, values | {"x0_size": 32, "CORES": 6})
    in_order(two_rows, "arith.remsi", "arith.divsi")


def test_a_loop_of_one_trip_is_inlined_and_others_stay(text_after):
    values = {"x0_size": 64, "X0_BLOCK": 16, "CORES": 4}
    assert "scf.for" not in text_after("inline-loops", "silu", HALF, values)
    assert "scf.for" in text_after("inline-loops", "silu", HALF, values | {"CORES": 2})


def test_program_zero_is_all_there_is_on_one_core(text_after):
    text = text_after("simplify-scalars", "silu", HALF, {"x0_size": 64, "X0_BLOCK": 16, "CORES": 1})
    assert "get_program_id" not in text


def test_ranges_get_a_copy_per_use(text_after):
    values = {"x0_size": 16, "x1_size": 16, "X0_BLOCK": 16, "X1_BLOCK": 16, "CORES": 1}
    pointers = {"in_ptr0": "*fp32", "out_ptr0": "*fp32"}
    assert text_after("inline-loops", "triangle", pointers, values).count("tt.make_range") == 1
    assert text_after("separate-generators", "triangle", pointers, values).count("tt.make_range") == 2


def test_known_index_vectors_become_flat_lists(text_after, in_order):
    text = text_after(
        "lower-ranges", "arange", {"out_ptr0": "*i64"}, {"x0_size": 4, "X0_BLOCK": 4, "CORES": 1}
    )
    in_order(text, "dense<[0, 1, 2, 3]> : tensor<4xi64>", absent=("make_range",))


def test_index_vectors_of_many_tiles_are_added_to(text_after, in_order):
    values = {"x0_size": 8, "X0_BLOCK": 4, "CORES": 2}
    text = text_after("lower-ranges", "arange", {"out_ptr0": "*i64"}, values)
    in_order(text, "dense<[0, 1, 2, 3]> : tensor<4xi32>", "arith.addi", "arith.extsi")
    assert "tt.splat" in text


def test_long_index_vectors_are_made_of_short_lists(lowered):
    values = {"x0_size": 4000, "X0_BLOCK": 4096, "CORES": 1}
    assert len(lowered("arange", {"out_ptr0": "*i64"}, values).text) < 4000


def test_coordinates_are_index_values(text_after, in_order):
    text = text_after("index-scalars", "silu", HALF, {"x0_size": 128, "X0_BLOCK": 16, "CORES": 4})
    in_order(
        text,
        "ktdp.get_compute_tile_id : index",
        "scf.for %tile = %core",
        "arith.muli %tile, %c16 : index",
        absent=("arith.index_cast", ": i32 {"),
    )


def test_coordinates_from_data_are_cast(text_after, in_order):
    values = {"x0_size": 4, "x1_size": 32, "rows": 7, "X1_BLOCK": 32, "CORES": 4}
    text = text_after("index-scalars", "embedding", ROWS, values)
    in_order(text, "tt.reduce", "arith.trunci", "arith.index_cast", "tt.descriptor_load")


def test_views_keep_extents_and_strides(lowered, in_order):
    values = {"x0_size": 8, "r0_size": 50, "in0_stride_x0": 55, "X0_BLOCK": 8, "R0_BLOCK": 64, "CORES": 1}
    ktir = lowered("softmax", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, values)
    in_order(
        ktir.text,
        "%in0 = ktdp.construct_memory_view %in_ptr0, sizes: [8, 50], strides: [55, 1]",
        "memory_space = #ktdp.memory_space<global>",
        "memref<8x50xf16>",
    )


def test_one_element_needs_no_reduction(lowered, in_order):
    values = {"x0_size": 4, "x1_size": 32, "rows": 7, "X1_BLOCK": 32, "CORES": 4}
    in_order(
        lowered("embedding", ROWS, values).text,
        "tensor.extract",
        "arith.index_cast",
        absent=("linalg.reduce",),
    )


def test_reductions_have_private_starts_of_the_right_identity(lowered, in_order):
    values = {"x0_size": 8, "r0_size": 50, "in0_stride_x0": 50, "X0_BLOCK": 8, "R0_BLOCK": 64, "CORES": 1}
    ktir = lowered("softmax", {"in_ptr0": "*fp16", "out_ptr0": "*fp32"}, values)
    in_order(
        ktir.text,
        "dense<0xFF800000> : tensor<8xf32>",
        "linalg.reduce",
        "arith.maxnumf",
        "dense<0.000000e+00> : tensor<8xf32>",
        "linalg.reduce",
        "arith.addf",
    )


def test_argmax_is_two_reductions_of_one_input(lowered, in_order):
    values = {"x0_size": 2, "r0_size": 4, "X0_BLOCK": 2, "R0_BLOCK": 4, "CORES": 1}
    ktir = lowered("argmax", {"in_ptr0": "*fp32", "out_ptr0": "*i64"}, values)
    in_order(
        ktir.text,
        "linalg.reduce",
        "arith.maxnumf",
        "arith.cmpf oeq",
        "arith.select",
        "linalg.reduce",
        "arith.minsi",
    )


@pytest.mark.parametrize(("batch", "name"), [(1, "linalg.batch_matmul"), (2, "linalg.batch_matmul")])
def test_dots_of_rank_three(lowered, in_order, batch: int, name: str):
    values = {"z_size": batch, "x0_size": 8, "x1_size": 8, "r0_size": 8}
    values |= {"Z_BLOCK": batch, "X0_BLOCK": 8, "X1_BLOCK": 8, "R0_BLOCK": 8, "CORES": 1}
    ktir = lowered("batched", {"in_ptr0": "*fp16", "in_ptr1": "*fp16", "out_ptr0": "*fp32"}, values)
    in_order(ktir.text, name, f"tensor<{batch}x8x8xf16>", f"tensor<{batch}x8x8xf32>")


def test_dots_keep_operand_and_accumulator_types(lowered, in_order):
    values = {
        "x0_size": 16,
        "x1_size": 32,
        "r0_size": 32,
        "X0_BLOCK": 16,
        "X1_BLOCK": 32,
        "R0_BLOCK": 32,
        "CORES": 1,
    }
    ktir = lowered("linear", {"in_ptr0": "*fp16", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}, values)
    in_order(
        ktir.text,
        "dense<0.000000e+00> : tensor<16x32xf32>",
        "linalg.transpose",
        "permutation = [1, 0]",
        "linalg.matmul ins(",
        "tensor<16x32xf16>, tensor<32x32xf16>) outs(%cst : tensor<16x32xf32>)",
    )


def test_moving_unit_dims_is_a_reshape(lowered):
    values = {
        "x0_size": 2,
        "x1_size": 8,
        "x2_size": 32,
        "X0_BLOCK": 1,
        "X1_BLOCK": 8,
        "X2_BLOCK": 32,
        "CORES": 2,
    }
    pointers = {"in_ptr0": "*fp16", "in_ptr1": "*fp16", "out_ptr0": "*fp16"}
    assert "linalg.transpose" not in lowered("rope_mul", pointers, values).text
    moved = lowered("rope_mul", pointers, values | {"X0_BLOCK": 2, "CORES": 1}).text
    assert "permutation = [1, 0, 2]" in moved


def test_constants_come_first_and_only_once(lowered):
    values = {"x0_size": 100, "X0_BLOCK": 16, "CORES": 2}
    lines = [line.strip() for line in lowered("silu", HALF, values).text.splitlines()]
    scalars = [
        line for line in lines if line.startswith("%c") and "arith.constant" in line and "index" in line
    ]
    assert len({line.split(" = ")[1] for line in scalars}) == len(scalars)
    first = lines.index(next(line for line in lines if "ktdp." in line))
    assert all(lines.index(line) < first for line in scalars)


def test_access_tiles_are_never_shared(lowered):
    values = {"x0_size": 16, "X0_BLOCK": 16, "CORES": 1}
    assert lowered("silu", HALF, values).text.count("ktdp.construct_access_tile") == 2


def test_the_signature_is_the_kernels(lowered, in_order):
    values = {"x0_size": 16, "X0_BLOCK": 16, "CORES": 1}
    ktir = lowered("silu", HALF, values)
    assert ktir.name == "silu"
    in_order(ktir.text, "func.func @silu(%in_ptr0: index, %out_ptr0: index) attributes {grid = [1]}")
