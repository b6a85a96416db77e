"""Which literals of a kernel become runtime parameters, and which stay numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.rewrite.access import accesses_of
from tracer.rewrite.axes import Axis
from tracer.rewrite.extents import name_extents
from tracer.rewrite.ir import Compute, Const, Kernel, Load, Statement, Store
from tracer.rewrite.signature import descriptors_of

LONG = torch.int64
X0 = Axis("x0", 12, False)


def half(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=torch.float16)


def indices(*shape: int) -> torch.Tensor:
    return torch.empty(shape, dtype=LONG)


# The same call at two sizes: its one source names what differs between them.
SCALED: dict[str, tuple[Callable, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...], str]] = {
    "wrap of an index": (
        lambda x, i: x[i],
        (half(100, 64), indices(12)),
        (half(37, 64), indices(7)),
        "tmp0 + in1_size_d0",
    ),
    "wrap of two": (
        lambda x, i, j: x[i, j],
        (half(100, 64), indices(12), indices(12)),
        (half(37, 40), indices(7), indices(7)),
        "tmp6 + in2_size_d1",
    ),
    "wrap of a stored index": (
        lambda c, i, v: c.index_copy_(2, i, v),
        (half(1, 8, 2048, 128), indices(12), half(1, 8, 12, 128)),
        (half(1, 8, 300, 128), indices(5), half(1, 8, 5, 128)),
        "tmp0 + out0_size_d1",
    ),
    "ends of a padded read": (
        lambda x: F.pad(x, (0, 0, 3, 2)),
        (half(2, 10, 32),),
        (half(2, 17, 32),),
        "x1 < in0_low_x1 + in0_size_x1",
    ),
    "clamp to the last element": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (half(1, 8, 14, 14),),
        (half(1, 8, 20, 20),),
        "in0_size_d1 - 1",
    ),
}


@pytest.mark.parametrize("name", SCALED)
def test_one_source_serves_two_extents(name: str, at_two_sizes: Callable):
    function, traced, other, text = SCALED[name]
    kernels, again = at_two_sizes(function, traced, other)
    assert text in kernels[-1].source
    assert [kernel.source for kernel in again] == [kernel.source for kernel in kernels]


def test_the_period_of_a_rolled_axis_is_its_extent_and_the_shift_stays(source_of: Callable):
    assert "(x0 + 11) % in0_size_d0" in source_of(lambda x: x.roll(3, 0), half(14, 32))


def named(body: list[Statement], coordinate: str, numel: int = 6400, bound: int = 100) -> dict[str, str]:
    """Text of every literal that is named, by statement, for a gather of rows of 64 at `coordinate`."""
    index = Load("tmp0", "in_ptr0", X0.symbol, "int64")
    row = 64 * sympy.Symbol(coordinate, integer=True)
    tail: list[Statement] = [Load("tmp9", "in_ptr1", row, "float16"), Store("out_ptr0", X0.symbol, "tmp9")]
    kernel = Kernel(
        "kernel", ("in_ptr0", "in_ptr1", "out_ptr0"), (), (index, *body, *tail), ((coordinate, bound),)
    )
    memory = {"in_ptr0": "int64", "in_ptr1": "float16", "out_ptr0": "float16"}
    elements = {"in_ptr0": 12, "in_ptr1": numel, "out_ptr0": 12}
    accesses = tuple(a.settled({X0: 1}) for a in accesses_of(kernel, (X0,), memory, elements))
    result = name_extents(kernel, (X0,), descriptors_of(accesses, {X0: 1}, {}), elements)
    return {
        s.name: arg.text
        for s in result.body
        if isinstance(s, Compute)
        for arg in s.args
        if isinstance(arg, Const) and arg.text
    }


def wrap(added: int, base: str = "tmp0") -> list[Statement]:
    return [
        Compute("tmp1", "add", (base, Const(added, "int64")), "int64"),
        Compute("tmp2", "lt", (base, Const(0, "int64")), "int1"),
        Compute("tmp3", "where", ("tmp2", "tmp1", base), "int64"),
    ]


def test_a_wrap_by_the_extent_is_named():
    assert named(wrap(100), "tmp3") == {"tmp1": "in1_size_d0"}


def test_a_wrap_through_a_cast_is_named():
    cast: list[Statement] = [Compute("tmp4", "cast", ("tmp3",), "int32")]
    assert named([*wrap(100), *cast], "tmp4") == {"tmp1": "in1_size_d0"}


def test_a_wrap_by_another_number_is_none():
    assert named(wrap(50), "tmp3") == {}


def test_an_offset_that_happens_to_equal_the_extent_is_none():
    body: list[Statement] = [Compute("tmp3", "add", ("tmp0", Const(100, "int64")), "int64")]
    assert named(body, "tmp3") == {}


def test_a_selection_between_different_values_is_no_wrap():
    other: list[Statement] = [Compute("tmp5", "mul", ("tmp0", "tmp0"), "int64")]
    body = [*other, *wrap(100)[:2], Compute("tmp3", "where", ("tmp2", "tmp1", "tmp5"), "int64")]
    assert named(body, "tmp3") == {}


def test_a_wrap_that_is_no_coordinate_is_none():
    value: list[Statement] = [*wrap(100), Compute("tmp4", "mul", ("tmp3", Const(0, "int64")), "int64")]
    assert named(value, "tmp0") == {}


def clamp(last: int) -> list[Statement]:
    return [Compute("tmp3", "minimum", ("tmp0", Const(last, "int64")), "int64")]


def test_a_clamp_to_the_last_row_is_named():
    assert named(clamp(99), "tmp3") == {"tmp3": "in1_size_d0 - 1"}


def test_the_literal_may_stand_first():
    body: list[Statement] = [Compute("tmp3", "minimum", (Const(99, "int64"), "tmp0"), "int64")]
    assert named(body, "tmp3") == {"tmp3": "in1_size_d0 - 1"}


def test_a_clamp_inside_the_buffer_is_none():
    # Rows 0 to 10 of 100 are read: what bounds the values is no extent of the buffer.
    assert named(clamp(10), "tmp3", bound=1 << 40) == {}


def test_only_a_variance_is_divided_by_one_less_than_its_terms(source_of: Callable):
    assert "(r0_size - 1)" in source_of(lambda x: x.var(-1), half(4, 1000))


def test_the_divisor_of_other_sums_stays_a_number(source_of: Callable):
    # 65 terms, and no variance: 64 is a number of its own.
    source = source_of(lambda x: F.avg_pool2d(x, (1, 65), divisor_override=64), half(1, 1, 4, 65))
    assert "r0_size - 1" not in source
