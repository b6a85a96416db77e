"""Regions that run once for all elements: a scalar that differs between them is no tile and no loop bound."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
X = torch.tensor([1.0, 2.0, 3.0, 4.0])
V = "tensor<4xf32>"
TAKE = f"%u = tensor.extract %x[%i] : {V}\n"
CALLED = "func.func @twice(%a: f32) -> f32 {\n%d = arith.addf %a, %a : f32\nreturn %d : f32\n}\n"


def text(through: Text, body: str) -> str:
    generate = f"%f = arith.constant 1.5 : f32\n%c1 = arith.constant 1 : index\n%y = tensor.generate {{\n^bb0(%i: index):\n{body}\ntensor.yield %v : f32\n}} : {V}"
    return through(generate, 4, "f32", "f32").replace("module {\n", "module {\n" + CALLED)


def run(through: Text, body: str) -> list[float]:
    given: list[float] = (
        Module.parse(text(through, body)).function("kernel").run([X, X.clone()]).outputs[0].tolist()
    )
    return given


@pytest.mark.parametrize(
    ("right", "want", "wrong", "op"),
    [
        # the same for all elements, and not
        (f"%w = tensor.splat %f : {V}\n%v = tensor.extract %w[%c0] : {V}", [1.5] * 4, f"{TAKE}%w = tensor.splat %u : {V}\n%v = tensor.extract %w[%c0] : {V}", "tensor.splat"),
        (f"%w = tensor.insert %f into %x[%c1] : {V}\n%v = tensor.extract %w[%i] : {V}", [1.0, 1.5, 3.0, 4.0], f"%w = tensor.insert %f into %x[%i] : {V}\n%v = tensor.extract %w[%i] : {V}", "tensor.insert"),
        (f"%w = tensor.extract_slice %x[%c1] [1] [1] : {V} to tensor<1xf32>\n%v = tensor.extract %w[%c0] : tensor<1xf32>", [2.0] * 4, f"%w = tensor.extract_slice %x[%i] [1] [1] : {V} to tensor<1xf32>\n%v = tensor.extract %w[%c0] : tensor<1xf32>", "tensor.extract_slice"),
        (f"%b = arith.cmpi eq, %c1, %c0 : index\n%t = arith.addf %x, %x : {V}\n%w = arith.select %b, %x, %t : {V}\n%v = tensor.extract %w[%c1] : {V}", [4.0] * 4, f"%b = arith.cmpi eq, %i, %c0 : index\n%t = arith.addf %x, %x : {V}\n%w = arith.select %b, %x, %t : {V}\n%v = tensor.extract %w[%c1] : {V}", "arith.select"),
        (f"{TAKE}%v = scf.for %k = %c0 to %c1 step %c1 iter_args(%q = %u) -> (f32) {{\n%r = arith.addf %q, %q : f32\nscf.yield %r : f32\n}}", [2.0, 4.0, 6.0, 8.0], "%v = scf.for %k = %c0 to %i step %c1 iter_args(%q = %f) -> (f32) {\n%r = arith.addf %q, %q : f32\nscf.yield %r : f32\n}", "scf.for"),
        # what a loop carries differs where it starts so
        (f"%v = scf.for %k = %c0 to %c1 step %c1 iter_args(%q = %f) -> (f32) {{\n%t = tensor.splat %q : {V}\n%r = tensor.extract %t[%c0] : {V}\nscf.yield %r : f32\n}}", [1.5] * 4, f"{TAKE}%v = scf.for %k = %c0 to %c1 step %c1 iter_args(%q = %u) -> (f32) {{\n%t = tensor.splat %q : {V}\n%r = tensor.extract %t[%c0] : {V}\nscf.yield %r : f32\n}}", "tensor.splat"),
        ("%v = scf.while (%q = %f) : (f32) -> f32 {\n%b = arith.constant false\nscf.condition(%b) %q : f32\n} do {\n^bb0(%q2: f32):\nscf.yield %q2 : f32\n}", [1.5] * 4, f"{TAKE}%v = scf.while (%q = %u) : (f32) -> f32 {{\n%b = arith.cmpf olt, %q, %f : f32\nscf.condition(%b) %q : f32\n}} do {{\n^bb0(%q2: f32):\n%q3 = arith.addf %q2, %f : f32\nscf.yield %q3 : f32\n}}", "scf.condition"),
        (f"{TAKE}%v = scf.parallel (%k) = (%c0) to (%c1) step (%c1) init (%f) -> f32 {{\nscf.reduce(%u : f32) {{\n^bb0(%p: f32, %q: f32):\n%r = arith.addf %p, %q : f32\nscf.reduce.return %r : f32\n}}\n}}", [2.5, 3.5, 4.5, 5.5], "%v = scf.parallel (%k) = (%c0) to (%i) step (%c1) init (%f) -> f32 {\nscf.reduce(%f : f32) {\n^bb0(%p: f32, %q: f32):\n%r = arith.addf %p, %q : f32\nscf.reduce.return %r : f32\n}\n}", "scf.parallel"),
        (f"{TAKE}%v = func.call @twice(%u) : (f32) -> f32", [2.0, 4.0, 6.0, 8.0], f"{TAKE}%d = func.call @twice(%u) : (f32) -> f32\n%w = tensor.from_elements %d : tensor<1xf32>\n%v = tensor.extract %w[%c0] : tensor<1xf32>", "tensor.from_elements"),
        (f"%w = tensor.generate {{\n^bb0(%j: index):\n%g = tensor.extract %x[%j] : {V}\ntensor.yield %g : f32\n}} : {V}\n%v = tensor.extract %w[%i] : {V}", [1.0, 2.0, 3.0, 4.0], f"%w = tensor.generate {{\n^bb0(%j: index):\n%g = tensor.extract %x[%i] : {V}\ntensor.yield %g : f32\n}} : {V}\n%v = tensor.extract %w[%c0] : {V}", "tensor.generate"),
    ],
)  # fmt: skip
def test_what_differs_is_no_tile(through: Text, right: str, want: list[float], wrong: str, op: str) -> None:
    assert run(through, right) == want
    with pytest.raises(KtirError, match="on a scalar that differs from element to element") as caught:
        run(through, wrong)
    (found,) = caught.value.diagnostics
    assert (found.code, found.op) == ("KT117", op)
    assert op in found.source


def test_the_index_of_a_generic_differs(through: Text) -> None:
    line = "affine_map<(d0) -> (d0)>"
    body = f'%y = linalg.generic {{indexing_maps = [{line}], iterator_types = ["parallel"]}} outs(%x : {V}) {{\n^bb0(%o: f32):\n%i = linalg.index 0 : index\n%v = tensor.extract %x[{{}}] : {V}\n{{rest}}linalg.yield %v : f32\n}} -> {V}'
    fine = through(body.replace("{}", "%i").replace("{rest}", ""), 4, "f32", "f32")
    assert torch.equal(Module.parse(fine).function().run([X, X.clone()]).outputs[0], X)
    wrong = body.replace("{}", "%i").replace("{rest}", f"%d = tensor.dim %x, %i : {V}\n")
    with pytest.raises(KtirError, match=r"KT117.*tensor\.dim on a scalar that differs"):
        Module.parse(through(wrong, 4, "f32", "f32")).function().run([X, X.clone()])


@pytest.mark.parametrize(
    ("shift", "index"), [("arith.subi %i, %c1", -1), ("arith.addi %i, %c1", 4), ("arith.subi %i, %c0", None)]
)
def test_elements_outside_of_a_tile(through: Text, shift: str, index: int | None) -> None:
    """A negative index does not count from the end."""
    body = f"%k = {shift} : index\n%v = tensor.extract %x[%k] : {V}"
    if index is None:
        assert run(through, body) == X.tolist()
        return
    with pytest.raises(KtirError) as caught:
        run(through, body)
    found = caught.value.diagnostics[0]
    assert (found.code, found.op, found.coordinates) == ("KT215", "tensor.extract", (index,))
    assert found.message == f"index {index} of axis 0, which has 4 elements"


@pytest.mark.parametrize("space", ["global", "ct_local"])
def test_a_stored_element_that_a_view_repeats(function: Text, view: Text, tile: Text, space: str) -> None:
    """A stride of 0 reads one element four times, from memory that is tracked."""
    one, four = (view(n, "p", s, "f32", strides=t) for n, s, t in (("one", "4", "1"), ("many", "4", "0")))
    lines = [
        "%c0 = arith.constant 0 : index\n%x = arith.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>",
        *(v.replace("global", space) for v in (one, four)),
        view("target", "out", "4", "f32"),
        *(tile(n, base, "%c0", "4", "4xf32") for n, base in (("a", "one"), ("b", "many"), ("c", "target"))),
        "ktdp.store %x, %a : tensor<4xf32>, <4xindex>",
        "%v = ktdp.load %b : <4xindex> -> tensor<4xf32>",
        "ktdp.store %v, %c : tensor<4xf32>, <4xindex>",
    ]
    text = function("\n".join(lines), "%p: index, %out: index")
    pointer = 64 if space == "ct_local" else torch.zeros(4)
    got = Module.parse(text).function().run([pointer, torch.zeros(4)])
    assert got.outputs[-1].tolist() == [5.0] * 4
    unwritten = text.replace("ktdp.store %x, %a : tensor<4xf32>, <4xindex>\n", "")
    if space == "ct_local":
        with pytest.raises(KtirError, match=r"KT204.*nobody wrote this element"):
            Module.parse(unwritten).function().run([pointer, torch.zeros(4)])
