"""Latency of tiles whose extents are known at run time only: that of the same program with numbers."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency.model import LatencyReport, latency
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.run import Function

Text = Callable[..., str]
START = """%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%one = arith.constant 1.0 : f32
%z8 = arith.constant dense<0.0> : tensor<8xf32>
%e = tensor.empty({n}) : tensor<{d}x8xf32>
%x = linalg.fill ins(%one : f32) outs(%e : tensor<{d}x8xf32>) -> tensor<{d}x8xf32>
%w = arith.constant dense<1.0> : tensor<8x4xf32>
%o = tensor.empty({n}) : tensor<{d}x4xf32>
%y = linalg.fill ins(%one : f32) outs(%o : tensor<{d}x4xf32>) -> tensor<{d}x4xf32>
"""
X = "tensor<{d}x8xf32>"
ALL = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)>"
FUTURE = f"!ktdp.tile_future<{X}, groups = affine_set<(g) : (g >= 0, -g >= 0)>>"
COLLECTIVE = f"""%f = ktdp.inter_tile_produce producer_tiles_per_group = {ALL} : {X} -> {FUTURE} {{{{
^bb0(%gid: index):
%h = math.exp %x : {X}
ktdp.yield_partial %h : {X}
}}}}
%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {ALL}, identity(%x : {X}) : {FUTURE} -> {X} {{{{
^bb0(%p: {X}, %q: {X}):
%s = arith.addf %p, %q : {X}
%m = arith.mulf %s, %q : {X}
ktdp.yield_reduced %m : {X}
}}}}"""
GENERIC = f'%r = linalg.generic {{{{indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (b)>], iterator_types = ["reduction", "parallel"]}}}} ins(%x : {X}) outs(%z8 : tensor<8xf32>) {{{{\n^bb0(%p: f32, %q: f32):\n%m = arith.mulf %p, %p : f32\n%s = arith.addf %m, %q : f32\nlinalg.yield %s : f32\n}}}} -> tensor<8xf32>'


def uses(function: Function) -> list[int]:
    return [len(list(value.uses)) for op in function.op.walk() for value in op.results]


# Operations over six rows of eight in strict mode, worked out by hand.
@pytest.mark.parametrize(
    ("body", "flops"),
    [
        pytest.param(f"%r = arith.addf %x, %x : {X}", 48, id="elementwise"),
        pytest.param(f"%r = math.exp %x : {X}", 48, id="transcendental"),
        pytest.param("%r = linalg.matmul ins(%x, %w : tensor<{d}x8xf32>, tensor<8x4xf32>) outs(%y : tensor<{d}x4xf32>) -> tensor<{d}x4xf32>", 2 * 6 * 8 * 4, id="matmul"),
        pytest.param(f"%r = linalg.reduce {{{{ arith.addf }}}} ins(%x : {X}) outs(%z8 : tensor<8xf32>) dimensions = [0]", 48, id="reduction"),
        pytest.param(GENERIC, 96, id="generic"),
        pytest.param(f"%r = linalg.sub ins(%x, %x : {X}, {X}) outs(%x : {X}) -> {X}", 48, id="named"),
        pytest.param(f"scf.for %i = %c0 to %k step %c1 {{{{\n%r = arith.addf %x, %x : {X}\n}}}}", 3 * 48, id="loop"),
        # An exponential, and two operations for each of three partners.
        pytest.param(COLLECTIVE, 48 + 3 * 96, id="collective"),
        pytest.param(f"%r = tensor.generate {{n}} {{{{\n^bb0(%a: index, %b: index):\n%v = arith.addf %one, %one : f32\ntensor.yield %v : f32\n}}}} : {X}", None, id="generate"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["strict", "ktir_cpu"])
def test_a_question_mark_costs_what_its_number_does(
    function: Text, body: str, flops: int | None, mode: str
) -> None:
    def report(extent: str, size: str) -> LatencyReport:
        text = function((START + body).format(d=extent, n=size), "%n: index, %k: index", grid="[4]")
        made = Module.parse(text).function()
        before = uses(made)
        found = latency(made, [6, 3], mode=mode)
        # The function is as it was: what was priced in its place is gone.
        assert uses(made) == before
        return found

    numbers, unknown = report("6", ""), report("?", "%n")
    assert unknown.cores == numbers.cores
    assert unknown.rows == numbers.rows
    if mode == "strict" and flops is not None:
        assert sum(unknown.cores[0].flops.values()) == flops


GROWING = """%core = ktdp.get_compute_tile_id : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
%one = arith.constant 1.0 : f32
scf.for %i = %c1 to %c4 step %c1 {
%n = arith.muli %i, %core : index
%x = tensor.splat %one[%n] : tensor<?xf32>
%r = arith.addf %x, %x : tensor<?xf32>
}"""


def test_every_execution_counts_by_its_own_extents(function: Text) -> None:
    """One, two and three times the number of the core."""
    report = latency(Module.parse(function(GROWING, grid="[4]")).function(), [])
    assert [sum(core.flops.values()) for core in report.cores] == [0, 6, 12, 18]
    (row,) = [r for r in report.rows if r.op == "arith.addf"]
    assert (row.executions, row.flops) == (12, 36)


def test_what_a_call_does_counts(function: Text) -> None:
    body = START + f"func.call @other(%x) : ({X}) -> ()\nfunc.call @other(%x) : ({X}) -> ()"
    other = f"func.func @other(%p: {X}) {{{{\n%q = arith.addf %p, %p : {X}\nreturn\n}}}}\n"
    found = []
    for extent, size in (("6", ""), ("?", "%n")):
        text = function(body.format(d=extent, n=size), "%n: index")
        text = text.replace("module {\n", "module {\n" + other.format(d=extent))
        found.append(latency(Module.parse(text).function("kernel"), [6]).flops)
    assert found == [96, 96]


CUT = "%s = tensor.extract_slice %x[0] [%n] [1] : tensor<12xf32> to tensor<?xf32>\n"
SUM = "%z = arith.addf %s, %s : tensor<?xf32>\n"
BACK = "%y = tensor.insert_slice %z into %x[0] [%n] [1] : tensor<?xf32> into tensor<12xf32>"
ZERO = torch.zeros(12)


@pytest.mark.parametrize("args", [None, [None, ZERO, 5], [ZERO, None, 5]])
def test_a_run_takes_every_argument(through: Text, args: list[Any] | None) -> None:
    text = through(CUT + SUM + BACK, 12, "f32", "f32").replace("%out: index", "%out: index, %n: index")
    function = Module.parse(text).function()
    assert latency(function, [ZERO, ZERO, 5]).flops == 5
    with pytest.raises(KtirError) as caught:
        latency(function, args)
    found = caught.value.diagnostics[0]
    if args is None:
        assert (found.code, "argument n is a number" in found.message) == ("KT216", True)
        return
    line = next(i for i, written in enumerate(text.splitlines(), 1) if "%z =" in written)
    assert (found.code, found.op, found.line) == ("KT117", "arith.addf", line)
    assert f"pass a value for {'in' if args[0] is None else 'out'}" in found.message


def test_tiles_that_cost_nothing_take_no_run(through: Text) -> None:
    text = through(CUT + BACK.replace("%z", "%s"), 12, "f32", "f32")
    text = text.replace("%out: index", "%out: index, %n: index")
    assert latency(Module.parse(text).function(), [None, None, 5]).flops == 0


def test_a_run_that_fails_says_where(through: Text) -> None:
    text = through(CUT + SUM + BACK, 12, "f32", "f32").replace("%out: index", "%out: index, %n: index")
    with pytest.raises(KtirError) as caught:
        latency(Module.parse(text).function(), [ZERO, ZERO, 13])
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == ("KT215", "tensor.extract_slice")
    assert "extract_slice" in found.source


def test_memory_beside_the_arguments_is_refused(function: Text, view: Text, tile: Text) -> None:
    lines = [
        "%c0 = arith.constant 0 : index",
        view("v", "c0", "12", "f32"),
        tile("t", "v", "%c0", "12", "12xf32"),
        "%x = ktdp.load %t : <12xindex> -> tensor<12xf32>",
    ]
    plain = function("\n".join([*lines, "%z = arith.addf %x, %x : tensor<12xf32>"]), "%n: index")
    assert latency(Module.parse(plain).function(), [5]).flops == 12
    with pytest.raises(KtirError, match="all memory in arguments") as caught:
        latency(Module.parse(function("\n".join([*lines, CUT + SUM]), "%n: index")).function(), [5])
    assert (caught.value.code, caught.value.diagnostics[0].op) == ("KT117", "arith.addf")


@pytest.mark.parametrize("producers", [3, 4])
def test_what_is_done_to_produce_counts(function: Text, view: Text, tile: Text, producers: int) -> None:
    """The region of a produce loads the row of its core, and only producers run it."""
    row, set_ = "tensor<1x32xf32>", f"affine_set<(i)[g] : (i >= 0, -i + {producers - 1} >= 0, g == 0)>"
    future = f"!ktdp.tile_future<{row}, groups = affine_set<(g) : (g >= 0, -g >= 0)>>"
    lines = [
        "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
        view("v", "in", "4x32", "f32"),
        tile("t", "v", "%core, %c0", "1x32", "4x32xf32"),
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {set_} : {row} -> {future} {{\n^bb0(%g: index):",
        f"%x = ktdp.load %t : <1x32xindex> -> {row}\n%h = arith.addf %x, %x : {row}\nktdp.yield_partial %h : {row}\n}}",
    ]
    made = Module.parse(function("\n".join(lines), "%in: index", grid="[4]")).function()
    report = latency(made)
    assert [(sum(c.flops.values()), c.bytes) for c in report.cores] == [(32, 128)] * producers + [(0, 0)] * (
        4 - producers
    )
    (read,) = coverage(made).reads.values()
    assert read.touched() == 32 * producers
