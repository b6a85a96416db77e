"""Our decompositions, run on ordinary tensors, against the ATen ops that they stand for."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tracer.capture import decompositions, division, pooling, ranking, scattering
from tracer.capture.codegen import capture
from tracer.capture.errors import ExternKernel
from tracer.models.op_call import OpCall, TensorRef, TensorSpec

aten = torch.ops.aten
NAN, INF = math.nan, math.inf
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32, torch.int64, torch.bool]


def numbers(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    """Few different values, so that there are ties."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-3, 4, shape, generator=generator) / 2).to(dtype)


def floats(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def indices(*shape: int, high: int, seed: int = 1) -> torch.Tensor:
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def check(op: Any, *args: Any, **kwargs: Any) -> None:
    """The decomposition of `op` gives what `op` gives: shapes, dtypes and values."""
    found = tree_leaves((decompositions.OURS | decompositions.EXTENDED)[op](*args, **kwargs))
    assert found[0] is not NotImplemented
    for got, want in zip(found, tree_leaves(op(*args, **kwargs)), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, -1])
def test_running_extremes_name_the_last_of_equal_elements(dtype: torch.dtype, dim: int) -> None:
    check(aten.cummax.default, numbers(9, 7, dtype=dtype), dim)
    check(aten.cummin.default, numbers(9, 7, dtype=dtype), dim)


def test_running_extremes_stay_nan() -> None:
    row = torch.tensor([1.0, 2.0, NAN, 3.0, NAN, -INF])
    check(aten.cummax.default, row, 0)
    check(aten.cummin.default, row, 0)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_other_scans(dim: int) -> None:
    check(aten.cumprod.default, floats(5, 8), dim)
    check(aten.cumprod.default, numbers(5, 8, dtype=torch.int32), dim)
    check(aten.cumprod.default, floats(5, 8).float(), dim, dtype=torch.float64)
    check(aten.logcumsumexp.default, 100 * floats(5, 8), dim)


