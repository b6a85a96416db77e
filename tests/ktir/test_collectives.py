"""Inter-tile produce and reduce: groups, participants, order, deadlock."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from xdsl.ir import Operation

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency.model import latency
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.session import Session

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


def test_a_partial_goes_to_the_group_or_around_the_grid(reduce: Text) -> None:
    # 32 bytes a hop at 64 bytes a cycle: one partner in strict mode, three other cores in the public model.
    function = Module.parse(reduce(PAIRS, PAIRS, groups="(g) : (g >= 0, -g + 1 >= 0)")).function()
    assert [latency(function, mode=mode).critical.comm for mode in ("strict", "ktir_cpu")] == [0.5, 1.5]


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
    everyone = "producer_dependency_per_consumer = affine_set<(p)[c] : (p >= 0, -p + 3 >= 0)>, "
    text = reduce(EVERYONE, EVERYONE, dependency=everyone)
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, X.sum(0).expand(4, 8))


def needs(dependency: str) -> str:
    return f"producer_dependency_per_consumer = affine_set<{dependency}>, "


def around(text: str, head: str) -> str:
    """The collective, and the store of its value, inside a conditional or a loop."""
    return text.replace("%f = ktdp", f"{head}\n%f = ktdp").replace("\n    return\n", "\n}\n    return\n")


ONLY_SELF = "(p)[c] : (p - c == 0)"
MIRROR = "(p)[c, g] : (p + c - 3 - g == 0)"
UNLESS_LAST = "%c3 = arith.constant 3 : index\n%go = arith.cmpi slt, %core, %c3 : index\nscf.if %go {"


def test_a_consumer_folds_what_it_depends_on(reduce: Text) -> None:
    text = reduce(EVERYONE, EVERYONE, dependency=needs(MIRROR))
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, X.flip(0))


def test_a_dependency_on_a_pair_of_each_group(reduce: Text) -> None:
    text = reduce(
        PAIRS,
        PAIRS,
        groups="(g) : (g >= 0, -g + 1 >= 0)",
        dependency=needs("(p)[c, g] : (p - 2 * g >= 0, -p + c >= 0)"),
    )
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, torch.stack([X[0], X[0] + X[1], X[2], X[2] + X[3]]))


def test_no_barrier_where_none_is_needed(reduce: Text) -> None:
    text = around(reduce(EVERYONE, EVERYONE, dependency=needs(ONLY_SELF)), UNLESS_LAST)
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, torch.cat([X[:3], torch.zeros(1, 8)]))


@pytest.mark.parametrize(("dependency", "core"), [("", 0), (needs(MIRROR), 0)])
def test_a_producer_that_never_comes(reduce: Text, dependency: str, core: int) -> None:
    text = around(reduce(EVERYONE, EVERYONE, dependency=dependency), UNLESS_LAST)
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run([X, torch.zeros(4, 8)])
    found = error.value.diagnostics[-1]
    assert (found.code, found.op, found.core) == ("KT212", "ktdp.inter_tile_reduce", core)
    # Cores 1 and 2 need each other only, so with the dependency they are done.
    assert ("core 1 at" in found.message) == (not dependency)


def test_rounds_of_a_loop_do_not_mix(reduce: Text) -> None:
    head = (
        "%c1 = arith.constant 1 : index\n%c5 = arith.constant 5 : index\nscf.for %t = %c1 to %c5 step %c1 {\n"
    )
    head += "%ti = arith.index_cast %t : index to i32\n%tf = arith.sitofp %ti : i32 to f32\n"
    head += "%ts = tensor.splat %tf : tensor<1x8xf32>\n%xt = arith.mulf %x, %ts : tensor<1x8xf32>"
    chain = needs("(p)[c] : (p - c + 1 >= 0, -p + c >= 0)")
    text = around(reduce(EVERYONE, EVERYONE, dependency=chain), head)
    text = text.replace("yield_partial %x", "yield_partial %xt")
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, 4 * torch.stack([X[0], X[0] + X[1], X[1] + X[2], X[2] + X[3]]))


@pytest.mark.parametrize(
    ("producers", "dependency", "words"),
    [
        ("(i)[g] : (i - 1 >= 0, -i + 3 >= 0, g == 0)", ONLY_SELF, "core 0 depends on cores \\[0\\]"),
        (EVERYONE, "(p)[c] : (p - 2 >= 0, -p + 3 >= 0)", "no consumer depends on cores \\[0, 1\\]"),
    ],
)
def test_dependencies_that_do_not_fit(reduce: Text, producers: str, dependency: str, words: str) -> None:
    text = reduce(producers, EVERYONE, dependency=needs(dependency))
    with pytest.raises(KtirError, match=words) as error:
        Module.parse(text).function().run([X, torch.zeros(4, 8)])
    assert error.value.code == "KT224"
    assert error.value.diagnostics[0].op == "ktdp.inter_tile_reduce"
    assert error.value.diagnostics[0].line > 0


@pytest.mark.parametrize(
    "form", ["(p, q)[c] : (p - c == 0)", "(p) : (p >= 0)", "(p)[c, g, h] : (p - c == 0)"]
)
def test_a_dependency_of_another_form(reduce: Text, form: str) -> None:
    with pytest.raises(KtirError, match="producer_dependency_per_consumer must be"):
        Module.parse(reduce(EVERYONE, EVERYONE, dependency=needs(form)))


def test_a_collective_over_what_all_cores_share(reduce: Text) -> None:
    # Nothing that enters it differs between cores, which lanes must not take for a reason to run it once.
    text = reduce(EVERYONE, EVERYONE).replace("%source[%core, %c0]", "%source[%c0, %c0]")
    out = Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]
    assert torch.equal(out, 4 * X[0].expand(4, 8))


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


def exchange(reduce: Text, tile: Text, other: str, late: bool = False, **how: str) -> str:
    """Core c writes row c of the output, takes part in the collective, and reads row `other`.

    `late`: it writes after it has produced.
    """
    mine = tile("w", "target", "%core, %c0", "1x8", "4x8xf32")
    mine += "\nktdp.store %x, %w : tensor<1x8xf32>, <1x8xindex>\n"
    text = reduce(how.pop("producers", EVERYONE), how.pop("consumers", EVERYONE), **how)
    place = text.index("%r = ktdp" if late else "%zero =")
    text = text[:place] + mine + text[place:]
    read = f"%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n{other}\n"
    read += tile("o", "target", "%other, %c0", "1x8", "4x8xf32")
    read += "\n%again = ktdp.load %o : <1x8xindex> -> tensor<1x8xf32>\n"
    return text[: text.index("%b = ktdp.construct_access_tile")] + read + text[text.index("return") :]


MIRRORED = "%other = arith.subi %c3, %core : index"
PARTNER = "%other = arith.xori %core, %c1 : index"
TWO = "(g) : (g >= 0, -g + 1 >= 0)"


@pytest.mark.parametrize(
    ("other", "how", "race"),
    [
        (MIRRORED, {}, False),
        (MIRRORED, {"dependency": needs(MIRROR)}, False),
        (PARTNER, {"dependency": needs(MIRROR)}, True),
        (MIRRORED, {"dependency": needs(ONLY_SELF)}, True),
        (MIRRORED, {"dependency": needs(MIRROR), "late": True}, True),
        (PARTNER, {"producers": PAIRS, "consumers": PAIRS, "groups": TWO}, False),
        (MIRRORED, {"producers": PAIRS, "consumers": PAIRS, "groups": TWO}, True),
    ],
)
def test_a_collective_orders_those_who_wait_and_nobody_else(
    reduce: Text, tile: Text, other: str, how: dict[str, str], race: bool
) -> None:
    found = Module.parse(exchange(reduce, tile, other, **how)).function()
    found = found.run([X, torch.zeros(4, 8)], check=False).diagnostics
    assert [d.code for d in found] == ["KT206"] * (len(found) or race)
    assert bool(found) is race


def test_order_passes_through_cores(reduce: Text, tile: Text) -> None:
    """Core 0 tells 1, 1 tells 2: what core 0 wrote is before what core 2 does after the second round."""
    chain = needs("(p)[c] : (p - c + 1 >= 0, -p + c >= 0)")
    text = exchange(reduce, tile, "%two = arith.constant 2 : index\n%far = arith.subi %core, %two : index\n%other = arith.maxsi %far, %c0 : index", dependency=chain)  # fmt: skip
    start, end = text.index("%f = ktdp"), text.index("%c1 = arith")
    again = text[start:end].replace("%f =", "%f2 =").replace("(%f)", "(%f2)").replace("%r =", "%r2 =")
    codes = []
    for body in (text, text[:end] + again + text[end:]):
        found = Module.parse(body).function().run([X, torch.zeros(4, 8)], check=False).diagnostics
        codes.append([d.code for d in found])
    assert codes == [["KT206"], []]


def test_partials_are_freed_when_all_have_taken_them(reduce: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    publish = Session.publish

    def watched(session: Session, op: Operation, partial: torch.Tensor | None) -> int:
        turn = publish(session, op, partial)
        held.append(len(session.published))
        return turn

    monkeypatch.setattr(Session, "publish", watched)
    head = "%c1 = arith.constant 1 : index\n%c9 = arith.constant 9 : index\n"
    head += "scf.for %t = %c1 to %c9 step %c1 {"
    text = around(reduce(EVERYONE, EVERYONE, dependency=needs(MIRROR)), head)
    Module.parse(text).function().run([X, torch.zeros(4, 8)])
    assert len(held) == 32
    assert max(held) <= 8
