"""Every plan obeys the target; contractions have one wide axis per role; what fits nowhere is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy
import torch
import torch.nn.functional as F  # noqa: N812
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.rewrite import rewrite
from tracer.rewrite.access import accesses_of, forced_single
from tracer.rewrite.axes import Axis
from tracer.rewrite.contract import axes_of, contraction
from tracer.rewrite.errors import NoPlan, SplitReduction, SteppedReduction
from tracer.rewrite.ir import Compute, Kernel, Load, Reduce, Scan, Statement, Store
from tracer.rewrite.plan import Tiling, plan, power_of_two_at_least
from tracer.rewrite.types import BYTES
from tracer.target import SPYRE, SpyreTarget


def row_major(axes: tuple[Axis, ...]) -> sympy.Expr:
    total, stride = sympy.Integer(0), 1
    for axis in reversed(axes):
        total += stride * axis.symbol
        stride *= axis.extent
    return total


def planned(
    axes: tuple[Axis, ...], body: tuple[Statement, ...], target: SpyreTarget = SPYRE, **fixed: int
) -> tuple[Tiling, Kernel]:
    kernel = Kernel("kernel", (), (), body)
    varies = axes_of(kernel, axes)
    params = {s.param for s in body if isinstance(s, Load | Store)}
    size = math.prod(axis.extent for axis in axes)
    accesses = accesses_of(kernel, axes, dict.fromkeys(params, "float16"), dict.fromkeys(params, size))
    single = forced_single(accesses, kernel, varies)
    return plan(kernel, axes, accesses, varies, single, target, fixed or None), kernel


def pointwise(axes: tuple[Axis, ...]) -> tuple[Statement, ...]:
    load = Load("tmp0", "in_ptr0", row_major(axes), "float16")
    return load, Compute("tmp1", "exp", ("tmp0",), "float32"), Store("out_ptr0", row_major(axes), "tmp1")


def reduction(axes: tuple[Axis, ...], kind: str = "sum") -> tuple[Statement, ...]:
    load = Load("tmp0", "in_ptr0", row_major(axes), "float16")
    parallel = tuple(axis for axis in axes if not axis.reduced)
    return load, Reduce("tmp1", kind, ("tmp0",), "float32"), Store("out_ptr0", row_major(parallel), "tmp1")


def matmul(axes: tuple[Axis, ...]) -> tuple[Statement, ...]:
    batch, m, n, k = axes
    return (
        Load("tmp0", "in_ptr0", row_major((batch, m, k)), "float16"),
        Load("tmp1", "in_ptr1", row_major((batch, n, k)), "float16"),
        Reduce("tmp2", "dot", ("tmp0", "tmp1"), "float32"),
        Store("out_ptr0", row_major((batch, m, n)), "tmp2"),
    )


def named_bytes(tiling: Tiling, kernel: Kernel, axes: tuple[Axis, ...]) -> int:
    """Most bytes of one statement's operands and result, which in these kernels are all that is alive."""
    varies = axes_of(kernel, axes)
    size = {
        s.name: math.prod(min(tiling.blocks[a], a.extent) for a in varies[s.name]) * BYTES[s.dtype]
        for s in kernel.body
        if not isinstance(s, Store)
    }
    return max(sum(size[str(name)] for name in {s.name, *s.operands} if name) for s in kernel.body)


def assert_legal(tiling: Tiling, kernel: Kernel, axes: tuple[Axis, ...]) -> None:
    assert tiling.lx_bytes <= SPYRE.lx_bytes
    assert named_bytes(tiling, kernel, axes) <= SPYRE.lx_bytes // 2  # the other half is for the next tile
    assert tiling.tiles == math.prod(-(-a.extent // tiling.blocks[a]) for a in axes if not a.reduced)
    for axis, block in tiling.blocks.items():
        assert block == power_of_two_at_least(block)
        if not (axis.reduced and any(s.kind == "dot" for s in kernel.body if isinstance(s, Reduce))):
            assert block <= power_of_two_at_least(axis.extent)
        if axis.reduced and not tiling.looped:
            assert block >= axis.extent


SIZES = st.integers(2, 5000) | st.sampled_from([2, 3, 127, 128, 129, 4096, 14336, 131071])


@settings(max_examples=60, deadline=None)
@given(st.lists(SIZES, min_size=1, max_size=3))
def test_pointwise_plans(extents: list[int]):
    axes = tuple(Axis(f"x{i}", extent, False) for i, extent in enumerate(extents))
    assert_legal(*planned(axes, pointwise(axes)), axes)


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(2, 2_000_000), st.sampled_from(["sum", "max"]))
def test_reduction_plans(rows: int, columns: int, kind: str):
    axes = (Axis("x0", rows, False), Axis("r0", columns, True))
    tiling, kernel = planned(axes, reduction(axes, kind))
    assert_legal(tiling, kernel, axes)
    # 2 bytes an element, half of the scratchpad, and one tensor of Triton has 2**20 elements at most
    assert tiling.looped is (columns > 2**19 - 2 or power_of_two_at_least(columns) > 2**20)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), SIZES, SIZES, st.integers(2, 20_000))