def test_log_of_a_running_sum_of_infinities() -> None:
    check(aten.logcumsumexp.default, torch.tensor([-INF, -INF, 1.0, INF, 2.0]), 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_is_stable(dtype: torch.dtype, descending: bool) -> None:
    for dim in (0, -1):
        check(aten.sort.stable, numbers(9, 7, dtype=dtype), stable=True, dim=dim, descending=descending)


@pytest.mark.parametrize("descending", [False, True])
def test_nan_sorts_as_the_greatest(descending: bool) -> None:
    row = torch.tensor([1.0, NAN, INF, -INF, NAN, 0.0])
    check(aten.sort.stable, row, stable=True, dim=0, descending=descending)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_topk(largest: bool, dim: int) -> None:
    check(aten.topk.default, floats(9, 7), 3, dim, largest)


def test_rows_are_ranked_while_they_are_short_or_few() -> None:
    check(aten.topk.default, floats(1, 1029), 300)
    check(aten.sort.stable, numbers(2, ranking.MAX_RANKED + 1), stable=True)
    long = torch.empty(1, 1).expand(5, 8400)
    assert ranking.rankable(long[:1], 1)
    assert not ranking.rankable(long, 1)
    assert ranking.sort(long) is NotImplemented
    assert ranking.kthvalue(long, 3) is NotImplemented


@pytest.mark.parametrize("largest", [False, True])
def test_the_first_of_a_long_row_are_those_of_its_chunks(largest: bool) -> None:
    check(aten.topk.default, floats(2, 2500), 7, 1, largest)
    check(aten.topk.default, floats(2500, 2), 300, 0, largest)
    check(aten.topk.default, torch.randperm(2500).to(torch.int32), 7, 0, largest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
@pytest.mark.parametrize("largest", [False, True])
def test_chunks_keep_the_order_of_equal_elements(largest: bool, dtype: torch.dtype) -> None:
    # What fills the last chunk up is as great as the last of these, and must not be found.
    row = numbers(2049, dtype=dtype) if dtype is not torch.uint8 else numbers(2049).abs().mul(85).to(dtype)
    if dtype is torch.float32:
        row[1::3], row[2::3] = NAN, -INF
    values, places = ranking.topk(row, 1000, 0, largest)
    order = row.sort(stable=True, descending=largest)
    torch.testing.assert_close(values, order.values[:1000], equal_nan=True)
    assert torch.equal(places, order.indices[:1000])


def test_chunks_that_leave_too_much_are_refused() -> None:
    assert ranking.topk(torch.empty(1, 1).expand(100, 9000), 4000) is NotImplemented
    assert ranking.topk(torch.empty(1000, 4200, device="meta"), 1000) is NotImplemented


@pytest.mark.parametrize("keepdim", [False, True])
def test_order_statistics(keepdim: bool) -> None:
    for dim in (0, -1):
        for data in (floats(8, 7), floats(7, 8)):
            check(aten.kthvalue.default, data, 3, dim, keepdim)
            check(aten.median.dim, data, dim, keepdim)
            check(aten.nanmedian.dim, data, dim, keepdim)
    check(aten.median.default, numbers(5, 6))


def test_medians_with_nan() -> None:
    rows = torch.tensor([[1.0, NAN, 3.0, NAN], [NAN] * 4, [4.0, 2.0, 1.0, 3.0]])
    check(aten.median.dim, rows[::2], 1)
    # Which of several NaNs is named is open where there are no numbers.
    assert torch.equal(decompositions.OURS[aten.nanmedian.dim](rows, 1)[0][::2], rows.nanmedian(1)[0][::2])
    assert decompositions.OURS[aten.nanmedian.dim](rows, 1)[0][1].isnan()
    check(aten.nanmedian.default, rows)


@pytest.mark.parametrize("right", [False, True])
def test_places_among_boundaries(right: bool) -> None:
    values, edges = numbers(3, 9), numbers(3, 6, seed=2).sort(-1)[0]
    values[0, 0] = NAN
    check(aten.searchsorted.Tensor, edges, values, right=right)
    check(aten.searchsorted.Tensor, edges[0], values, right=right, out_int32=True)
    check(aten.bucketize.Tensor, values, edges[0], right=right)
    shuffled = edges.flip(-1)
    check(aten.searchsorted.Tensor, shuffled, values, right=right, sorter=shuffled.argsort(-1))


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_scatter_reduce(reduce: str, include_self: bool, dim: int) -> None:
    for dtype in (torch.float64, torch.int64):
        target, source = numbers(6, 7, dtype=dtype), numbers(6, 7, dtype=dtype, seed=3)
        index = indices(4, 5, high=4)
        check(aten.scatter_reduce.two, target, dim, index, source, reduce, include_self=include_self)


def test_scattered_sums() -> None:
    check(aten.scatter_add.default, floats(6, 7), -1, indices(6, 9, high=7), floats(6, 9))
    check(aten.scatter_add.default, floats(1)[0], 0, indices(1, high=1)[0], floats(1)[0])
    check(aten.index_add.default, floats(6, 7), -2, indices(9, high=6), floats(9, 7), alpha=0.5)
    check(aten.index_add.default, floats(6, 7), 0, indices(0, high=6), floats(0, 7))


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
def test_index_reduce(reduce: str) -> None:
    for include_self in (False, True):
        data, source, index = floats(6, 7), floats(9, 7, seed=2), indices(9, high=4)
        check(aten.index_reduce.default, data, 0, index, source, reduce, include_self=include_self)


def test_scatter_with_a_reduction_by_its_older_name() -> None:
    index = indices(4, 5, high=4)
    check(aten.scatter.reduce, floats(6, 7), 0, index, floats(6, 7, seed=2), reduce="add")
    check(aten.scatter.reduce, floats(6, 7), 1, index, floats(6, 7, seed=2), reduce="multiply")
    check(aten.scatter.value_reduce, floats(6, 7), 0, index, 1.5, reduce="multiply")


def test_a_mask_takes_what_comes_next() -> None:
    mask, source = numbers(4, 5) > 0, floats(30)
    check(aten.masked_scatter.default, floats(4, 5), mask, source)
    check(aten.masked_scatter.default, floats(4, 5, 3), mask.unsqueeze(-1).expand(4, 5, 3), floats(60))
    check(aten.masked_scatter.default, floats(5), mask, source)
    check(aten.masked_scatter.default, floats(4, 5), torch.tensor(False), floats(1))
    check(aten.masked_scatter.default, floats(4, 5), torch.tensor(True), floats(20))


def test_accumulation_at_indices() -> None:
    rows, columns = indices(9, high=6), indices(9, high=7) - 7
    check(aten.index_put.default, floats(6, 7), [rows, columns], floats(9), True)
    check(aten.index_put.default, floats(5, 6, 7), [None, rows], floats(7), True)
    check(aten.index_put.default, floats(5, 6, 7), [rows[:1] % 5], floats(1, 6, 7), True)


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_mask_takes_one_value(accumulate: bool) -> None:
    data, mask = floats(4, 5, 6), numbers(4, 5) > 0
    for values in (floats(1)[0], floats(6), floats(1, 6)):
        check(aten.index_put.default, data, [mask], values, accumulate)
    check(aten.index_put.default, data, [None, mask[0]], floats(4, 1, 6), accumulate)
    many = floats(int(mask.sum()), 6)
    assert scattering.index_put(data, [mask], many, accumulate) is NotImplemented


def test_a_table_too_large_for_comparisons_is_refused() -> None:
    half, long = "torch.float16", "torch.int64"
    specs = (
        TensorSpec((128256, 4096), (4096, 1), 0, half),
        TensorSpec((12,), (1,), 0, long),
        TensorSpec((12, 4096), (4096, 1), 0, half),
    )
    refs = tuple(map(TensorRef, range(3)))
    call = OpCall("torch.index_add", specs, (refs[0], 0, refs[1], refs[2]))
    assert math.prod(specs[2].shape) * specs[0].shape[0] > scattering.MAX_PAIRS
    try:
        captured = capture(call)
    except ExternKernel:
        return
    # Otherwise Inductor's own atomics, which the next room refuses.
    assert any("atomic_add" in kernel.source for kernel in captured.kernels)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, INF])
