"""TTIR text to IR, with source lines."""

from __future__ import annotations

import math

import pytest

from tracer.lower.edit import splat_value
from tracer.lower.errors import MalformedTtirError, UnsupportedOpsError
from tracer.lower.locations import rows_with_lines
from tracer.lower.reader import parse_ttir
from tracer.lower.tt_dialect import source_line
from tracer.lower.ttir import generate_ttir

TEXT = """#loc = loc("<triton 0>":3:0)
#loc1 = loc(unknown)
#loc9 = loc("tmp0"(#loc4))
module {
  tt.func public @f(%p: !tt.ptr<f32> loc("p"(#loc))) attributes {noinline = false} {
    %cst = arith.constant dense<0xFF800000> : tensor<4xf32> loc(#loc1)
    %c1 = arith.constant 1 : i32 loc(#loc1)
    scf.for %i = %c1 to %c1 step %c1  : i32 {
      %tmp0 = "tt.reduce"(%cst) <{axis = 0 : i32}> ({
      ^bb0(%a: f32 loc(callsite(#loc1 at #loc9)), %b: f32 loc(callsite(#loc1 at #loc9))):
        %m = arith.maxnumf %a, %b : f32 loc(#loc3)
        tt.reduce.return %m : f32 loc(#loc3)
      }) : (tensor<4xf32>) -> f32 loc(#loc8)
    } loc(#loc2)
    tt.return loc(#loc7)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("<triton 0>":5:1)
#loc3 = loc(callsite(#loc5 at #loc9))
#loc4 = loc("<triton 0>":6:2)
#loc5 = loc("standard.py":191:40)
#loc7 = loc("<triton 0>":9:0)
#loc8 = loc(callsite(#loc5 at #loc9))
"""


def test_every_operation_has_its_line_in_the_kernel():
    lines = {op.name: source_line(op) for op in parse_ttir(TEXT).walk()}
    assert lines["tt.func"] == 3
    assert lines["scf.for"] == 5
    assert lines["tt.reduce"] == 6
    assert lines["arith.maxnumf"] == 6
    assert lines["tt.return"] == 9


def test_rows_lose_their_locations_and_indentation():
    rows = rows_with_lines(TEXT)
    assert not any("loc" in code or code != code.strip() for code, _ in rows)
    assert ("%m = arith.maxnumf %a, %b : f32", 6) in rows


def test_an_unknown_location_falls_back_to_the_enclosing_operation():
    constant = next(op for op in parse_ttir(TEXT).walk() if op.name == "arith.constant")
    assert source_line(constant) == 3


@pytest.mark.parametrize(
    ("spelling", "kind", "value"),
    [
        ("dense<0xFF800000>", "tensor<4xf32>", -math.inf),
        ("dense<0x7C00>", "tensor<4xf16>", math.inf),
        ("dense<0xFF80>", "tensor<4xbf16>", -math.inf),
        ("0xFF800000", "f32", -math.inf),
        ("dense<1.500000e+00>", "tensor<4xf32>", 1.5),
        ("dense<true>", "tensor<4xi1>", 1),
        ("dense<-3>", "tensor<4xi32>", -3),
        ("5", "i64", 5),
    ],
)
def test_constants(spelling: str, kind: str, value: float):
    module = parse_ttir(f"module {{\n  %x = arith.constant {spelling} : {kind}\n}}")
    constant = next(op for op in module.walk() if op.name == "arith.constant")
    assert splat_value(constant.results[0]) == value


def test_nan_bits():
    module = parse_ttir("module {\n  %x = arith.constant dense<0x7FC00000> : tensor<2xf32>\n}")
    constant = next(op for op in module.walk() if op.name == "arith.constant")
    assert math.isnan(splat_value(constant.results[0]))


def test_all_unknown_operations_are_reported_with_their_lines(source: str):
    text = generate_ttir(
        source,
        "pointers",
        {"in_ptr0": "*fp16", "out_ptr0": "*fp16", "X0_BLOCK": "constexpr", "CORES": "constexpr"},
        {"X0_BLOCK": 16, "CORES": 1},
    ).text
    number = next(i for i, line in enumerate(source.splitlines(), 1) if "tl.load(in_ptr0 + offsets)" in line)
    with pytest.raises(UnsupportedOpsError) as caught:
        parse_ttir(text)
    reason = caught.value.reason
    assert f"tt.load (line {number})" in reason
    assert f"tt.store (line {number + 1})" in reason
    assert f"tt.addptr (lines {number}, {number + 1})" in reason


