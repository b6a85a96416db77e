"""The axes of a kernel, and its indices over them, as text."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sympy

from tracer.rewrite.axes import lift_opaque
from tracer.rewrite.ir import Index, Load

CASES = {
    # one range that every access walks contiguously stays one axis
    "flat": ({"x": 24}, ["x", "x"], ["x0:24", "x0", "x0"]),
    # a digit splits the range; both accesses are affine in the two axes
    "digits": (
        {"x": 24},
        ["x % 4 + 100 * (x // 4)", "x"],
        ["x0:6 x1:4", "100*x0 + x1", "4*x0 + x1"],
    ),
    "three digits": (
        {"x": 24},
        ["x % 2 + 10 * (x // 2 % 3) + 50 * (x // 6)", "x"],
        ["x0:4 x1:3 x2:2", "50*x0 + 10*x1 + x2", "6*x0 + 2*x1 + x2"],
    ),
    "digit of a digit": (
        {"x": 24},
        ["(x // 2) % 3", "x"],
        ["x0:4 x1:3 x2:2", "x1", "6*x0 + 2*x1 + x2"],
    ),
    # what nobody needs apart is one axis again: `4 * (x // 4) + x % 4` is x
    "merged": ({"x": 24}, ["x % 4 + 4 * (x // 4)", "x"], ["x0:24", "x0", "x0"]),
    "merged over ranges": ({"y": 6, "x": 4}, ["4*y + x", "4*y + x"], ["x0:24", "x0", "x0"]),
    "not merged where one access is transposed": (
        {"y": 6, "x": 4},
        ["y + 6*x", "4*y + x"],
        ["x0:6 x1:4", "x0 + 6*x1", "4*x0 + x1"],
    ),
    "broadcast": ({"y": 6, "x": 4}, ["x", "4*y + x"], ["x0:6 x1:4", "x1", "4*x0 + x1"]),
    # axes are numbered in the store's memory order
    "store order": ({"y": 6, "x": 4}, ["4*y + x", "y + 6*x"], ["x0:4 x1:6", "x0 + 4*x1", "6*x0 + x1"]),
    "extent 1": ({"y": 1, "x": 4}, ["y + x", "x"], ["x0:4", "x0", "x0"]),
    "one element": ({"x": 1}, ["x", "x"], ["x0:1", "0", "0"]),
    # parallel and reduced axes are never joined
    "reduced": ({"x": 6, "r0": 4}, ["4*x + r0", "x"], ["x0:6 r0:4", "r0 + 4*x0", "x0"]),
    "reduced digits": (
        {"x": 6, "r0": 8},
        ["r0 % 2 + 12 * (r0 // 2) + 2*x", "x"],
        ["x0:6 r0:4 r1:2", "12*r0 + r1 + 2*x0", "x0"],
    ),
    # heads of a joined dim: what r0 adds never carries into x
    "remainder of a sum": (
        {"x": 24, "r0": 64},
        ["(r0 + 64*x) % 768 + 9000 * ((r0 + 64*x) // 768)", "x"],
        ["x0:2 x1:12 r0:64", "r0 + 9000*x0 + 64*x1", "12*x0 + x1"],
    ),
    "quotient of a remainder of a sum": (
        {"x": 24, "r0": 64},
        ["((r0 + 64*x) % 768) // 128", "x"],
        ["x0:2 x1:6 x2:2 r0:64", "x1", "12*x0 + 2*x1 + x2"],
    ),
    "whole periods leave": (
        {"x": 24},
        ["(x + 96) // 48 + 7 * ((x + 48) % 24)", "x"],
        ["x0:24", "7*x0 + 2", "x0"],
    ),
    "a sum that carries stays opaque": (
        {"x": 24, "r0": 65},
        ["(r0 + 64*x) % 768", "x"],
        ["x0:24 r0:65", "Modulo(r0 + 64*x0, 768)", "x0"],
    ),
    "a sum that may be negative stays opaque": (
        {"x": 24, "r0": 64},
        ["(r0 + 64*x - 1) % 768", "x"],
        ["x0:24 r0:64", "Modulo(r0 + 64*x0 - 1, 768)", "x0"],
    ),
    # a break point that divides no other stays opaque
    "opaque": ({"x": 24}, ["x % 5", "x"], ["x0:24", "Modulo(x0, 5)", "x0"]),
    "opaque shift": ({"x": 24}, ["(x + 1) % 4", "x"], ["x0:24", "Modulo(x0 + 1, 4)", "x0"]),
    "the first of two incompatible digits": (
        {"x": 24},
        ["x % 4", "x % 6", "x"],
        ["x0:6 x1:4", "x1", "Modulo(4*x0 + x1, 6)", "4*x0 + x1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_axes(name: str, indexed, shown):
    ranges, expressions, expected = CASES[name]
    assert shown(indexed(ranges, *expressions)) == expected


def test_lifted_terms_become_values(indexed):
    _, kernel = indexed({"x": 24}, "7 * (x % 5) + 3", "x")
    body = lift_opaque(kernel).body
    assert isinstance(body[0], Index)
    assert str(body[0].index) == "Modulo(x0, 5)"
    assert isinstance(body[1], Load)
    assert str(body[1].index) == "7*tmp_index0 + 3"


def test_falling_values_are_lifted_to_rise(indexed):
    _, kernel = indexed({"x": 24}, "x", "x")
    load = replace(kernel.body[0], index=9 - 2 * sympy.Symbol("tmp7", integer=True))
    lifted = lift_opaque(kernel.with_body((load, *kernel.body[1:]))).body
    assert [str(s.index) for s in lifted[:2]] == ["-tmp7", "2*tmp_index0 + 9"]


def test_no_axis_has_more_elements_than_a_coordinate_can_count(indexed):
    axes, _ = indexed({"x": 70_000 * 50_000}, "x", "x")
    assert len(axes) == 2
    assert all(axis.extent < 2**31 for axis in axes)
    axes, _ = indexed({"y": 70_000, "x": 50_000}, "50000*y + x", "50000*y + x")
    assert [axis.extent for axis in axes] == [70_000, 50_000]
