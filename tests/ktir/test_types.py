"""Types that operations declare: what is accepted gives its value, and its wrong neighbour a code and a place."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
X = torch.arange(6.0)
MAP = "affine_map<(i) -> (i)>"
HALF = "%h = tensor.empty() : tensor<6xf16>\n%e = tensor.empty() : tensor<6xf32>\n%t = arith.constant true\n"


def first(text: str) -> Diagnostic:
    with pytest.raises(KtirError) as error:
        Module.parse(text)
    return error.value.diagnostics[0]


def broken(through: Text, body: str) -> str:
    """The text around a wrong body, which need not say what `%y` is."""
    if "%y =" not in body:
        body += "\n%y = arith.addf %x, %x : tensor<6xf32>"
    return through(HALF + body, 6, "f32", "f16" if body.endswith("tensor<6xf16>") else "f32")


def value(text: str) -> list[float]:
    out = Module.parse(text).function().run([X, torch.zeros(6)]).outputs[0]
    return [float(v) for v in out]


@pytest.mark.parametrize(
    ("body", "right", "wrong", "want", "end"),
    [
        pytest.param("%y = scf.if %t -> (tensor<6xf32>) {{\nscf.yield {0}\n}} else {{\nscf.yield %x : tensor<6xf32>\n}}", "%x : tensor<6xf32>", "%h : tensor<6xf16>", X.tolist(), "scf.yield", id="if"),
        pytest.param("%y = scf.if %t -> (tensor<6xf32>) {{\nscf.yield {0}\n}} else {{\nscf.yield %x : tensor<6xf32>\n}}", "%x : tensor<6xf32>", "%x, %x : tensor<6xf32>, tensor<6xf32>", X.tolist(), "scf.yield", id="if twice"),
        pytest.param(f"%y = linalg.generic {{{{indexing_maps = [{MAP}, {MAP}], iterator_types = [\"parallel\"]}}}} ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {{{{\n^bb0(%p: f32, %o: f32):\n%i = linalg.index 0 : index\nlinalg.yield {{0}}\n}}}} -> tensor<6xf32>", "%p : f32", "%i : index", X.tolist(), "linalg.yield", id="generic"),
        pytest.param(f"%y = linalg.generic {{{{indexing_maps = [{MAP}, {MAP}], iterator_types = [\"parallel\"]}}}} ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) {{{{\n^bb0(%p: f32, %o: f32):\nlinalg.yield {{0}}\n}}}} -> tensor<6xf32>", "%p : f32", "%p, %p : f32, f32", X.tolist(), "linalg.yield", id="generic twice"),
        pytest.param("%z = arith.constant dense<0.0> : tensor<f32>\n%s = linalg.reduce ins(%x : tensor<6xf32>) outs(%z : tensor<f32>) dimensions = [0] (%p: f32, %q: f32) {{\n%r = arith.addf %p, %q : f32\nlinalg.yield {0}\n}}\n%f = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %f : tensor<6xf32>", "%r : f32", "%t : i1", [15.0] * 6, "linalg.yield", id="reduce"),
        pytest.param("%y = linalg.map ins(%x : tensor<6xf32>) outs(%e : tensor<6xf32>) (%p: f32) {{\nlinalg.yield {0}\n}}", "%p : f32", "%t : i1", X.tolist(), "linalg.yield", id="map"),
        pytest.param("%y = tensor.generate {{\n^bb0(%i: index):\n%f = tensor.extract %x[%i] : tensor<6xf32>\ntensor.yield {0}\n}} : tensor<6xf32>", "%f : f32", "%i : index", X.tolist(), "tensor.yield", id="generate"),
    ],
)  # fmt: skip
def test_a_terminator_yields_what_its_operation_says(
    through: Text, body: str, right: str, wrong: str, want: list[float], end: str
) -> None:
    assert value(through(HALF + body.format(right), 6, "f32", "f32")) == want
    text = through(HALF + body.format(wrong), 6, "f32", "f32")
    found = first(text)
    assert (found.code, found.op) == ("KT102", end)
    assert text.splitlines()[found.line - 1] == f"{end} {wrong}"


@pytest.mark.parametrize(
    ("right", "wrong", "code", "words"),
    [
        ("%y = tensor.extract_slice %x[0] [6] [1] : tensor<6xf32> to tensor<6xf32>", "%y = tensor.extract_slice %x[0] [6] [1] : tensor<6xf32> to tensor<6xf16>", "KT102", "differ in element type"),
        ("%y = tensor.cast %x : tensor<6xf32> to tensor<6xf32>", "%y = tensor.cast %x : tensor<6xf32> to tensor<6xf16>", "KT102", "differ in element type"),
        ("%y = tensor.insert_slice %x into %e[0] [6] [1] : tensor<6xf32> into tensor<6xf32>", "%y = tensor.insert_slice %x into %h[0] [6] [1] : tensor<6xf32> into tensor<6xf16>", "KT102", "differ in element type"),
        ("%s = arith.constant dense<6> : tensor<1xindex>\n%y = tensor.reshape %x(%s) : (tensor<6xf32>, tensor<1xindex>) -> tensor<6xf32>", "%s = arith.constant dense<5> : tensor<1xindex>\n%y = tensor.reshape %x(%s) : (tensor<6xf32>, tensor<1xindex>) -> tensor<6xf32>", "KT102", "the shape operand says [5]"),
        ("%i = arith.bitcast %x : tensor<6xf32> to tensor<6xi32>\n%y = arith.bitcast %i : tensor<6xi32> to tensor<6xf32>", "%y = arith.bitcast %x : tensor<6xf32> to tensor<6xf16>", "KT102", "differ in width"),
        ("%g = arith.extf %h : tensor<6xf16> to tensor<6xf32>\n%y = linalg.copy ins(%x : tensor<6xf32>) outs(%g : tensor<6xf32>) -> tensor<6xf32>", "%y = linalg.exp ins(%x : tensor<6xf32>) outs(%h : tensor<6xf16>) -> tensor<6xf16>", "KT102", "casts nothing, but its operands are of f32 and f16"),
        ("%a = tensor.extract_slice %x[0] [3] [1] : tensor<6xf32> to tensor<3xf32>\n%b = tensor.extract_slice %x[3] [3] [1] : tensor<6xf32> to tensor<3xf32>\n%y = tensor.concat dim(0) %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>", "%a = tensor.extract_slice %x[4] [3] [1] : tensor<6xf32> to tensor<3xf32>", "KT215", "elements 4 to 6 of axis 0, which has 6 elements"),
    ],
)  # fmt: skip
def test_operations_that_move_elements(through: Text, right: str, wrong: str, code: str, words: str) -> None:
    assert value(through(HALF + right, 6, "f32", "f32")) == X.tolist()
    last = wrong.splitlines()[-1]
    text = broken(through, wrong)
    found = first(text)
    assert found.code == code
    assert words in found.message
    assert text.splitlines()[found.line - 1] == last


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("%f = tensor.extract %x[%c0, %c0] : tensor<6xf32>", "2 indices for tensor<6xf32>, which has rank 1"),
        ("%f = arith.constant 1.0 : f32\n%y = tensor.from_elements %f, %f : tensor<6xf32>", "2 elements for tensor<6xf32>, which has 6"),
        ("%c = arith.cmpi eq, %x, %x : tensor<6xf32>", "did you mean arith.cmpf?"),
        ("%f = arith.constant 1.0 : f32\n%y = linalg.fill ins(%f : f32) outs(%h : tensor<6xf16>) -> tensor<6xf16>", "casts nothing"),
    ],
)  # fmt: skip
def test_counts_and_kinds_are_told_before_a_run(through: Text, wrong: str, words: str) -> None:
    found = first(broken(through, wrong))
    assert found.code == "KT102"
    assert words in found.message


def test_raw_data_of_i1_is_packed(through: Text) -> None:
    """As MLIR reads it: the lowest bit is the first element."""
    body = '%k = arith.constant dense<"0x15"> : tensor<6xi1>\n%y = arith.uitofp %k : tensor<6xi1> to tensor<6xf32>'
    assert value(through(body, 6, "f32", "f32")) == [1, 0, 1, 0, 1, 0]
    assert first(through(body.replace("0x15", "0x1500"), 6, "f32", "f32")).code == "KT101"


def test_a_float_too_large_for_its_type_is_infinite_and_told(through: Text) -> None:
    """As MLIR reads it; a warning, since infinity has its own spelling."""
    body = "%k = arith.constant dense<{}> : tensor<6xf32>\n%y = arith.maximumf %x, %k : tensor<6xf32>"
    text = through(body.format("1.0e999"), 6, "f32", "f32")
    assert value(text) == [float("inf")] * 6
    found = Module.parse(text).warnings[0]
    assert (found.code, found.severity) == ("KT124", "warning")
    assert "1.0e999" in text.splitlines()[found.line - 1]
    assert Module.parse(through(body.format("0x7F800000"), 6, "f32", "f32")).warnings == ()


@pytest.mark.parametrize(
    ("literal", "words"), [("-0x1 : f32", "no minus"), ("true : i32", "true is of type i1")]
)
def test_literals_that_mlir_refuses(through: Text, literal: str, words: str) -> None:
    found = first(broken(through, f"%k = arith.constant {literal}"))
    assert found.code == "KT101"
    assert words in found.message


def test_options_of_a_run_that_name_what_is_not_there(through: Text) -> None:
    kernel = Module.parse(through("%y = arith.addf %x, %x : tensor<6xf32>", 6, "f32", "f32")).function()
    args = [X, torch.zeros(6)]
    assert kernel.run(args, uninitialized=[1], grid=[1, 1, 1]).outputs[0].tolist() == (X + X).tolist()
    with pytest.raises(KtirError, match=r"KT216.*no argument 7 for uninitialized; the function has 2"):
        kernel.run(args, uninitialized=[7])
    with pytest.raises(KtirError, match=r"KT111.*more than three axes"):
        kernel.run(args, grid=[1, 1, 1, 1])
