"""What one core reaches of a buffer: by the formula, by brute force, and in the text of kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.rewrite.access import Access, Dim
from tracer.rewrite.axes import Axis
from tracer.rewrite.ir import Load
from tracer.rewrite.spans import neighbours_reach, wide_accesses
from tracer.target import SPYRE

MIB = 1 << 20
HALF = torch.float16


def access(dims: tuple[Dim, ...]) -> Access:
    return Access(
        Load("tmp0", "in_ptr0", sum((d.axis.symbol for d in dims if d.axis), 0), "float16"), dims, "float16"
    )


def by_brute_force(access: Access, axes: list[Axis], blocks: dict[Axis, int], cores: int) -> int:
    """Bytes from the first to the last element of the tiles that a core has, the widest core's."""
    counts = [-(-axis.extent // blocks[axis]) for axis in axes]
    tiles = list(itertools.product(*map(range, counts)))
    run = -(-len(tiles) // cores)
    widest = 0
    for core in range(cores):
        ends = [0, 0]
        mine = tiles[core * run : (core + 1) * run]
        for dim in access.dims:
            assert dim.axis is not None
            digits = [tile[axes.index(dim.axis)] for tile in mine] if dim.axis in axes else []
            block = blocks[dim.axis]
            lows = [digit * block for digit in digits] or [0]
            highs = [min(digit * block + block, dim.axis.extent) for digit in digits] or [dim.axis.extent]
            ends[0] += min(lows) * dim.stride
            ends[1] += (max(highs) - 1) * dim.stride
        widest = max(widest, (ends[1] - ends[0] + 1) * access.bytes if mine else 0)
    return widest


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(0, 50)), min_size=1, max_size=3),
    st.integers(1, 9),
    st.integers(1, 8),
)
def test_reach_equals_brute_force(extents: list[tuple[int, int, int]], reduced: int, cores: int):
    axes = [Axis(f"x{i}", extent, False) for i, (extent, _, _) in enumerate(extents)]
    inner = Axis("r0", reduced, True)
    blocks = {axis: 1 << power for axis, (_, power, _) in zip(axes, extents, strict=True)} | {inner: 4}
    dims = [Dim(stride, axis, extent=axis.extent) for axis, (_, _, stride) in zip(axes, extents, strict=True)]
    one = access((*dims, Dim(1, inner, extent=reduced)))
    sizes = {axis: np.array([block]) for axis, block in blocks.items()}
    assert neighbours_reach(one, axes, sizes, cores)[0] == by_brute_force(one, axes, blocks, cores)


def test_reach_of_the_head_of_a_language_model():
    m, n, k = Axis("x0", 12, False), Axis("x1", 128256, False), Axis("r0", 4096, True)
    weight = access((Dim(4096, n, extent=128256), Dim(1, k, extent=4096)))
    blocks = {m: np.array([16, 16]), n: np.array([2048, 512]), k: np.array([128, 128])}
    # Two tiles of 2048 rows of 8 KiB on a core, or eight of 512.
    assert neighbours_reach(weight, [m, n], blocks, 32).tolist() == [32 * MIB, 32 * MIB]
    assert wide_accesses([weight], SPYRE) == (weight,)


def test_a_buffer_of_exactly_the_span_is_not_wide():
    row = Axis("x0", 128 * MIB, False)
    assert wide_accesses([access((Dim(1, row, extent=row.extent),))], SPYRE) == ()
    more = Axis("x0", 128 * MIB + 1, False)
    assert len(wide_accesses([access((Dim(1, more, extent=more.extent),))], SPYRE)) == 1


def test_rows_that_data_choose_are_left_out():
    row, column = Axis("x0", 12, False), Axis("x1", 4096, False)
    gather = access((Dim(4096, value="tmp0", extent=128256), Dim(1, column, extent=4096)))
    assert wide_accesses([gather], SPYRE) == ()
    assert row not in [dim.axis for dim in gather.dims]


def test_joined_axes_count(rewritten: Callable):
    steps = Dim(1, extent=40, steps=((Axis("x0", 4, False), 10 * MIB), (Axis("x1", 7, False), MIB)))
    # 3 * 10 MiB + 6 * 1 MiB elements of two bytes.
    assert wide_accesses([access((steps,))], SPYRE) == ()
    twice = Dim(4, extent=40, steps=steps.steps)
    assert len(wide_accesses([access((twice,))], SPYRE)) == 1


@pytest.mark.parametrize(
    ("rows", "near"), [(32768, False), (32769, True)], ids=["256 MiB of weights", "one row more"]
)
def test_tiles_are_dealt_to_neighbours_where_a_buffer_is_wide(rewritten: Callable, rows: int, near: bool):
    [kernel] = rewritten(F.linear, torch.empty(1, 4096, dtype=HALF), torch.empty(rows, 4096, dtype=HALF))
    assert ("for tile in tl.range(first, tl.minimum(first + core_tiles, tiles)):" in kernel.source) is near
    assert ("for tile in tl.range(tl.program_id(0), tiles, CORES):" in kernel.source) is not near
    reaches = [reason for reason in kernel.plan.reasons if reason.startswith("neighbouring tiles")]
    assert len(reaches) == near


@pytest.mark.parametrize("rows", [12, 512, 4096])
def test_blocks_are_chosen_so_that_a_core_reaches_its_tiles(rewritten: Callable, rows: int):
    # At 4096 rows the result alone has 1 GB: wide and narrow tiles are out, whatever they cost.
    weights = torch.empty(128256, 4096, dtype=HALF)
    [kernel] = rewritten(F.linear, torch.empty(rows, 4096, dtype=HALF), weights)
    [reach] = [reason for reason in kernel.plan.reasons if reason.startswith("neighbouring tiles")]
    assert int(reach.split("over ")[1].split()[0]) <= SPYRE.span_bytes
