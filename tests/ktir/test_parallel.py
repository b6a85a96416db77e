"""Loops without order: shared outputs, reductions, and loops that do not end."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency.model import latency
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]
X = torch.arange(1.0, 9.0)

FORALL = """%c2 = arith.constant 2 : index
%y = scf.forall (%i) in (4) shared_outs(%o = %x) -> (tensor<8xf32>) {{
  %at = arith.muli %i, %c2 : index
  %s = tensor.extract_slice %o[%at] [2] [1] : tensor<8xf32> to tensor<2xf32>
  %d = arith.addf %s, %s : tensor<2xf32>
  scf.forall.in_parallel {{
    tensor.parallel_insert_slice %d into %o[{at}] [2] [{step}] : tensor<2xf32> into tensor<8xf32>
  }}
}}"""

NEST = """%y = scf.forall (%i, %j) = (0, 0) to (8, 2) step (2, 1) shared_outs(%o = %x) -> (tensor<8xf32>) {
  %at = arith.addi %i, %j : index
  %p = scf.forall (%k) in (3) shared_outs(%q = %o) -> (tensor<8xf32>) {
    %e = tensor.extract_slice %q[%at] [1] [1] : tensor<8xf32> to tensor<1xf32>
    %f = arith.mulf %e, %e : tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %f into %q[%k] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  }
  %g = tensor.extract_slice %p[2] [1] [1] : tensor<8xf32> to tensor<1xf32>
  scf.forall.in_parallel {
    tensor.parallel_insert_slice %g into %o[%at] [1] [1] : tensor<1xf32> into tensor<8xf32>
  }
}"""

REDUCE = """%c1 = arith.constant 1 : index
%c2 = arith.constant 2 : index
%c4 = arith.constant 4 : index
%zero = arith.constant 0.5 : f32
%most = arith.constant 3.0 : f32
%sum, %max = scf.parallel (%i, %j) = (%c0, %c0) to (%c4, %c2) step (%c1, %c1) init (%zero, %most) -> (f32, f32) {
  %at = arith.muli %i, %c2 : index
  %k = arith.addi %at, %j : index
  %v = tensor.extract %x[%k] : tensor<8xf32>
  scf.reduce(%v, %v : f32, f32) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    scf.reduce.return %s : f32
  }, {
  ^bb0(%a2: f32, %b2: f32):
    %m = arith.maximumf %a2, %b2 : f32
    scf.reduce.return %m : f32
  }
}
%d = arith.subf %sum, %max : f32
%y = tensor.splat %d : tensor<8xf32>"""


def run(text: str) -> torch.Tensor:
    return Module.parse(text).function().run([X, torch.zeros(8)]).outputs[0]


def test_iterations_insert_into_a_shared_output(through: Text) -> None:
    assert torch.equal(run(through(FORALL.format(at="%at", step=1), 8, "f32", "f32")), X + X)


def test_iterations_read_what_was_there_before_the_loop(through: Text) -> None:
    # Iteration i writes elements i and i + 4 from a slice that iterations before it have overwritten.
    text = through(FORALL.format(at="%i", step=4), 8, "f32", "f32")
    assert torch.equal(run(text), (X + X).reshape(4, 2).T.reshape(8))


def test_nested_and_strided(through: Text) -> None:
    assert torch.equal(run(through(NEST, 8, "f32", "f32")), X * X)


@pytest.mark.parametrize(("at", "step", "place"), [("%i", 1, (1,)), ("0", 1, (0,)), ("%i", 2, (2,))])
def test_overlapping_insertions_are_an_error(through: Text, at: str, step: int, place: tuple[int]) -> None:
    text = through(FORALL.format(at=at, step=step), 8, "f32", "f32")
    with pytest.raises(KtirError) as caught:
        run(text)
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == ("KT223", "tensor.parallel_insert_slice")
    assert found.coordinates == place
    assert "parallel_insert_slice %d" in found.source


def test_an_insertion_beyond_the_output_is_an_error(through: Text) -> None:
    with pytest.raises(KtirError, match="KT215"):
        run(through(FORALL.format(at="%at", step=4), 8, "f32", "f32"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("into %o[%at]", "into %x[%at]"),
        ("shared_outs(%o = %x) -> (tensor<8xf32>)", "shared_outs(%o = %x)"),
        ("[%at] [2] [1] : tensor<2xf32> into", "[%at, 0] [2, 1] [1, 1] : tensor<2xf32> into"),
    ],
)
def test_malformed_insertions_are_refused(through: Text, old: str, new: str) -> None:
    text = through(FORALL.format(at="%at", step=1), 8, "f32", "f32")
    assert old in text
    with pytest.raises(KtirError, match="KT10"):
        Module.parse(text.replace(old, new))


def test_reductions_start_at_their_inits(through: Text) -> None:
    assert torch.equal(run(through(REDUCE, 8, "f32", "f32")), torch.full((8,), 36.5 - 8.0))


def test_a_reduction_of_no_iterations_is_its_init(through: Text) -> None:
    text = through(REDUCE.replace("to (%c4, %c2)", "to (%c0, %c2)"), 8, "f32", "f32")
    assert torch.equal(run(text), torch.full((8,), 0.5 - 3.0))


def test_a_reduction_without_init_is_refused(through: Text) -> None:
    text = through(REDUCE, 8, "f32", "f32").replace("init (%zero, %most) -> (f32, f32) ", "")
    with pytest.raises(KtirError, match="KT10"):
        Module.parse(text)


@pytest.mark.parametrize("body", [FORALL.format(at="%at", step=1), NEST, REDUCE])
def test_text_coverage_and_latency(through: Text, body: str) -> None:
    text = through(body, 8, "f32", "f32")
    printed = print_module(parse(text))
    assert print_module(parse(printed)) == printed
    assert torch.equal(run(printed), run(text))
    function = Module.parse(text).function()
    found = coverage(function)
    assert not found.uncovered_writes(1, (8,), (1,))
    assert not found.unread(0, (8,), (1,))
    assert latency(function, [X, torch.zeros(8)]).cycles > 0


def test_inside_a_loop_that_lanes_would_run(elementwise: Text) -> None:
    body = """%c8 = arith.constant 8 : index