STRUCTURES = """module {
  tt.func public @g(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i8>) {
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %cst = arith.constant dense<1.000000e+00> : tensor<2x4xf32>
    %n = tt.get_num_programs y : i32
    %all:2 = scf.for %i = %n to %n step %n iter_args(%a = %cst, %b = %c0) -> (tensor<2x4xf32>, i32)  : i32 {
      %f = tt.fp_to_fp %a, rounding = rtz : tensor<2x4xf32> -> tensor<2x4xf16>
      %t = tt.trans %f {order = array<i32: 1, 0>} : tensor<2x4xf16> -> tensor<4x2xf16>
      %branch = scf.if %true -> (tensor<2x4xf32>) {
        scf.yield %a : tensor<2x4xf32>
      } else {
        scf.yield %cst : tensor<2x4xf32>
      }
      scf.if %true {
        %d = arith.addi %b, %c0 : i32
      }
      scf.yield %branch, %b : tensor<2x4xf32>, i32
    }
    %most:2 = "tt.reduce"(%all#0, %cst) <{axis = 1 : i32}> ({
    ^bb0(%v: f32, %w: f32, %x: f32, %y: f32):
      %more = arith.cmpf ogt, %v, %x : f32
      %m = arith.select %more, %v, %x : f32
      tt.reduce.return %m, %w : f32, f32
    }) : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
    %mask = arith.cmpi slt, %all#1, %c0 : i32
    tt.return
  }
}
"""


def test_structures_are_read_with_their_operands_types_and_names():
    ops = {op.name: op for op in parse_ttir(STRUCTURES).walk()}
    loop, branch, reduce = ops["scf.for"], ops["scf.if"], ops["tt.reduce"]
    assert [str(a.type) for a in ops["tt.func"].body.block.args] == ["!tt.ptr<f32>", "!tt.ptr<i8>"]
    assert [a.name_hint for a in loop.body.block.args] == ["i", "a", "b"]
    assert [str(r.type) for r in loop.results] == ["tensor<2x4xf32>", "i32"]
    assert [r.name_hint for r in loop.results] == ["all", "all"]
    assert loop.ub is ops["tt.get_num_programs"].results[0]
    assert [o.name_hint for o in loop.operands] == ["n", "n", "n", "cst", "c0"]
    assert [len(region.blocks) for region in branch.regions] == [1, 0], "the last one has no else"
    assert branch.true_region.block.last_op.name == "scf.yield"
    assert list(reduce.operands) == [loop.results[0], loop.iter_args[0]]
    assert [str(r.type) for r in reduce.results] == ["tensor<2xf32>", "tensor<2xf32>"]
    assert str(ops["arith.cmpf"].results[0].type) == "i1"
    assert ops["arith.cmpi"].operands[0] is loop.results[1]
    assert ops["tt.fp_to_fp"].attributes["rounding"].data == "rtz"
    assert list(ops["tt.trans"].attributes["order"].get_values()) == [1, 0]


def test_both_sides_of_a_branch_are_read():
    branch = next(op for op in parse_ttir(STRUCTURES).walk() if op.name == "scf.if")
    assert [region.block.last_op.operands[0].name_hint for region in branch.regions] == ["a", "cst"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("%x = arith.addi %y, %y : i32", "%y is used before it is defined"),
        ("%x:2 = arith.addi %c, %c : i32", "arith.addi"),
        ("%x = arith.addi %c : i32", "Expected 2 operands, but got 1"),
        ("%x = arith.cmpi odd, %c, %c : i32", "odd"),
        ("%x = arith.constant dense<[1, 2]> : tensor<2xi32>", "[1, 2]"),
        ("%x = tt.splat %c : i32 -> tensr<4xi32>", "tensr"),
        ("scf.for unsigned %i = %c to %c step %c : i32 {", "not spelled as Triton does"),
        ("a row of another kind", "this is no operation"),
    ],
)
def test_a_row_that_cannot_be_read_is_quoted(row: str, reason: str):
    with pytest.raises(MalformedTtirError) as caught:
        parse_ttir(f"module {{\n  %c = arith.constant 1 : i32\n  {row}\n}}")
    assert caught.value.code == "HV407"
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    "text", ["", "module {\n  %x = arith.constant 1 : i32\n", "%x = arith.constant 1 : i32"]
)
def test_text_that_is_no_module_is_refused(text: str):
    with pytest.raises(MalformedTtirError) as caught:
        parse_ttir(text)
    assert caught.value.code == "HV407"
