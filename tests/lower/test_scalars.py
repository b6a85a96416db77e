"""Values of scalars: exact over all programs and iterations, against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracer.lower.analysis.scalars import Scalars, truncating_div
from tracer.lower.reader import parse_ttir

HEAD = """module {
  tt.func public @f() {
    %p = tt.get_program_id x : i32
    %n = arith.constant NTILES : i32
    %g = arith.constant GRID : i32
    %a = arith.constant A : i32
    %b = arith.constant B : i32
    scf.for %tile = %p to %n step %g : i32 {
      %q = arith.divsi %tile, %a : i32
      %r = arith.remsi %tile, %a : i32
      %s = arith.muli %r, %b : i32
      %t = arith.subi %s, %q : i32
      %c = arith.cmpi slt, %r, %b : i32
      scf.if %c {
        %u = arith.addi %t, %q : i32
      }
    }
    tt.return
  }
}
"""


def parsed(tiles: int, grid: int, a: int, b: int):
    text = (
        HEAD.replace("NTILES", str(tiles))
        .replace("GRID", str(grid))
        .replace(" A ", f" {a} ")
        .replace(" B ", f" {b} ")
    )
    ops = [op for op in parse_ttir(text).walk() if op.results]
    return {op.results[0].name_hint: op for op in ops}


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(1, 32), st.integers(1, 9), st.integers(1, 9))
def test_values_equal_brute_force(tiles: int, grid: int, a: int, b: int):
    ops, scalars = parsed(tiles, grid, a, b), Scalars(grid)
    reached = sorted({t for p in range(grid) for t in range(p, tiles, grid)})
    expected = sorted({t % a * b - t // a for t in reached})
    assert sorted(set(scalars.at([ops["t"].results[0]], ops["t"])[0].tolist())) == expected
    inside = sorted({t % a * b for t in reached if t % a < b})
    assert sorted(set(scalars.at([ops["u"].results[0]], ops["u"])[0].tolist())) == inside


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 32), st.integers(0, 9), st.integers(0, 60), st.integers(1, 4))
def test_bounds_of_a_loop_that_depend_on_the_program(grid: int, run: int, tiles: int, step: int):
    text = f"""module {{
      tt.func public @f() {{
        %p = tt.get_program_id x : i32
        %n = arith.constant {run} : i32
        %t = arith.constant {tiles} : i32
        %g = arith.constant {step} : i32
        %first = arith.muli %p, %n : i32
        %end = arith.addi %first, %n : i32
        %last = arith.minsi %end, %t : i32
        scf.for %tile = %first to %last step %g : i32 {{
          %u = arith.addi %tile, %g : i32
        }}
        tt.return
      }}
    }}"""
    op = next(op for op in parse_ttir(text).walk() if op.results and op.results[0].name_hint == "u")
    expected = {t + step for p in range(grid) for t in range(p * run, min(p * run + run, tiles), step)}
    found = Scalars(grid).evaluate(op.results[0])
    assert found is not None
    assert found.data.tolist() == sorted(expected)


def test_values_that_depend_on_data_are_unknown():
    text = (
        "module {\n  tt.func public @f(%x: i32) {\n    %y = arith.addi %x, %x : i32\n    tt.return\n  }\n}\n"
    )
    op = next(op for op in parse_ttir(text).walk() if op.name == "arith.addi")
    assert Scalars(4).evaluate(op.results[0]) is None
    assert Scalars(4).bounds(op.results[0], op) is None


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3), (5, 0, 0)]
)
def test_division_truncates(a: int, b: int, expected: int):
    assert truncating_div(a, b) == expected