%y = scf.forall (%i) in (2) shared_outs(%o = %x) -> ({t}) {{
  %at = arith.muli %i, %c8 : index
  %s = tensor.extract_slice %x[0, %at] [1, 8] [1, 1] : {t} to tensor<1x8xf16>
  %d = arith.addf %s, %s : tensor<1x8xf16>
  scf.forall.in_parallel {{
    tensor.parallel_insert_slice %d into %o[0, %at] [1, 8] [1, 1] : tensor<1x8xf16> into {t}
  }}
}}"""
    x = torch.randn(12, 16, generator=torch.Generator().manual_seed(3)).half()
    result = Module.parse(elementwise(12, 16, 1, 4, body)).function().run([x, torch.zeros_like(x)])
    assert torch.equal(result.outputs[0], x + x)


WHILE = """%c1 = arith.constant 1 : index
%c9 = arith.constant 9 : index
%n = scf.while (%i = %c0) : (index) -> index {
  %g = arith.cmpi slt, %i, %c9 : index
  scf.condition(%g) %i : index
} do {
^bb0(%j: index):
  %k = arith.muli %j, %c1 : index
  scf.yield %k : index
}
%y = arith.addf %x, %x : tensor<8xf32>"""
COUNTED = """%c1 = arith.constant 1 : index
%many = arith.constant 1152921504606846976 : index
%y = scf.for %i = %c0 to %many step %c1 iter_args(%a = %x) -> (tensor<8xf32>) {
  %b = arith.addf %a, %a : tensor<8xf32>
  scf.yield %b : tensor<8xf32>
}"""


@pytest.mark.parametrize(("body", "op"), [(WHILE, "scf.while"), (COUNTED, "scf.for")])
def test_a_loop_without_end_is_an_error(through: Text, body: str, op: str) -> None:
    function = Module.parse(through(body, 8, "f32", "f32")).function()
    with pytest.raises(KtirError, match="raise the limit") as caught:
        function.run([X, torch.zeros(8)], max_steps=10_000)
    found = caught.value.diagnostics[0]
    assert (found.code, found.op, found.line > 0, found.core) == ("KT222", op, True, 0)


def test_a_long_loop_on_lanes_is_an_error_at_once(elementwise: Text) -> None:
    text = elementwise(12, 16, 1, 4).replace(
        "%tiles = arith.constant 12", f"%tiles = arith.constant {1 << 60}"
    )
    with pytest.raises(KtirError, match="KT222"):
        Module.parse(text).function().run([torch.zeros(12, 16).half()] * 2)


def test_as_many_steps_as_are_allowed(through: Text) -> None:
    text = through(COUNTED.replace(str(1 << 60), "5"), 8, "f32", "f32")
    run = Module.parse(text).function().run
    assert torch.equal(run([X, torch.zeros(8)], max_steps=10).outputs[0], X * 32)
    with pytest.raises(KtirError, match="KT222"):
        run([X, torch.zeros(8)], max_steps=9)
