"""Sums that take an element twice are told from what merely reads it twice."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
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
    # A[:, 8:24] (B[0:16] + B[16:32] + ...) is a sum of different terms, though the rest of A's K takes no part.
    (only,) = found(contraction(first="%row, %c8"))
    assert (only.code, only.coordinates) == ("KT303", (0,))
    assert "48 of 64 positions of a along axis 1 are never read" in only.message
    assert "(%x, loaded here, feeds it; check bounds and step of the loop in line 14" in only.message


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
    assert torch.equal(product(text), A @ B) == (not codes)
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


@pytest.fixture(name="split")
def _split(function: Text, view: Text, tile: Text) -> Text:
    """C[16, 32] = A[16, 64] B[64, 32] on 4 cores, `width` of K each from %from on, added up by core 0.

    `make` makes %x and %y into %part, `groups` groups of cores add up separately, each for its rows of C.
    """

    def build(
        begin: str = "%from = arith.muli %core, %c16 : index",
        width: int = 16,
        make: str = "",
        combine: str = "arith.addf",
        producers: str = "(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)",
        groups: int = 1,
        after: str = "",
    ) -> str:
        members = "(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0)" if groups == 2 else producers
        rows = 16 // groups
        part, ok = (
            f"tensor<{rows}x32xf32>",
            "(i)[g] : (i - 2 * g == 0)" if groups == 2 else "(i)[g] : (i == 0, g == 0)",
        )
        future = f"!ktdp.tile_future<{part}, groups = affine_set<(g) : (g >= 0, -g + {groups - 1} >= 0)>>"
        product = f"%part = linalg.matmul ins(%x, %y : tensor<{rows}x{width}xf32>, tensor<{width}x32xf32>) outs(%zero : {part}) -> {part}"
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c2 = arith.constant 2 : index",
                    "%c4 = arith.constant 4 : index\n%c8 = arith.constant 8 : index\n%c16 = arith.constant 16 : index\n%c32 = arith.constant 32 : index",
                    f"%zero = arith.constant dense<0.0> : {part}",
                    view("va", "a", "16x64", "f32"),
                    view("vb", "b", "64x32", "f32"),
                    view("vc", "c", "16x32", "f32"),
                    "%group = arith.divsi %core, %c2 : index\n%row = arith.muli %group, %c8 : index\n%lane = arith.remsi %core, %c2 : index"
                    if groups == 2
                    else "%row = arith.constant 0 : index",
                    begin,
                    tile("ta", "va", "%row, %from", f"{rows}x{width}", "16x64xf32"),
                    tile("tb", "vb", "%from, %c0", f"{width}x32", "64x32xf32"),
                    f"%x = ktdp.load %ta : <{rows}x{width}xindex> -> tensor<{rows}x{width}xf32>\n%y = ktdp.load %tb : <{width}x32xindex> -> tensor<{width}x32xf32>",
                    make or product,
                    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<{members}> : {part} -> {future} {{\n^bb0(%gid: index):\nktdp.yield_partial %part : {part}\n}}",
                    f"%all = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<{ok}>, identity(%zero : {part}) : {future} -> {part} {{",
                    f"^bb0(%p: {part}, %q: {part}):\n%s = {combine} %p, %q : {part}\nktdp.yield_reduced %s : {part}\n}}",
                    f"%first = arith.cmpi eq, {'%lane' if groups == 2 else '%core'}, %c0 : index\nscf.if %first {{",
                    after,
                    tile("tc", "vc", "%row, %c0", f"{rows}x32", "16x32xf32"),
                    f"ktdp.store {'%last' if '%last' in after else '%all'}, %tc : {part}, <{rows}x32xindex>\n}}",
                ]
            ),
            "%a: index, %b: index, %c: index",
            grid="[4]",
        )

    return build


def test_cores_that_split_an_axis(split: Text) -> None:
    assert torch.equal(product(split()), A @ B)
    assert found(split()) == []


@pytest.mark.parametrize(
    ("begin", "width", "twice"),
    [
        # Every core takes the first quarter, or the quarter of every other one.
        ("%from = arith.constant 0 : index", 16, ("sums 16 of 16 positions of a", 3, (0, 0))),
        ("%lane = arith.remsi %core, %c2 : index\n%from = arith.muli %lane, %c16 : index", 16, ("sums 32 of 32 positions of a", 2, (0, 0))),
        # Parts of 16 that begin 8 apart: 0-16, 8-24, 16-32, 24-40.
        ("%from = arith.muli %core, %c8 : index", 16, ("sums 24 of 40 positions of a", 1, (0, 8))),
        ("%from = arith.muli %core, %c8 : index", 8, None),
    ],
)  # fmt: skip
def test_cores_whose_parts_overlap(split: Text, begin: str, width: int, twice: tuple[str, int, tuple[int, int]] | None) -> None:  # fmt: skip
    text = split(begin=begin, width=width)
    findings = found(text)
    if twice is None:
        assert torch.equal(product(text), A[:, :32] @ B[:32])
        assert [d.code for d in findings if d.code == "KT305"] == []
        return
    said, core, where = twice
    (only,) = [d for d in findings if d.code == "KT305"]
    assert (only.severity, only.op, only.core, only.coordinates) == ("warning", "ktdp.load", core, where)
    assert said in only.message
    assert "the part of each core that ktdp.inter_tile_reduce in line" in only.message


REST = "%kept = arith.mulf %x, %ks : tensor<16x16xf32>\n%part = linalg.matmul ins(%kept, %y : tensor<16x16xf32>, tensor<16x32xf32>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>"
BY_CORE = f"%ki = arith.index_cast %core : index to i32\n%kf = arith.sitofp %ki : i32 to f32\n%ks = tensor.splat %kf : tensor<16x16xf32>\n{REST}"
BY_TWO = f"%kf = arith.constant 2.0 : f32\n%ks = tensor.splat %kf : tensor<16x16xf32>\n{REST}"
STILL = "%from = arith.constant 0 : index"
ONE = "%one = arith.cmpi eq, %core, %c2 : index\n%part = scf.if %one -> (tensor<16x32xf32>) {\n%m = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x32xf32>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>\nscf.yield %m : tensor<16x32xf32>\n} else {\nscf.yield %zero : tensor<16x32xf32>\n}"
CHOSEN = "%one = arith.cmpi eq, %core, %c2 : index\n%m = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x32xf32>) outs(%zero : tensor<16x32xf32>) -> tensor<16x32xf32>\n%part = scf.if %one -> (tensor<16x32xf32>) {\nscf.yield %m : tensor<16x32xf32>\n} else {\nscf.yield %zero : tensor<16x32xf32>\n}"


@pytest.mark.parametrize(
    ("how", "oracle", "codes"),
    [
        ({"make": BY_CORE}, lambda a, b: 6 * a[:, :16] @ b[:16], []),
        ({"make": BY_TWO}, lambda a, b: 8 * a[:, :16] @ b[:16], ["KT305"]),
        ({"make": ONE}, lambda a, b: a[:, :16] @ b[:16], []),
        ({"make": CHOSEN}, lambda a, b: a[:, :16] @ b[:16], []),
        ({"producers": "(i)[g] : (i == 0, g == 0)"}, lambda a, b: a[:, :16] @ b[:16], []),
        ({"producers": "(i)[g] : (i >= 0, -i + 1 >= 0, g == 0)"}, lambda a, b: 2 * a[:, :16] @ b[:16], ["KT305"]),
        ({"combine": "arith.maximumf"}, lambda a, b: a[:, :16] @ b[:16], []),
    ],
)  # fmt: skip
def test_parts_of_cores_that_stand_still(
    split: Text,
    how: dict[str, str],
    oracle: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    codes: list[str],
) -> None:
    text = split(begin=STILL, **how)
    assert torch.equal(product(text), oracle(A, B))
    assert [d.code for d in found(text) if d.code == "KT305"] == codes


@pytest.mark.parametrize(("begin", "codes"), [("%lane", []), ("%group", ["KT305"])])
def test_groups_of_cores_have_sums_of_their_own(split: Text, begin: str, codes: list[str]) -> None:
    """Two groups take the same rows of B for different rows of A."""
    text = split(begin=f"%from = arith.muli {begin}, %c32 : index", width=32, groups=2)
    assert torch.equal(product(text), A @ B) == (not codes)
    assert [d.code for d in found(text) if d.code == "KT305"] == codes


def test_what_is_added_after_the_cores_met(split: Text) -> None:
    """Core 0 adds the first quarter once more, to a sum that the others have no part in."""
    more = "%last = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x32xf32>) outs(%all : tensor<16x32xf32>) -> tensor<16x32xf32>"
    text = split(after=more)
    assert torch.equal(product(text), A @ B + A[:, :16] @ B[:16])
    assert found(text) == []


def test_cores_take_turns_in_a_loop_that_they_meet_in(function: Text, view: Text, tile: Text) -> None:
    """Every core sums all of A B, core 0 that of a row: between two steps of one core others make theirs."""
    future = "!ktdp.tile_future<tensor<1xf32>, groups = affine_set<(g) : (g == 0)>>"
    everyone = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)>"
    text = function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c16 = arith.constant 16 : index\n%c64 = arith.constant 64 : index",
                "%zero = arith.constant dense<0.0> : tensor<16x32xf32>\n%one = arith.constant dense<1.0> : tensor<1xf32>",
                view("va", "a", "16x64", "f32"),
                view("vb", "b", "64x32", "f32"),
                view("vc", "c", "64x32", "f32"),
                "%sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%acc = %zero) -> (tensor<16x32xf32>) {",
                tile("ta", "va", "%c0, %k", "16x16", "16x64xf32"),
                tile("tb", "vb", "%k, %c0", "16x32", "64x32xf32"),
                "%x = ktdp.load %ta : <16x16xindex> -> tensor<16x16xf32>\n%y = ktdp.load %tb : <16x32xindex> -> tensor<16x32xf32>",
                f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {everyone} : tensor<1xf32> -> {future} {{\n^bb0(%gid: index):\nktdp.yield_partial %one : tensor<1xf32>\n}}",
                f"%met = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {everyone}, identity(%one : tensor<1xf32>) : {future} -> tensor<1xf32> {{",
                "^bb0(%p: tensor<1xf32>, %q: tensor<1xf32>):\n%s = arith.addf %p, %q : tensor<1xf32>\nktdp.yield_reduced %s : tensor<1xf32>\n}",
                "%next = linalg.matmul ins(%x, %y : tensor<16x16xf32>, tensor<16x32xf32>) outs(%acc : tensor<16x32xf32>) -> tensor<16x32xf32>",
                "scf.yield %next : tensor<16x32xf32>\n}",
                "%row = arith.muli %core, %c16 : index",
                tile("tc", "vc", "%row, %c0", "16x32", "64x32xf32"),
                "ktdp.store %sum, %tc : tensor<16x32xf32>, <16x32xindex>",
            ]
        ),
        "%a: index, %b: index, %c: index",
        grid="[4]",
    )
    out = Module.parse(text).function().run([A, B, torch.zeros(64, 32)]).outputs[0]
    assert torch.equal(out, (A @ B).repeat(4, 1))
    assert found(text) == []


def test_a_sum_that_begins_anew(contraction: Text) -> None:
    """The loop starts over in the middle: the second half of its steps is all that the sum holds."""
    again = "%half = arith.constant 64 : index\n%fresh = arith.cmpi eq, %k, %half : index\n%kept = scf.if %fresh -> (tensor<8x32xf32>) {\nscf.yield %zero : tensor<8x32xf32>\n} else {\nscf.yield %acc : tensor<8x32xf32>\n}\n%c64 = arith.constant 64 : index\n%at = arith.remsi %k, %c64 : index"
    text = contraction(upper=128, first="%c0, %at", second="%at, %c0").replace("%c0, %at", "%row, %at")
    text = text.replace(
        "iter_args(%acc = %zero) -> (tensor<8x32xf32>) {",
        "iter_args(%acc = %zero) -> (tensor<8x32xf32>) {\n" + again,
    )
    assert [d.code for d in found(text)] == ["KT305"]
    assert torch.equal(product(text), 2 * (A @ B))
    text = text.replace("outs(%acc :", "outs(%kept :")
    assert torch.equal(product(text), A @ B)
    assert found(text) == []


@pytest.mark.parametrize(("condition", "codes"), [("slt", []), ("sge", ["KT305"])])
def test_a_term_in_the_branch_that_is_taken(contraction: Text, condition: str, codes: list[str]) -> None:
    """Steps of 8 with tiles of 16, of which only those at multiples of 16 count."""
    body = f"%c16 = arith.constant 16 : index\n%rest = arith.remsi %k, %c16 : index\n%whole = arith.cmpi {condition}, %rest, %c0 : index"
    text = contraction(step=8, upper=56)
    text = text.replace(
        "%next = linalg.matmul", f"{body}\n%none = arith.cmpi eq, %rest, %c0 : index\n%more = linalg.matmul"
    )
    text = text.replace(
        "outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>\n",
        "outs(%zero : tensor<8x32xf32>) -> tensor<8x32xf32>\n",
    )
    chosen = "%none" if condition == "slt" else "%whole"
    add = f"%next = scf.if {chosen} -> (tensor<8x32xf32>) {{\n%both = arith.addf %acc, %more : tensor<8x32xf32>\nscf.yield %both : tensor<8x32xf32>\n}} else {{\nscf.yield %acc : tensor<8x32xf32>\n}}\n"
    text = text.replace(
        "scf.yield %next : tensor<8x32xf32>\n}", add + "scf.yield %next : tensor<8x32xf32>\n}"
    )
    assert torch.equal(product(text), A @ B) == (not codes)
    # What is multiplied outside the branch and dropped is no term; that it always counts, nobody claims.
    assert [d.code for d in found(text)] == []


@pytest.mark.parametrize(("step", "codes"), [(16, []), (8, ["KT305"])])
def test_loops_that_run_while(contraction: Text, step: int, codes: list[str]) -> None:
    text = contraction(step=step, upper=64 if step == 16 else 56)
    head = "%sum = scf.for %k = %c0 to %upper step %step iter_args(%acc = %zero) -> (tensor<8x32xf32>) {"
    loop = "%last, %sum = scf.while (%i = %c0, %so = %zero) : (index, tensor<8x32xf32>) -> (index, tensor<8x32xf32>) {\n%goes = arith.cmpi slt, %i, %upper : index\nscf.condition(%goes) %i, %so : index, tensor<8x32xf32>\n} do {\n^bb0(%k: index, %acc: tensor<8x32xf32>):"
    text = text.replace(head, loop).replace(
        "scf.yield %next : tensor<8x32xf32>\n}",
        "%on = arith.addi %k, %step : index\nscf.yield %on, %next : index, tensor<8x32xf32>\n}",
    )
    assert torch.equal(product(text), A @ B) == (not codes)
    assert [d.code for d in found(text)] == codes


@pytest.mark.parametrize(("step", "codes"), [(16, []), (8, ["KT305"])])
def test_functions_that_are_called_have_sums_of_their_own(
    contraction: Text, step: int, codes: list[str]
) -> None:
    """Two calls of one sum are two sums."""
    work = contraction(step=step, upper=64 if step == 16 else 56)
    kernel = "func.func @kernel(%a: index, %b: index, %c: index)"
    call = "func.call @work(%a, %b, %c) : (index, index, index) -> ()\n"
    text = work.replace(
        f"{kernel} attributes {{grid = [2]}}", "func.func private @work(%a: index, %b: index, %c: index)"
    )
    text = text.replace(
        "module {\n", f"module {{\n{kernel} attributes {{grid = [2]}} {{\n{call}{call}return\n}}\n", 1
    )
    function = Module.parse(text).function("kernel")
    out = function.run([A, B, torch.zeros(16, 32)]).outputs[0]
    assert torch.equal(out, A @ B) == (not codes)
    assert [d.code for d in coverage_findings(function) if d.code == "KT305"] == codes


def test_committed_kernels_take_every_element_once() -> None:
    folder = Path(__file__).parents[2] / "harvested"
    files = sorted(folder.glob("*/*/*.ktir"))
    assert files
    for file in files:
        module = Module.parse(file)
        for name in module.functions:
            assert [d for d in coverage_findings(module.function(name)) if d.code == "KT305"] == []
