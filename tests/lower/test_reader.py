"""TTIR text to IR, with source lines."""

from __future__ import annotations

import math

import pytest

from tracer.lower.edit import splat_value
from tracer.lower.errors import MalformedTtirError, UnsupportedOpsError
from tracer.lower.locations import split_locations
from tracer.lower.tt_dialect import parse_ttir, source_line
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


def test_locations_are_split_off():
    code, lines = split_locations(TEXT)
    assert "loc" not in code
    assert len(lines) == len([op for op in parse_ttir(TEXT).walk() if op.name != "scf.yield"])


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


def test_text_that_is_no_ttir_is_refused():
    with pytest.raises(MalformedTtirError) as caught:
        parse_ttir("module {\n  %x = arith.addi %y, %y : i32\n")
    assert caught.value.code == "HV407"
