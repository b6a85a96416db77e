from __future__ import annotations

import pytest
import torch

from tracer.validate.inputs import PERIOD, floats_without_memory, random_tensor
from tracer.validate.oracle import rounded, widened


def make(shape, stride, dtype, seed=0, **options):
    return random_tensor(shape, stride, dtype, generator=torch.Generator().manual_seed(seed), **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_floats_make_errors_visible(dtype):
    x = make((64, 64), (64, 1), dtype)
    assert x.dtype == dtype
    assert float(x.abs().min()) >= 0.25
    assert float(x.abs().max()) < 2
    assert 0.4 < float((x > 0).float().mean()) < 0.6
    assert torch.equal(x, make((64, 64), (64, 1), dtype))
    assert not torch.equal(x, make((64, 64), (64, 1), dtype, seed=1))
    assert bool((make((64,), (1,), dtype, positive=True) > 0).all())


def test_a_long_contraction_stays_within_float16():
    x = make((1, 14336), (14336, 1), torch.float16)
    w = make((256, 14336), (14336, 1), torch.float16, seed=1)
    result = x.double() @ w.double().T
    assert float(result.abs().max()) < 65504 / 16
    assert float(result.abs().median()) > 10


def test_values_are_the_same_on_every_machine():
    # Drawn as integers and exact in their dtype: nothing is left to a machine's rounding.
    for dtype, steps in ((torch.float32, 1 << 20), (torch.float16, 1024), (torch.bfloat16, 128)):
        values = make((600,), (1,), dtype).double()
        assert torch.equal(values * steps, (values * steps).round())
        assert float(values.abs().min()) >= 0.25
        assert float(values.abs().max()) < 2


def test_ties_are_rare_where_the_dtype_can_tell_values_apart():
    assert make((600,), (1,), torch.float32).unique().numel() == 600


def test_strides_and_gaps():
    x = make((2, 3, 4), (48, 4, 12), torch.float16)
    assert x.stride() == (48, 4, 12)
    assert x.storage_offset() > 0
    gaps = x.as_strided((24,), (1,), x.storage_offset())
    assert bool((gaps != 0).all())
    expanded = make((3, 4), (0, 1), torch.float16)
    assert torch.equal(expanded[0], expanded[2])


def test_integers_stay_in_range_and_distinct_ones_differ():
    x = make((7, 12), (12, 1), torch.int64, high=13)
    assert int(x.min()) >= 0
    assert int(x.max()) < 13
    index = make((12,), (1,), torch.int64, high=13, distinct=True)
    assert len(set(index.tolist())) == 12
    assert set(index.tolist()) <= set(range(13))
    rows = make((7, 12), (12, 1), torch.int64, high=13, distinct=True)
    assert all(len(set(row)) == 12 for row in rows.tolist())
    assert set(make((50,), (1,), torch.bool).tolist()) == {True, False}


@pytest.mark.parametrize(("shape", "high"), [((5, 5), 10), ((2, 3, 4), 12), ((5, 20), 10), ((7, 12), 13)])
def test_distinct_integers_differ_along_every_dim_that_is_no_longer_than_there_are_values(shape, high):
    x = make(shape, torch.empty(shape).stride(), torch.int64, high=high, distinct=True)
    assert int(x.min()) >= 0
    assert int(x.max()) < high
    for dim, extent in enumerate(shape):
        lines = x.movedim(dim, -1).reshape(-1, extent).tolist()
        assert all(len(set(line)) == min(extent, high) for line in lines)
    assert x.flatten().unique().numel() > high // 2


def test_the_places_of_a_plane_are_distinct_where_all_planes_together_have_too_many():
    x = make((2, 3, 3, 4), (36, 12, 4, 1), torch.int64, high=15, distinct=True)
    assert all(plane.unique().numel() == 12 for plane in x.view(6, 12))
    assert not torch.equal(x[0, 0], x[0, 1])


def test_positive_integers_are_never_zero():
    x = make((2000,), (1,), torch.int64, positive=True)
    assert int(x.min()) == 1
    assert int(x.max()) == 99
    assert int(make((2000,), (1,), torch.int64).min()) == 0
    assert set(make((50,), (1,), torch.bool, positive=True).tolist()) == {True, False}


def test_huge_tensors_repeat_a_block_of_prime_length():
    assert all(PERIOD % factor for factor in range(2, 1024))
    x = make((3, 1 << 20), (1 << 20, 1), torch.float16)
    assert torch.equal(x.view(-1)[PERIOD : PERIOD + 9], x.view(-1)[:9])
    assert not torch.equal(x[0], x[1])


def test_floats_can_be_left_out():
    with floats_without_memory():
        x = make((1 << 20, 1 << 20), (1 << 20, 1), torch.float16)
        index = make((4,), (1,), torch.int64, high=9)
    assert x.shape == (1 << 20, 1 << 20)
    assert int(index.max()) < 9


def test_both_halves_of_an_oracle():
    x = make((2, 3), (1, 2), torch.float16)
    wide = widened({"x": x, "i": torch.tensor([1])})
    assert wide["x"].dtype == torch.float64
    assert wide["x"].stride() == (1, 2)
    assert wide["i"].dtype == torch.int64
    wide["x"].zero_()
    assert bool((x != 0).all())
    layouts = {"a": ((2,), (1,), torch.float16), "x": ((2, 3), (1, 2), torch.float16)}
    assert [t.dtype for t in rounded({"k": wide["x"]}, wide, layouts, ("x",))] == [torch.float16]
    assert torch.equal(rounded(None, wide, layouts, ("x",))[0], wide["x"].half())
    views = {"v": ("a", (1,), (1,), torch.float32, 1)}
    assert rounded([wide["x"], wide["x"]], wide, layouts, ("a", "v"), views)[1].dtype == torch.float32


def test_a_scale_multiplies_exactly():
    def made(**bounds: float) -> torch.Tensor:
        return random_tensor(
            (300,), (1,), torch.float16, generator=torch.Generator().manual_seed(3), **bounds
        )

    assert torch.equal(made(scale=2.0**-7) * 2**7, made())
    assert float(made(scale=2.0**-7).abs().max()) < 2.0**-6


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float16, 6000), (torch.bfloat16, 700), (torch.int64, 60)])
def test_distinct_values_differ_along_every_dim(dtype, rows):
    x = make((3, rows, 5), (rows * 5, 5, 1), dtype, distinct=True)
    for dim in range(3):
        lines = x.movedim(dim, -1).reshape(-1, x.shape[dim]).tolist()
        assert all(len(set(line)) == len(line) for line in lines)
    if dtype.is_floating_point:
        assert float(x.abs().min()) >= 0.25
        assert float(x.abs().max()) < 2
        assert 0.4 < float((x > 0).float().mean()) < 0.6
        assert bool((make((700,), (1,), dtype, distinct=True, positive=True) > 0).all())
    assert torch.equal(x, make((3, rows, 5), (rows * 5, 5, 1), dtype, distinct=True))


