"""Inter-tile produce and reduce: groups, participants, order, deadlock."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


@pytest.fixture(name="reduce")
def _reduce(function: Text, view: Text, tile: Text) -> Text:
    """Every core contributes its row of %in; consumers store the group's result to their row of %out."""

    def build(
        producers: str,
        consumers: str,
        groups: str = "(g) : (g >= 0, -g >= 0)",
        combine: str = "arith.addf",
        guard: str | None = None,
        cores: int = 4,
        before: str = "",
        dependency: str = "",
    ) -> str:
        future = f"!ktdp.tile_future<tensor<1x8xf32>, groups = affine_set<{groups}>>"
        shape = f"{cores}x8"
        store = [
            tile("b", "target", "%core, %c0", "1x8", f"{shape}xf32"),
            "ktdp.store %r, %b : tensor<1x8xf32>, <1x8xindex>",
        ]
        if guard:
            store = [f"%ok = {guard}", "scf.if %ok {", *store, "}"]
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index",
                    "%c0 = arith.constant 0 : index\n%c2 = arith.constant 2 : index",
                    view("source", "in", shape, "f32"),
                    view("target", "out", shape, "f32"),
                    tile("a", "source", "%core, %c0", "1x8", f"{shape}xf32"),
                    "%x = ktdp.load %a : <1x8xindex> -> tensor<1x8xf32>",
                    "%zero = arith.constant dense<0.0> : tensor<1x8xf32>",
                    before,
                    f"%f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<{producers}> : tensor<1x8xf32> -> {future} {{",
                    "^bb0(%gid: index):\nktdp.yield_partial %x : tensor<1x8xf32>\n}",
                    f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<{consumers}>, {dependency}identity(%zero : tensor<1x8xf32>) : {future} -> tensor<1x8xf32> {{",
                    "^bb0(%p: tensor<1x8xf32>, %q: tensor<1x8xf32>):",
                    f"%s = {combine} %p, %q : tensor<1x8xf32>\nktdp.yield_reduced %s : tensor<1x8xf32>\n}}",
                    *store,
                ]
            ),
            "%in: index, %out: index",
            grid=f"[{cores}]",
        )

    return build


EVERYONE = "(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)"
PAIRS = "(i)[g] : (i - 2 * g >= 0, -i + 2 * g + 1 >= 0)"
X = torch.arange(32.0).reshape(4, 8)


def test_all_reduce(reduce: Text) -> None:
    out = Module.parse(reduce(EVERYONE, EVERYONE)).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, X.sum(0).expand(4, 8))


def test_groups_are_separate(reduce: Text) -> None:
    text = reduce(PAIRS, PAIRS, groups="(g) : (g >= 0, -g + 1 >= 0)")
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    expected = torch.stack([X[0] + X[1]] * 2 + [X[2] + X[3]] * 2)
    assert torch.equal(out, expected)


def test_strided_groups_by_remainder(reduce: Text) -> None:
    family = "(i)[g] : ((i - g) mod 2 == 0, i >= 0, -i + 3 >= 0)"
    text = reduce(family, family, groups="(g) : (g >= 0, -g + 1 >= 0)")
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out[:2], torch.stack([X[0] + X[2], X[1] + X[3]]))


def test_fold_order_is_that_of_the_cores(reduce: Text) -> None:
    text = reduce(EVERYONE, EVERYONE, combine="arith.subf")
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, (X[0] - X[1] - X[2] - X[3]).expand(4, 8))


def test_cores_that_take_no_part(reduce: Text) -> None:
    some = "(i)[g] : (i >= 0, -i + 1 >= 0, g == 0)"
    guard = "arith.cmpi slt, %core, %c2 : index"
    out = Module.parse(reduce(some, some, guard=guard)).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out[:2], (X[0] + X[1]).expand(2, 8))
    assert not out[2:].any()


def test_one_consumer(reduce: Text) -> None:
    first = "(i)[g] : (i == 0, g == 0)"
    guard = "arith.cmpi eq, %core, %c0 : index"
    out = Module.parse(reduce(EVERYONE, first, guard=guard)).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out[0], X.sum(0))


def test_a_dependency_set_that_is_a_box(reduce: Text) -> None:
    text = reduce(
        EVERYONE, EVERYONE, dependency=f"producer_dependency_per_consumer = affine_set<{EVERYONE}>, "
    )
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, X.sum(0).expand(4, 8))


def test_a_value_used_where_no_consumer_is(reduce: Text) -> None:
    first = "(i)[g] : (i == 0, g == 0)"
    with pytest.raises(KtirError) as error:
        Module.parse(reduce(EVERYONE, first)).function().run([X, torch.zeros(4, 8)])
    assert error.value.diagnostics[-1].code == "KT218"
    assert error.value.diagnostics[-1].core == 1


def test_overlapping_groups(reduce: Text) -> None:
    overlap = "(i)[g] : (i - g >= 0, -i + g + 1 >= 0)"
    with pytest.raises(KtirError) as error:
        Module.parse(reduce(overlap, overlap, groups="(g) : (g >= 0, -g + 1 >= 0)")).function().run(
            [X, torch.zeros(4, 8)]
        )
    assert error.value.code == "KT213"


def test_a_collective_in_a_divergent_branch(reduce: Text) -> None:
    text = reduce(EVERYONE, EVERYONE)
    start = text.index("%f = ktdp.inter_tile_produce")
    end = text.index("return")
    guarded = (
        text[:start]
        + "%here = arith.cmpi slt, %core, %c2 : index\nscf.if %here {\n"
        + text[start:end]
        + "}\n"
        + text[end:]
    )
    with pytest.raises(KtirError) as error:
        Module.parse(guarded).function().run([X, torch.zeros(4, 8)])
    assert error.value.code == "KT212"
    assert "core 0" in str(error.value)


def test_what_a_collective_orders_is_no_race(reduce: Text, tile: Text) -> None:
    """Core c reads row c + 1 of the output after the collective that follows its writing."""
    text = reduce(
        EVERYONE,
        EVERYONE,
        before=tile("w", "target", "%core, %c0", "1x8", "4x8xf32")
        + "\nktdp.store %x, %w : tensor<1x8xf32>, <1x8xindex>",
    )
    late = "%n = arith.constant 3 : index\n%other = arith.subi %n, %core : index\n"
    late += tile("o", "target", "%other, %c0", "1x8", "4x8xf32")
    late += "\n%again = ktdp.load %o : <1x8xindex> -> tensor<1x8xf32>\n"
    position = text.index("%b = ktdp.construct_access_tile")
    stop = text.index("return")
    ordered = text[:position] + late + text[stop:]
    assert not Module.parse(ordered).function().run([X, torch.zeros(4, 8)]).diagnostics
    start = text.index("%f = ktdp.inter_tile_produce")
    unordered = text[:start] + late + text[stop:]
    with pytest.raises(KtirError) as error:
        Module.parse(unordered).function().run([X, torch.zeros(4, 8)])
    assert error.value.code == "KT206"
