"""Slips in what cores add up together: groups that do not fit, and sums over a part of the positions."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]

EVERY = "(i)[g] : (i >= 0, -i + 2 >= 0, g == 0)"
FIRST = "(i)[g] : (i == 0, g == 0)"
ALONE = "(g) : (g == 0)"
ADD = "%s = arith.addf %p, %q : tensor<4x5xf32>"
A = torch.arange(96.0).reshape(4, 24) % 7 - 3
B = torch.arange(120.0).reshape(24, 5) % 5 - 2


@pytest.fixture(name="split")
def _split(function: Text, view: Text, tile: Text) -> Text:
    """C[4, 5] = A[4, 24] B[24, 5], K dealt to 3 cores; core 0 stores."""

    def build(
        producers: str = EVERY,
        consumers: str = FIRST,
        *,
        groups: str = ALONE,
        cores: int = 3,
        step: int = 8,
        first: str = "%c0, %k",
        second: str = "%k, %c0",
        body: str = ADD,
        before: str = "",
        future: str = "%f",
        storing: str = "arith.cmpi eq, %core, %c0 : index",
        after: str = "",
        rows: int = 24,
    ) -> str:
        kind = f"!ktdp.tile_future<tensor<4x5xf32>, groups = affine_set<{groups}>>"
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index",
                    f"%c0 = arith.constant 0 : index\n%c8 = arith.constant {step} : index",
                    "%k = arith.muli %core, %c8 : index\n%zero = arith.constant dense<0.0> : tensor<4x5xf32>",
                    view("va", "a", "4x24", "f32"),
                    view("vb", "b", f"{rows}x5", "f32"),
                    view("vc", "c", "4x5", "f32"),
                    tile("ta", "va", first, "4x8", "4x24xf32"),
                    "%x = ktdp.load %ta : <4x8xindex> -> tensor<4x8xf32>",
                    tile("tb", "vb", second, "8x5", f"{rows}x5xf32"),
                    "%w = ktdp.load %tb : <8x5xindex> -> tensor<8x5xf32>",
                    "%part = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x5xf32>) outs(%zero : tensor<4x5xf32>) -> tensor<4x5xf32>",
                    before,
                    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<{producers}> : tensor<4x5xf32> -> {kind} {{",
                    "^bb0(%gid: index):\nktdp.yield_partial %part : tensor<4x5xf32>\n}",
                    after.replace("KIND", kind),
                    f"%sum = ktdp.inter_tile_reduce({future}) consumer_tiles_per_group = affine_set<{consumers}>, identity(%zero : tensor<4x5xf32>) : {kind} -> tensor<4x5xf32> {{",
                    f"^bb0(%p: tensor<4x5xf32>, %q: tensor<4x5xf32>):\n{body}\nktdp.yield_reduced %s : tensor<4x5xf32>\n}}",
                    f"%here = {storing}\nscf.if %here {{",
                    tile("tc", "vc", "%c0, %c0", "4x5", "4x5xf32"),
                    "ktdp.store %sum, %tc : tensor<4x5xf32>, <4x5xindex>\n}",
                    "}" if before else "",
                ]
            ),
            "%a: index, %b: index, %c: index",
            grid=f"[{cores}]",
        )

    return build


def linted(text: str) -> list[Diagnostic]:
    module = Module.parse(text, "file.ktir")
    return [*module.warnings, *coverage_findings(module.function())]


def summed(text: str, b: torch.Tensor = B) -> torch.Tensor:
    return Module.parse(text).function().run([A, b, torch.zeros(4, 5)]).outputs[0]


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_a_whole_sum(split: Text) -> None:
    assert not linted(split())
    assert torch.equal(summed(split()), A @ B)


@pytest.mark.parametrize(
    "producers",
    [
        "(i)[g] : (i >= 0, -i + 2 >= 0, g == 1)",
        "(i)[g] : (i - 9 >= 0, g == 0)",
        "(i)[g] : (-i - 2 >= 0, g == 0)",
    ],
)
@pytest.mark.parametrize("handed_on", [False, True])
def test_a_group_in_which_no_core_produces(split: Text, producers: str, handed_on: bool) -> None:
    text = split(producers)
    if handed_on:
        text = split(
            producers,
            future="%g",
            after="%yes = arith.constant true\n%g = scf.if %yes -> (KIND) {\nscf.yield %f : KIND\n} else {\nscf.yield %f : KIND\n}",
        )
    with pytest.raises(KtirError, match="core 0 consumes group 0 in line") as error:
        summed(text)
    found = error.value.diagnostics[-1]
    op = "ktdp.inter_tile_reduce" if handed_on else "ktdp.inter_tile_produce"
    assert (found.code, found.op, found.line) == ("KT213", op, line_of(text, op))
    if not handed_on:
        assert [(d.code, d.severity) for d in linted(text)] == [("KT213", "error")]


def test_a_core_in_no_group(split: Text) -> None:
    text = split("(i)[g] : (i >= 0, -i + 1 >= 0, g == 0)")
    (found,) = linted(text)
    assert (found.code, found.severity, found.core) == ("KT213", "warning", 2)
    assert found.line == line_of(text, "%f = ktdp")
    result = Module.parse(text).function().run([A, B, torch.zeros(4, 5)])
    assert [(d.code, d.core) for d in result.diagnostics] == [("KT213", 2)]
    assert torch.equal(result.outputs[0], A[:, :16] @ B[:16])


def test_a_core_that_only_consumes_takes_part(split: Text) -> None:
    text = split("(i)[g] : (i >= 0, -i + 2 >= 0, g == 0)", "(i)[g] : (i == 3, g == 0)", cores=4)
    text = text.replace("%k = arith.muli", "%c3 = arith.constant 3 : index\n%k = arith.muli")
    text = text.replace("arith.muli %core, %c8", "arith.muli %slot, %c8").replace(
        "%k = arith", "%c2 = arith.constant 2 : index\n%slot = arith.minsi %core, %c2 : index\n%k = arith"
    )
    text = text.replace("arith.cmpi eq, %core, %c0", "arith.cmpi eq, %core, %c3")
    assert not linted(text)
    assert torch.equal(summed(text), A @ B)


def test_a_core_that_stays_away_drops_nothing(split: Text) -> None:
    before = "%c1 = arith.constant 1 : index\n%in = arith.cmpi sle, %core, %c1 : index\nscf.if %in {"
    text = split("(i)[g] : (i >= 0, -i + 1 >= 0, g == 0)", before=before)
    assert not [d for d in linted(text) if d.code == "KT213"]
    assert torch.equal(summed(text), A[:, :16] @ B[:16])


def test_a_group_that_no_core_consumes(split: Text) -> None:
    text = split(
        "(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0, -i + 2 >= 0)", groups="(g) : (g >= 0, -g + 1 >= 0)"
    )
    (found,) = linted(text)
    assert (found.code, found.severity, found.core) == ("KT213", "warning", 2)
    assert "no core consumes group 1" in found.message


def test_consumers_of_two_groups(split: Text) -> None:
    text = split(
        "(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0, -i + 2 >= 0)",
        "(i)[g] : (i >= 0, -i + 2 >= 0)",
        groups="(g) : (g >= 0, -g + 1 >= 0)",
    )
    line = line_of(text, "%sum = ktdp")
    with pytest.raises(KtirError) as error:
        summed(text)
    found = error.value.diagnostics[-1]
    assert found.code == "KT213"
    assert found.message == f"consumer_tiles_per_group in line {line} puts core 0 in groups [0, 1]"
    assert [(d.code, d.severity) for d in linted(text)] == [("KT213", "error")]


def test_groups_that_do_not_fit_where_no_core_comes(split: Text) -> None:
    before = "%c9 = arith.constant 9 : index\n%in = arith.cmpi sgt, %core, %c9 : index\nscf.if %in {"
    found = linted(split("(i)[g] : (i - 9 >= 0, g == 0)", before=before))
    assert "KT213" not in {d.code for d in found}


@pytest.mark.parametrize("lost", ["p", "q"])
def test_a_combination_that_ignores_a_partial(split: Text, lost: str) -> None:
    kept = "q" if lost == "p" else "p"
    text = split(body=f"%s = arith.addf %{kept}, %{kept} : tensor<4x5xf32>")
    (found,) = linted(text)
    assert (found.code, found.severity, found.line) == ("KT122", "warning", line_of(text, "%sum = ktdp"))
    assert f"%{lost}" in found.message


@pytest.mark.parametrize(
    ("how", "positions"),
    [
        ({"cores": 2}, {"a": (8, 16), "b": (8, 16)}),
        ({"step": 7}, {"a": (2, 22), "b": (2, 22)}),
        ({"first": "%c0, %c0"}, {"a": (16, 8)}),
        ({"second": "%c0, %c0"}, {"b": (16, 8)}),
        ({"second": "%core, %c0"}, {"b": (14, 10)}),
    ],
)
def test_a_sum_over_cores_of_a_part(
    split: Text, how: dict[str, object], positions: dict[str, tuple[int, int]]
) -> None:
    text = split(**how)
    found = [d for d in linted(text) if d.code == "KT303"]
    assert len(found) == len(positions)
    for diagnostic, (name, (count, first)) in zip(found, positions.items(), strict=True):
        assert f"{count} of 24 positions of {name} along axis {'ab'.index(name) ^ 1}" in diagnostic.message
        assert diagnostic.coordinates == (first,)
        assert diagnostic.line == line_of(text, {"a": "%x = ktdp", "b": "%w = ktdp"}[name])
        assert f"inter_tile_produce in line {line_of(text, '%f = ktdp')}" in diagnostic.message


def test_an_operand_that_stands_still_because_it_ends_there(split: Text) -> None:
    # B has 8 rows only: it is not the same K that A walks along.
    text = split(second="%c0, %c0", rows=8)
    assert not linted(text)
    assert torch.equal(summed(text, B[:8]), (A[:, :8] + A[:, 8:16] + A[:, 16:]) @ B[:8])


def test_rows_that_each_group_adds_up_for_itself(function: Text, view: Text, tile: Text) -> None:
    """Cores 2 g and 2 g + 1 add their rows; a third of the rows is in no group's sum, which is told."""
    pairs = "(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0)"

    def build(rows: int) -> str:
        kind = "!ktdp.tile_future<tensor<1x8xf32>, groups = affine_set<(g) : (g >= 0, -g + 1 >= 0)>>"
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
                    view("vi", "in", f"{rows}x8", "f32"),
                    view("vo", "out", "4x8", "f32"),
                    tile("ti", "vi", "%core, %c0", "1x8", f"{rows}x8xf32"),
                    "%x = ktdp.load %ti : <1x8xindex> -> tensor<1x8xf32>\n%z = arith.constant dense<0.0> : tensor<1x8xf32>",
                    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<{pairs}> : tensor<1x8xf32> -> {kind} {{",
                    "^bb0(%gid: index):\nktdp.yield_partial %x : tensor<1x8xf32>\n}",
                    f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<{pairs}>, identity(%z : tensor<1x8xf32>) : {kind} -> tensor<1x8xf32> {{",
                    "^bb0(%p: tensor<1x8xf32>, %q: tensor<1x8xf32>):\n%s = arith.maximumf %p, %q : tensor<1x8xf32>\nktdp.yield_reduced %s : tensor<1x8xf32>\n}",
                    tile("to", "vo", "%core, %c0", "1x8", "4x8xf32"),
                    "ktdp.store %r, %to : tensor<1x8xf32>, <1x8xindex>",
                ]
            ),
            "%in: index, %out: index",
            grid="[4]",
        )

    assert not linted(build(4))
    (found,) = linted(build(6))
    assert (found.code, found.coordinates) == ("KT303", (4,))


def test_rows_that_all_producers_share_are_no_sum(split: Text) -> None:
    # Of A, the view has two rows more than the function takes; K is whole.
    text = split().replace("sizes: [4, 24]", "sizes: [6, 24]").replace("memref<4x24xf32>", "memref<6x24xf32>")
    assert "-d0 + 3 >= 0, d1 >= 0, -d1 + 23 >= 0" in text
    text = text.replace("-d0 + 3 >= 0, d1 >= 0, -d1 + 23 >= 0", "-d0 + 5 >= 0, d1 >= 0, -d1 + 23 >= 0")
    assert not linted(text)


@pytest.mark.parametrize("empty", [False, True])
def test_rows_that_are_one_and_the_same(function: Text, view: Text, tile: Text, empty: bool) -> None:
    """Each core adds its row of x, which begins at `%from`, to what all make; its own, not one for all."""
    sums = "%s = arith.addf %p, %q : tensor<1x8xf32>"
    if empty:
        sums = "%n = tensor.empty() : tensor<1x8xf32>\n%s = linalg.add ins(%p, %q : tensor<1x8xf32>, tensor<1x8xf32>) outs(%n : tensor<1x8xf32>) -> tensor<1x8xf32>"
    everyone = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0)>"
    kind = "!ktdp.tile_future<tensor<1x8xf32>, groups = affine_set<(g) : (g == 0)>>"

    def build(factor: str, combined: str = sums) -> str:
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c8 = arith.constant 8 : index",
                    f"%from = arith.muli {factor}, %c8 : index\n%at = arith.addi %in, %from : index",
                    view("vi", "at", "1x8", "f32"),
                    view("vo", "out", "4x8", "f32"),
                    tile("ti", "vi", "%c0, %c0", "1x8", "1x8xf32"),
                    "%x = ktdp.load %ti : <1x8xindex> -> tensor<1x8xf32>\n%z = arith.constant dense<0.0> : tensor<1x8xf32>",
                    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {everyone} : tensor<1x8xf32> -> {kind} {{",
                    "^bb0(%gid: index):\nktdp.yield_partial %x : tensor<1x8xf32>\n}",
                    f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {everyone}, identity(%z : tensor<1x8xf32>) : {kind} -> tensor<1x8xf32> {{",
                    f"^bb0(%p: tensor<1x8xf32>, %q: tensor<1x8xf32>):\n{combined}\nktdp.yield_reduced %s : tensor<1x8xf32>\n}}",
                    tile("to", "vo", "%core, %c0", "1x8", "4x8xf32"),
                    "ktdp.store %r, %to : tensor<1x8xf32>, <1x8xindex>",
                ]
            ),
            "%in: index, %out: index",
            grid="[4]",
        )

    x = torch.arange(32.0).reshape(4, 8)
    out = Module.parse(build("%core")).function().run([x, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, x.sum(0).expand(4, 8))
    assert not linted(build("%core"))
    # The greatest of equal rows is each of them.
    assert not linted(build("%c0", "%s = arith.maximumf %p, %q : tensor<1x8xf32>"))
    text = build("%c0")
    (found,) = linted(text)
    assert (found.code, found.line, found.coordinates) == ("KT305", line_of(text, "%x = ktdp"), (0, 0))
    assert (
        f"inter_tile_produce in line {line_of(text, '%f = ktdp')} sums what it reads of in" in found.message
    )
    assert f"%from of line {line_of(text, '%from')}" in found.message
