"""Where the iteration space is cut, and what each region still masks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Index, Kernel, Load, Store
from tracer.rewrite.split import split

Regions = list[tuple[tuple[Axis, ...], Kernel]]


@pytest.fixture
def regions(refined: Callable) -> Callable[..., Regions]:
    def run(function: Callable[..., object], *tensors: torch.Tensor) -> Regions:
        axes, kernel = refined(function, *tensors)
        return split(kernel, axes)

    return run


def extents(found: Regions) -> list[str]:
    return [" ".join(f"{axis.name}:{axis.extent}" for axis in axes) for axes, _ in found]


def indices(kernel: Kernel, kind: type) -> list[str]:
    return [str(s.index) for s in kernel.body if isinstance(s, kind)]


def test_without_masks_there_is_one_region(regions):
    assert extents(regions(F.silu, torch.empty(4, 20))) == ["x0:80"]


def test_padding_is_cut_at_both_ends_of_the_row(regions):
    found = regions(lambda x: F.pad(x, (2, 3)), torch.empty(4, 20))
    assert extents(found) == ["x0:4 x1:2", "y0:4 y1:20", "z0:4 z1:3"]
    left, middle, right = (kernel for _, kernel in found)
    assert indices(left, Load) == indices(right, Load) == []  # constants
    assert [s.mask for s in middle.body if isinstance(s, Load)] == [None]
    assert indices(middle, Store) == ["25*y0 + y1 + 2"]


def test_a_mask_along_an_outer_axis_cuts_nothing(regions):
    found = regions(lambda x: F.pad(x, (0, 0, 1, 0)), torch.empty(2, 4, 20))
    assert len(found) == 1
    assert [s.mask is not None for s in found[0][1].body if isinstance(s, Load)] == [True]


def test_wrap_around_is_cut_where_it_wraps(regions):
    found = regions(lambda x: x.roll(3, 1), torch.empty(4, 20))
    assert extents(found) == ["x0:4 x1:3", "y0:4 y1:17"]
    assert [indices(kernel, Load) for _, kernel in found] == [["20*x0 + x1 + 17"], ["20*y0 + y1"]]


def test_no_region_computes_with_a_wrapped_index(regions):
    found = regions(lambda x: x.roll(3, 1), torch.empty(4, 20))
    assert not any(
        isinstance(s, Index) for _, kernel in found for s in kernel.body if s.name.startswith("tmp_i")
    )


def test_regions_cover_the_axis(regions):
    for left, right in [(1, 0), (0, 5), (7, 7)]:
        found = regions(lambda x, p=(left, right): F.pad(x, p), torch.empty(4, 20))
        assert sum(axes[-1].extent for axes, _ in found) == 20 + left + right