def test_distances(p: float) -> None:
    check(aten._cdist_forward.default, floats(2, 5, 4), floats(2, 6, 4, seed=2), p, None)
    check(aten._pdist_forward.default, floats(6, 4), p)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
def test_windows_as_columns_and_back(stride: int, dilation: int, padding: int) -> None:
    sides = ([3, 2], [dilation] * 2, [padding] * 2, [stride] * 2)
    data = floats(2, 3, 9, 11)
    check(aten.im2col.default, data, *sides)
    check(aten.im2col.default, data[:, :, 1:, 2:], *sides)
    check(aten.im2col.default, data.transpose(2, 3), *sides)
    check(aten.col2im.default, aten.im2col(data, *sides), [9, 11], *sides)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_bags(mode: int, last: bool) -> None:
    weight, index = floats(10, 4), indices(9, high=10)
    offsets = torch.tensor([0, 3, 3, 7] + [9] * last)
    args = (weight, index, offsets, False, mode, False, None, last, 2)
    got, want = decompositions.OURS[aten._embedding_bag.default](*args), aten._embedding_bag(*args)
    torch.testing.assert_close(got[0], want[0])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(13, 5), (7, 9), (1, 20)])
def test_interpolation(align_corners: bool, size: tuple[int, int]) -> None:
    data = floats(2, 3, 7, 9)
    for name in ("upsample_bilinear2d", "upsample_bicubic2d"):
        check(getattr(aten, name).default, data, size, align_corners)
    for name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
        check(getattr(aten, name).default, data, size, False)


def test_nearest_by_whole_factors_only() -> None:
    check(aten.upsample_nearest2d.default, floats(1, 2, 4, 5), [8, 15])
    assert decompositions.OURS[aten.upsample_nearest2d.default](floats(1, 2, 4, 5), [9, 15]) is NotImplemented


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(9, 1, 4), (7, 3, 2), (6, 4, 3)])
def test_large_padded_windows(kernel: int, stride: int, padding: int, ceil_mode: bool) -> None:
    for extent in (16, 17, 20):
        sides = ([kernel], [stride], [padding], [1], ceil_mode)
        check(aten.max_pool2d_with_indices.default, floats(1, 2, extent, 20), *sides)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
@pytest.mark.parametrize(("padding", "ceil_mode"), [(1, False), (1, True), (0, True)])
def test_large_padded_windows_of_rank_3(dtype: torch.dtype, padding: int, ceil_mode: bool) -> None:
    data = torch.randperm(6 * 7 * 8, generator=torch.Generator().manual_seed(0)).reshape(1, 1, 6, 7, 8) - 400
    args = ([3], [2], [padding], [1], ceil_mode)
    check(aten.max_pool3d_with_indices.default, data.to(dtype), *args)


def test_windows_inside_of_memory_are_left_to_inductor() -> None:
    data = floats(1, 1, 7, 7, 7)
    assert pooling.max_pool(3, data, [3], [2]) is NotImplemented
    assert pooling.max_pool(3, data, [2], [2], [1]) is NotImplemented


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("count_include_pad", [False, True])
@pytest.mark.parametrize("divisor", [None, 5])
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(9, 1, 4), (7, 3, 2), (6, 4, 3), (6, 2, 0)])
def test_averages_of_large_windows(
    kernel: int, stride: int, padding: int, divisor: int | None, count_include_pad: bool, ceil_mode: bool
) -> None:
    for extent in (16, 17, 20):
        sides = ([kernel], [stride], [padding], ceil_mode, count_include_pad, divisor)
        check(aten.avg_pool2d.default, floats(1, 2, extent, 20), *sides)