def test_more_values_than_the_dtype_has_repeat():
    x = make((2, 5000), (5000, 1), torch.float16, distinct=True)
    assert x.unique().numel() == 6143
    assert torch.equal(x.flatten()[6143:], x.flatten()[: 10000 - 6143])
    assert make((6000,), (1,), torch.float16).unique().numel() < 6000


@pytest.mark.parametrize(
    ("dtype", "extent"), [(torch.float16, 6144), (torch.float16, 8400), (torch.bfloat16, 8400)]
)
def test_long_rows_of_distinct_values_take_more_binades(dtype, extent):
    x = make((2, extent), (extent, 1), dtype, distinct=True)
    assert all(row.unique().numel() == extent for row in x)
    assert 0 < float(x.abs().min()) < 0.25
    assert float(x.abs().max()) < 2
    assert make((40000,), (1,), dtype, distinct=True).unique().numel() < 40000


def test_ordered_values_ascend_along_the_last_dim():
    for dtype in (torch.float32, torch.float16, torch.int64):
        x = make((3, 4, 20), (80, 20, 1), dtype, ordered=True)
        assert bool((x.diff(dim=-1) >= 0).all())
        assert bool((x.diff(dim=-1) > 0).any())
        assert not bool((make((3, 4, 20), (80, 20, 1), dtype).diff(dim=-1) >= 0).all())
    # Rows that are one row in memory, and columns.
    assert bool((make((3, 20), (0, 1), torch.float32, ordered=True).diff(dim=-1) >= 0).all())
    assert bool((make((3, 20), (1, 3), torch.float32, ordered=True).diff(dim=-1) >= 0).all())
    assert make((20,), (1,), torch.int64, high=20, distinct=True, ordered=True).tolist() == list(range(20))
