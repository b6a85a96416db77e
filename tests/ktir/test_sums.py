"""Sums that take an element twice are told from what merely reads it twice."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tracer.ktir.coverage_checks import coverage_findings
from tracer.ktir.diagnostics import Diagnostic
from tracer.ktir.simulator import Module

Text = Callable[..., str]
A, B = torch.arange(16.0 * 64).reshape(16, 64) % 7, torch.arange(64.0 * 32).reshape(64, 32) % 5


@pytest.fixture(name="contraction")
def _contraction(function: Text, view: Text, tile: Text) -> Text:
    """C[16, 32] = A[16, 64] B[64, 32], rows dealt to 2 cores, `width` of K at a time in steps of `step`."""

    def build(
        step: int = 16,
        first: str = "%c0, %k",
        second: str = "%k, %c0",
        width: int = 16,
        upper: int = 64,
        term: str = "",
        after: str = "",
        lhs: str = "%x",
    ) -> str:
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c8 = arith.constant 8 : index",
                    f"%step = arith.constant {step} : index\n%upper = arith.constant {upper} : index",
                    view("va", "a", "16x64", "f32"),
                    view("vb", "b", "64x32", "f32"),
                    view("vc", "c", "16x32", "f32"),
                    "%row = arith.muli %core, %c8 : index",
                    "%zero = arith.constant dense<0.0> : tensor<8x32xf32>",
                    "%sum = scf.for %k = %c0 to %upper step %step iter_args(%acc = %zero) -> (tensor<8x32xf32>) {",
                    tile("ta", "va", first.replace("%c0, %k", "%row, %k"), f"8x{width}", "16x64xf32"),
                    tile("tb", "vb", second, f"{width}x32", "64x32xf32"),
                    f"%x = ktdp.load %ta : <8x{width}xindex> -> tensor<8x{width}xf32>\n%y = ktdp.load %tb : <{width}x32xindex> -> tensor<{width}x32xf32>",
                    term,
                    f"%next = linalg.matmul ins({lhs}, %y : tensor<8x{width}xf32>, tensor<{width}x32xf32>) outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>",
                    "scf.yield %next : tensor<8x32xf32>\n}",
                    after,
                    tile("tc", "vc", "%row, %c0", "8x32", "16x32xf32"),
                    f"ktdp.store {'%last' if '%last' in after else '%sum'}, %tc : tensor<8x32xf32>, <8x32xindex>",
                ]
            ),
            "%a: index, %b: index, %c: index",
            grid="[2]",
        )

    return build


def found(text: str) -> list[Diagnostic]:
    return coverage_findings(Module.parse(text).function())


def product(text: str) -> torch.Tensor:
    return Module.parse(text).function().run([A, B, torch.zeros(16, 32)]).outputs[0]


def test_a_contraction_that_takes_its_axis_once(contraction: Text) -> None:
    text = contraction()
    assert found(text) == []
    assert torch.equal(product(text), A @ B)


def test_steps_smaller_than_the_tile(contraction: Text) -> None:
    text = contraction(step=8, upper=56)
    assert not torch.equal(product(text), A @ B)
    (only,) = found(text)
    assert (only.code, only.severity, only.op, only.core, only.coordinates) == ("KT305", "warning", "ktdp.load", 0, (0, 8))  # fmt: skip
    # K from 8 to 56 is in two tiles of 16 that begin 8 apart.
    assert "linalg.matmul in line 20 sums 48 of 64 positions of a more than once" in only.message
    assert "the loop in line 14" in only.message
    assert text.splitlines()[only.line - 1].startswith("%x = ktdp.load")


def test_an_index_that_stands_still(contraction: Text) -> None:
    found_ = found(contraction(first="%row, %c8", second="%c8, %c0"))
    assert [(d.code, d.coordinates) for d in found_] == [("KT305", (0, 8))]
    assert "sums 16 of 16 positions of a more than once" in found_[0].message


def test_one_operand_that_stands_still_is_another_product(contraction: Text) -> None:
    # A[:, 8:24] (B[0:16] + B[16:32] + ...) is a sum of different terms.
    assert [d.code for d in found(contraction(first="%row, %c8"))] == []


@pytest.mark.parametrize(("start", "codes"), [(48, []), (40, ["KT305"])])
def test_the_rest_after_the_loop(contraction: Text, tile: Text, start: int, codes: list[str]) -> None:
    width = 64 - start
    rest = "\n".join(
        [
            f"%from = arith.constant {start} : index",
            tile("tra", "va", "%row, %from", f"8x{width}", "16x64xf32"),
            tile("trb", "vb", "%from, %c0", f"{width}x32", "64x32xf32"),
            f"%xr = ktdp.load %tra : <8x{width}xindex> -> tensor<8x{width}xf32>\n%yr = ktdp.load %trb : <{width}x32xindex> -> tensor<{width}x32xf32>",
            f"%last = linalg.matmul ins(%xr, %yr : tensor<8x{width}xf32>, tensor<{width}x32xf32>) outs(%sum : tensor<8x32xf32>) -> tensor<8x32xf32>",
        ]
    )
    text = contraction(upper=48, after=rest)
    assert torch.equal(product(text), A @ B) is not codes
    assert [d.code for d in found(text)] == codes
    if codes:
        assert found(text)[0].coordinates == (0, 40)
        assert "sums 8 of 64 positions" in found(text)[0].message


SCALED = "%ki = arith.index_cast %k : index to i32\n%kf = arith.sitofp %ki : i32 to f32\n%ks = tensor.splat %kf : tensor<8x16xf32>\n%xk = arith.mulf %x, %ks : tensor<8x16xf32>"
TWICE = "%xk = arith.addf %x, %x : tensor<8x16xf32>"


@pytest.mark.parametrize(("term", "codes"), [(SCALED, []), (TWICE, ["KT305"])])
def test_what_depends_on_the_counter_is_another_term(contraction: Text, term: str, codes: list[str]) -> None:
    text = contraction(step=8, upper=56, term=term, lhs="%xk")
    assert [d.code for d in found(text)] == codes


def test_different_arithmetic_on_one_element_is_no_repetition(contraction: Text) -> None:
    square = "%xx = arith.mulf %x, %x : tensor<8x16xf32>\n%part = linalg.matmul ins(%xx, %y : tensor<8x16xf32>, tensor<16x32xf32>) outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>"
    text = contraction(term=square).replace(
        "outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>\nscf",
        "outs(%part : tensor<8x32xf32>) -> tensor<8x32xf32>\nscf",
    )
    assert torch.equal(product(text), (A + A * A) @ B)
    assert found(text) == []
    again = text.replace("ins(%xx, %y", "ins(%x, %y")
    # One read that enters a sum twice is meant: 2 A B.
    assert torch.equal(product(again), 2 * (A @ B))
    assert found(again) == []


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Text:
    """out[r] = f of row r of x[4, 32], `width` elements in steps of `step`: add up tiles, then the tile."""

    def build(step: int, width: int = 8, upper: int = 32, kind: str = "arith.addf", weights: str = "") -> str:
        term = "%x"
        body = []
        if weights:
            body = [f"%w = arith.constant dense<[{weights}]> : tensor<{width}xf32>", f"%xw = arith.mulf %x, %w : tensor<{width}xf32>"]  # fmt: skip
            term = "%xw"
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
                    f"%step = arith.constant {step} : index\n%upper = arith.constant {upper} : index",
                    view("source", "in", "4x32", "f32"),
                    view("target", "out", "4", "f32"),
                    f"%zero = arith.constant dense<0.0> : tensor<{width}xf32>\n%none = arith.constant dense<0.0> : tensor<f32>",
                    f"%sum = scf.for %k = %c0 to %upper step %step iter_args(%acc = %zero) -> (tensor<{width}xf32>) {{",
                    tile("t", "source", "%core, %k", f"1x{width}", "4x32xf32"),
                    f"%row = ktdp.load %t : <1x{width}xindex> -> tensor<1x{width}xf32>",
                    f"%x = tensor.collapse_shape %row [[0, 1]] : tensor<1x{width}xf32> into tensor<{width}xf32>",
                    *body,
                    f"%next = {kind} %acc, {term} : tensor<{width}xf32>\nscf.yield %next : tensor<{width}xf32>\n}}",
                    f"%all = linalg.reduce {{ {kind} }} ins(%sum : tensor<{width}xf32>) outs(%none : tensor<f32>) dimensions = [0]",
                    "%one = tensor.expand_shape %all [] output_shape [1] : tensor<f32> into tensor<1xf32>",
                    tile("o", "target", "%core", "1", "4xf32"),
                    "ktdp.store %one, %o : tensor<1xf32>, <1xindex>",
                ]
            ),
            "%in: index, %out: index",
            grid="[4]",
        )

    return build


X = torch.arange(4 * 32.0).reshape(4, 32) % 11


@pytest.mark.parametrize(
    ("how", "oracle", "codes"),
    [
        ({"step": 8}, lambda x: x.sum(1), []),
        # Elements 4 to 28 twice, though each sum of eight positions takes different ones.
        ({"step": 4, "upper": 28}, lambda x: x.sum(1) + x[:, 4:28].sum(1), ["KT305"]),
        ({"step": 4, "upper": 28, "kind": "arith.maximumf"}, lambda x: x.amax(1), []),
        # A window with weights of its own takes every element with several of them.
        ({"step": 4, "upper": 28, "weights": "1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0"}, lambda x: (x.unfold(1, 8, 4) * torch.arange(1.0, 9)).sum((1, 2)), []),
    ],
)  # fmt: skip
def test_tiles_that_are_added_before_they_are_reduced(
    rows: Text, how: dict[str, object], oracle: Callable[[torch.Tensor], torch.Tensor], codes: list[str]
) -> None:
    text = rows(**how)
    out = Module.parse(text).function().run([X, torch.zeros(4)]).outputs[0]
    assert torch.equal(out, oracle(X))
    assert [d.code for d in found(text)] == codes


def test_a_second_pass_is_no_repetition(function: Text, view: Text, tile: Text) -> None:
    """x / sum(x) reads its row twice, and every core reads it again."""
    once = [tile("t{n}", "source", "%c0, %c0", "4x32", "4x32xf32"), "%x{n} = ktdp.load %t{n} : <4x32xindex> -> tensor<4x32xf32>"]  # fmt: skip
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("source", "in", "4x32", "f32"),
                view("target", "out", "4x32", "f32"),
                *(line.replace("{n}", "1") for line in once),
                "%zero = arith.constant dense<0.0> : tensor<4xf32>\n%e = tensor.empty() : tensor<4x32xf32>",
                "%s = linalg.reduce { arith.addf } ins(%x1 : tensor<4x32xf32>) outs(%zero : tensor<4xf32>) dimensions = [1]",
                "%b = linalg.broadcast ins(%s : tensor<4xf32>) outs(%e : tensor<4x32xf32>) dimensions = [1]",
                *(line.replace("{n}", "2") for line in once),
                "%q = arith.divf %x2, %b : tensor<4x32xf32>",
                tile("o", "target", "%c0, %c0", "4x32", "4x32xf32"),
                "ktdp.store %q, %o : tensor<4x32xf32>, <4x32xindex>",
            ]
        ),
        "%in: index, %out: index",
    )
    assert found(text) == []
    assert not found(text.replace("arith.divf %x2, %b", "arith.addf %x2, %b"))
    # The same row, read again and added to itself outside a loop, may be meant.
    assert [d.code for d in found(text.replace("arith.divf %x2, %b", "arith.addf %x2, %x1"))] == []


def test_committed_kernels_take_every_element_once() -> None:
    folder = Path(__file__).parents[2] / "harvested"
    files = sorted(folder.glob("*/*/*.ktir"))
    assert files
    for file in files:
        module = Module.parse(file)
        for name in module.functions:
            assert [d for d in coverage_findings(module.function(name)) if d.code == "KT305"] == []