def test_averages_of_other_ranks_and_sides() -> None:
    check(aten.avg_pool2d.default, floats(2, 16, 20), [9, 7], [], [1, 3])
    for options in ((False, True), (True, False)):
        check(aten.avg_pool3d.default, floats(1, 2, 7, 8, 9), [3, 4, 5], [2], [1], *options)
    # Half types are summed in float32 and rounded once.
    ones = torch.ones(1, 1, 70, 70, dtype=torch.float16)
    assert float(decompositions.OURS[aten.avg_pool2d.default](ones, [64])) == 1
    # Inductor writes small windows out itself.
    assert decompositions.OURS[aten.avg_pool2d.default](floats(1, 2, 9, 9), [5]) is NotImplemented


@pytest.mark.parametrize("size", [(1, 3), (2, 2), (7, 5), (16, 20)])
def test_averages_of_adaptive_windows(size: tuple[int, int]) -> None:
    check(aten._adaptive_avg_pool3d.default, floats(2, 3, 7, 16, 20), [3, *size])
    if max(size) < 5:
        check(aten._adaptive_avg_pool2d.default, floats(3, 16, 20), size)
    else:  # Inductor writes small windows out itself.
        found = decompositions.OURS[aten._adaptive_avg_pool2d.default](floats(3, 16, 20), size)
        assert found is NotImplemented


def test_composite_ops_run_as_their_parts() -> None:
    for name, part in (("torch._is_all_true", "aten._is_all_true"), ("torch._is_any_true", "aten._is_any")):
        call = OpCall(name, (TensorSpec((3, 7), (7, 1), 0, "torch.bool"),), (TensorRef(0),))
        (kernel,) = capture(call).kernels
        assert any(origin.startswith(part) for origin in kernel.origins)
    assert aten.bernoulli.Tensor not in decompositions.table()
    assert aten._linalg_svd.default not in decompositions.table()


def test_a_part_of_something_larger_is_copied() -> None:
    spec = TensorSpec((2, 36, 144), (36 * 144, 144, 1), 0, "torch.float32")
    call = OpCall("torch.nn.functional.fold", (spec,), (TensorRef(0), (12, 12), 3, 1, 1))
    captured = capture(call)
    assert captured.buffers[-1].spec.stride == (576, 144, 12, 1)
    assert captured.buffers[-1].base is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_sums_of_batched_products(dtype: torch.dtype) -> None:
    bias, left, right = (
        numbers(4, 6, dtype=dtype),
        numbers(3, 4, 5, dtype=dtype),
        numbers(3, 5, 6, dtype=dtype),
    )
    check(aten.addbmm.default, bias, left, right, beta=1.7, alpha=2.2)
    check(aten.baddbmm.default, bias, left, right, beta=1.7, alpha=0.2)


def test_products_of_three() -> None:
    check(aten._trilinear.default, floats(2, 3), floats(2, 4), floats(5, 3, 4), [1, 3], [1, 2], [0], [2, 3])


def test_floors_of_quotients() -> None:
    dividends = torch.tensor([1.0, -1.0, 6.0, 0.0, -7.0, 1.0, INF, NAN, 0.3], dtype=torch.float32)
    for divisor in (0.1, -0.1, 0.0, 3.0):
        check(aten.div.Tensor_mode, dividends, torch.tensor(divisor), rounding_mode="floor")
        check(aten.div.Scalar_mode, dividends, divisor, rounding_mode="floor")
    assert division.floor_divide(dividends, 2.0, rounding_mode="trunc") is NotImplemented
    assert division.floor_divide(indices(3, high=9), 2, rounding_mode="floor") is NotImplemented


def test_decimals() -> None:
    data = torch.tensor([1.916, -2.5005, 1234.5678, 0.0004, INF])
    check(aten.round.decimals, data, decimals=3)
    check(aten.round.decimals, data, decimals=-2)
    assert division.round_decimals(data, decimals=0) is NotImplemented


@pytest.mark.parametrize("packet", [aten.any, aten.all])
def test_any_and_all_of_bytes_are_bytes(packet: Any) -> None:
    data = indices(4, 3, high=2).to(torch.uint8) * 4
    check(packet.default, data)
    check(packet.dim, data, 1, True)
    check(packet.dims, data, [0, 1])
    assert decompositions.EXTENDED[packet.default](data.bool()) is NotImplemented
