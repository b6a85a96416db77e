"""Index expressions -> descriptor dims: `stride*driver` from the outermost dim to the innermost."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

from tracer.rewrite.access import Access, Dim, accesses_of
from tracer.rewrite.axes import Axis
from tracer.rewrite.errors import OutsideBuffer, RankTooHigh
from tracer.rewrite.ir import Compute, Const, Index, Kernel, Load, Store

X0, X1, X2, R0 = Axis("x0", 6, False), Axis("x1", 4, False), Axis("x2", 3, False), Axis("r0", 8, True)
AXES = (X0, X1, X2, R0)
NAMES = {axis.name: axis.symbol for axis in AXES} | {
    f"tmp{i}": sympy.Symbol(f"tmp{i}", integer=True) for i in range(9)
}


def access(index: str, *before: object, numel: int = 10_000, bounds: dict[str, int] | None = None) -> Access:
    """The access `in_ptr0[index]` over x0:6, x1:4, x2:3 and r0:8."""
    load = Load("tmp8", "in_ptr0", sympy.sympify(index, NAMES), "float16")
    kernel = Kernel("kernel", ("in_ptr0",), (), (*before, load), tuple((bounds or {}).items()))
    return accesses_of(kernel, AXES, {"in_ptr0": "float16"}, {"in_ptr0": numel})[-1]


def shown(dims: tuple[Dim, ...]) -> list[str]:
    """Each dim as `stride * (start + driver) < size`."""
    texts = []
    for dim in dims:
        driver = dim.axis.name if dim.axis else dim.value or "0"
        driver = f"last - {driver}" if dim.reverse else driver
        texts.append(f"{dim.stride} * ({dim.start} + {driver}) < {dim.size}")
    return texts


@pytest.mark.parametrize(
    ("index", "dims"),
    [
        ("x0", ["1 * (0 + x0) < 6"]),
        ("4*x0 + x1", ["4 * (0 + x0) < 6", "1 * (0 + x1) < 4"]),
        # memory order, not axis order
        ("x0 + 6*x1", ["6 * (0 + x1) < 4", "1 * (0 + x0) < 6"]),
        ("0", []),
        # a constant offset goes to the widest dims first
        ("10*x0 + x1 + 23", ["10 * (2 + x0) < 8", "1 * (3 + x1) < 7"]),
        # ... and what is left is a dim of its own
        ("10*x0 + 3", ["10 * (0 + x0) < 6", "1 * (3 + 0) < 4"]),
        ("7", ["1 * (7 + 0) < 8"]),
        # an axis that falls starts at its end
        ("5 - x0", ["1 * (0 + last - x0) < 6"]),
        # overlapping windows: two dims of one stride
        ("x1 + x2", ["1 * (0 + x1) < 4", "1 * (0 + x2) < 3"]),
        ("2*x0 + r0", ["2 * (0 + x0) < 6", "1 * (0 + r0) < 8"]),
    ],
)
def test_dims(index: str, dims: list[str]):
    assert shown(access(index).dims) == dims


def test_an_access_past_the_buffer_is_refused():
    assert access("4*x0 + x1", numel=24)
    with pytest.raises(OutsideBuffer, match=r"spans elements 0\.\.23 of 23"):
        access("4*x0 + x1", numel=23)


def test_an_access_before_the_buffer_is_refused():
    with pytest.raises(OutsideBuffer, match=r"-1\.\.5"):
        access("x0 - 1", numel=6)


def test_a_mask_that_keeps_the_access_inside_is_used():
    index = Index("tmp0", X0.symbol, "int32")
    mask = Compute("tmp1", "ge", ("tmp0", Const(1, "int32")), "int1")
    load = Load("tmp8", "in_ptr0", X0.symbol - 1, "float16", "tmp1", Const(0.0, "float16"))
    kernel = Kernel("kernel", ("in_ptr0",), (), (index, mask, load))
    [found] = accesses_of(kernel, AXES, {"in_ptr0": "float16"}, {"in_ptr0": 5})
    [dim] = found.dims
    assert (dim.low, dim.extent, dim.start) == (1, 5, 0)


# Index values


def value(name: str, index: str) -> Index:
    return Index(name, sympy.sympify(index, NAMES), "int32")


def test_an_asserted_value_has_its_bound():
    assert shown(access("4*tmp0 + x1", bounds={"tmp0": 50}).dims) == [
        "4 * (0 + tmp0) < 50",
        "1 * (0 + x1) < 4",
    ]


def test_an_unasserted_value_stays_inside_the_next_wider_dim():
    load = Load("tmp0", "in_ptr1", sympy.Integer(0), "int64")
    kernel = Kernel("kernel", (), (), (load, replace(load, name="tmp8", param="in_ptr0",
                    index=20 * X0.symbol + 2 * NAMES["tmp0"])))  # fmt: skip
    memory = {"in_ptr0": "float16", "in_ptr1": "int64"}
    found = accesses_of(kernel, AXES, memory, {"in_ptr0": 120, "in_ptr1": 1})[1]
    assert shown(found.dims) == ["20 * (0 + x0) < 6", "2 * (0 + tmp0) < 10"]


def test_a_computed_value_has_the_bounds_of_its_computation():
    # the next wider dim has stride 2, and yet the value reaches 5
    found = access("2*x0 + tmp0", value("tmp0", "x0"), numel=100)
    assert shown(found.dims) == ["2 * (0 + x0) < 6", "1 * (0 + tmp0) < 6"]


def test_a_value_below_zero_starts_above_it():
    found = access("tmp0 + 5", value("tmp0", "-x0"), numel=100)
    assert shown(found.dims) == ["1 * (5 + tmp0) < 6"]


def test_a_value_below_zero_without_an_offset_is_refused():
    with pytest.raises(OutsideBuffer, match="-5"):
        access("tmp0", value("tmp0", "-x0"))


# Under blocks


def blocks(**chosen: int) -> dict[Axis, int]:
    return {axis: chosen.get(axis.name, 1) for axis in AXES}


def test_lanes():
    found = access("4*x0 + x1")
    assert found.lanes(blocks(x1=8)) == 0
    assert found.lanes(blocks(x1=4)) == 8  # 16 bytes of float16
    assert access("4*x0").lanes(blocks(x0=8)) == 8  # the last stride is not 1


def test_the_widest_window_dim_is_last():
    found = access("x1 + r0")
    assert [d.axis for d in found.settled(blocks(x1=16)).dims] == [R0, X1]
    assert [d.axis for d in found.settled(blocks(r0=16)).dims] == [X1, R0]


def test_dims_of_block_1_are_joined_where_a_descriptor_has_too_few():
    found = access("1000*x0 + 100*x1 + 10*x2 + r0 + 220 + tmp0", value("tmp0", "x0"), numel=10_000)
    assert len(found.dims) == 5
    assert not any(d.steps for d in found.settled(blocks(r0=8)).dims)
    narrow = found.settled(blocks())  # needs lanes: six dims
    joined = next(d for d in narrow.dims if d.steps)
    assert (joined.stride, joined.steps) == (1, ((X0, 1000), (X1, 100), (X2, 10), (R0, 1)))
    assert joined.start == 220
    assert joined.size == 220 + 5 * 1000 + 3 * 100 + 2 * 10 + 7 + 1


def test_padding_lanes_never_lie_in_joined_dims():
    found = access("10*x0 + x1")
    joined = replace(found, dims=(Dim(1, extent=54, steps=((X0, 10), (X1, 1))),))
    assert not joined.open_last
    assert access("10*x0 + 3").open_last


def test_too_many_index_values_are_refused():
    terms = [value(f"tmp{i}", "x0") for i in range(6)]
    with pytest.raises(RankTooHigh, match="6 descriptor dims"):
        access("+".join(f"{10**i}*tmp{i}" for i in range(6)), *terms, numel=10**7)


def test_stores_have_dims_too():
    store = Store("out_ptr0", 4 * X0.symbol + X1.symbol, "tmp0")
    load = Load("tmp0", "in_ptr0", sympy.Integer(0), "float16")
    kernel = Kernel("kernel", (), (), (load, store))
    memory = dict.fromkeys(("in_ptr0", "out_ptr0"), "float16")
    found = accesses_of(kernel, AXES, memory, {"in_ptr0": 1, "out_ptr0": 24})[1]
    assert shown(found.dims) == ["4 * (0 + x0) < 6", "1 * (0 + x1) < 4"]