def test_contraction_plans(batch: int, m: int, n: int, k: int):
    axes = (Axis("x0", batch, False), Axis("x1", m, False), Axis("x2", n, False), Axis("r0", k, True))
    tiling, kernel = planned(axes, matmul(axes))
    assert_legal(tiling, kernel, axes)
    assert tiling.looped
    dot = kernel.statement("tmp2")
    assert isinstance(dot, Reduce)
    roles = contraction(dot, axes_of(kernel, axes), axes)
    for role in (roles.batch, roles.m, roles.n):
        assert sum(tiling.blocks[axis] > 1 for axis in role) <= 1
    assert sum(tiling.blocks[axis] > 1 for axis in roles.k) == 1
    assert tiling.blocks[axes[3]] >= 16  # the least K of `tl.dot`


@pytest.mark.parametrize("shape", [(1, 12, 4096), (1, 12, 14336), (32, 2048), (7, 13, 17)])
def test_kernels_use_the_cores_and_no_more(shape: tuple[int, ...], rewritten: Callable):
    for kernel in rewritten(F.silu, torch.empty(shape, dtype=torch.float16)):
        assert kernel.grid == min(kernel.plan.tiles, SPYRE.cores) <= 32
        assert kernel.parameters[-1].name == "CORES"
        assert kernel.parameters[-1].value == kernel.grid


def test_large_pointwise_work_keeps_every_core_busy():
    axes = (Axis("x0", 12 * 14336, False),)
    tiling, _ = planned(axes, pointwise(axes))
    busiest = -(-tiling.tiles // SPYRE.cores)
    assert tiling.tiles >= SPYRE.cores
    assert tiling.tiles / SPYRE.cores > 0.8 * busiest


def test_fixed_blocks_are_taken():
    axes = (Axis("x0", 100, False), Axis("r0", 64, True))
    tiling, _ = planned(axes, reduction(axes), x0=4, r0=64)
    assert list(tiling.blocks.values()) == [4, 64]
    looped, _ = planned(axes, reduction(axes), x0=4, r0=16)
    assert looped.looped


def test_a_scan_that_does_not_fit_is_refused():
    def scanned(extent: int) -> Tiling:
        axes = (Axis("x0", 2, False), Axis("r0", extent, True))
        load = Load("tmp0", "in_ptr0", row_major(axes), "float16")
        store = Store("out_ptr0", row_major(axes), "tmp1")
        return planned(axes, (load, Scan("tmp1", "add", ("tmp0",), "float32"), store))[0]

    assert max(scanned(1000).blocks.values()) == 1024
    with pytest.raises(NoPlan, match="exceeds half of the scratchpad"):
        scanned(1_000_000)


def test_a_search_along_a_stepped_axis_is_refused():
    axes = (Axis("x0", 2, False), Axis("r0", 8, True))
    index = row_major(axes).subs(axes[1].symbol, 7 - axes[1].symbol)
    body = reduction(axes, "argmax")
    falling = (replace(body[0], index=index), *body[1:])
    with pytest.raises(SteppedReduction, match="`r0`"):
        planned(axes, falling)
    assert planned(axes, body)[0].blocks[axes[1]] == 8


@pytest.mark.parametrize("kind", ["argmax", "cumsum"])
def test_a_search_over_several_axes_is_refused(kind: str):
    axes = (Axis("x0", 3, False), Axis("r0", 6, True), Axis("r1", 8, True))
    load, found, store = reduction(axes, kind)
    if kind == "cumsum":
        found = Scan("tmp1", "add", ("tmp0",), "float32")
    with pytest.raises(SplitReduction, match="r0 and r1 as one"):
        planned(axes, (load, found, store))
    assert planned(axes, reduction(axes, "max"))[0].blocks[axes[2]] == 8


def test_a_sum_along_a_stepped_axis_loops():
    axes = (Axis("x0", 2, False), Axis("r0", 8, True))
    index = row_major(axes).subs(axes[1].symbol, 7 - axes[1].symbol)
    body = reduction(axes)
    tiling, _ = planned(axes, (replace(body[0], index=index), *body[1:]))
    assert (tiling.looped, tiling.blocks[axes[1]]) == (True, 1)


def test_a_coordinate_has_32_bits():
    axes = (Axis("x0", 2**31 + 11, False),)
    with pytest.raises(NoPlan, match="32 bits"):
        planned(axes, pointwise(axes))


def test_a_scratchpad_too_small_for_one_lane_is_refused(captured: Callable):
    op = captured(F.silu, torch.empty(64, dtype=torch.float16))
    with pytest.raises(NoPlan):
        rewrite(op, replace(SPYRE, lx_bytes=8))
    assert rewrite(op, replace(SPYRE, lx_bytes=4096))


def test_at_most_five_descriptor_dims(rewritten: Callable):
    for permutation in [(4, 2, 0, 3, 1), (5, 2, 0, 3, 1, 4)]:
        x = torch.empty((2, 3, 4, 5, 6, 7)[: len(permutation)], dtype=torch.float16)
        [kernel] = rewritten(lambda x, p=permutation: x.permute(p).contiguous(), x)
        shapes = [line for line in kernel.source.splitlines() if "block_shape=" in line]
        assert shapes
        assert all(line.split("block_shape=")[1].count(",") <= 5 for line in shapes)
        assert any(p.name.startswith("in0_step_") for p in kernel.parameters) or len(permutation) == 5
