"""Bytes of tiles alive at once: of extents known at run time only, of partials, over loops and calls."""
# ruff: noqa: E501

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.session import Session
from tracer.target import SpyreTarget

Text = Callable[..., str]
NOTHING_FITS = SpyreTarget(lx_bytes=0, lx_warn_bytes=0)


def most(text: str, args: Sequence[Any] = (), **options: Any) -> tuple[int, str, int | None]:
    """Bytes, the operation and the core that a scratchpad of no bytes complains of; nothing else is wrong."""
    function = Module.parse(text).function("kernel")
    found = function.run(args, check=False, target=NOTHING_FITS, **options).diagnostics
    (only,) = found
    assert only.code == "KT207"
    count = re.match(r"(\d+) bytes of tiles live here, the scratchpad has 0$", only.message)
    assert count is not None, only.message
    return int(count[1]), only.op, only.core


GROWS = """%one = arith.constant 1.0 : f32
%e = tensor.empty({n}) : tensor<{d}xf32>
%t = linalg.fill ins(%one : f32) outs(%e : tensor<{d}xf32>) -> tensor<{d}xf32>
"""
D = "tensor<{d}xf32>"
HANDED_ON = f"%z = arith.addf %t, %t : {D}\n"


# What lives where, with t and its like of n elements, x of 12 and r of one.
@pytest.mark.parametrize(
    ("body", "tiles", "op"),
    [
        pytest.param(GROWS + HANDED_ON, 2, "arith.addf", id="elementwise"),
        pytest.param(GROWS + HANDED_ON + f"%w = arith.addf %t, %z : {D}\n", 3, "arith.addf", id="two operands"),
        pytest.param(GROWS + HANDED_ON + f"%w = linalg.add ins(%z, %z : {D}, {D}) outs(%t : {D}) -> {D}\n", 2, "arith.addf", id="a result in the place of outs"),
        pytest.param(GROWS + f"%w = linalg.add ins(%t, %t : {D}, {D}) outs(%t : {D}) -> {D}\n%v = arith.addf %w, %t : {D}\n", 3, "arith.addf", id="outs that live on"),
        pytest.param(GROWS + f"%w = tensor.cast %t : {D} to tensor<?xf32>\n%v = math.exp %w : tensor<?xf32>\n", 2, "math.exp", id="a cast"),
        pytest.param(GROWS + f"%w = tensor.splat %one[{{m}}] : {D}\n%v = math.exp %w : {D}\n%u = math.exp %t : {D}\n", 2, "math.exp", id="a splat"),
        pytest.param(GROWS + f"%c = arith.cmpi slt, %c0, %n : index\n%w = scf.if %c -> ({D}) {{{{\n%z = math.exp %t : {D}\n%q = math.exp %z : {D}\nscf.yield %q : {D}\n}}}} else {{{{\nscf.yield %t : {D}\n}}}}\n%v = math.exp %t : {D}\n", 3, "math.exp", id="a branch"),
        pytest.param(GROWS + f"%w = scf.for %i = %c0 to %n step %n iter_args(%a = %t) -> ({D}) {{{{\n%z = math.exp %a : {D}\nscf.yield %z : {D}\n}}}}\n", 2, "math.exp", id="carried in the place of the initial value"),
        pytest.param(GROWS + f"%w = scf.for %i = %c0 to %n step %n iter_args(%a = %t) -> ({D}) {{{{\n%z = arith.addf %a, %t : {D}\nscf.yield %z : {D}\n}}}}\n", 3, "arith.addf", id="an initial value that the loop reads"),
        pytest.param(GROWS + f"%w = scf.while (%a = %t) : ({D}) -> {D} {{{{\n%no = arith.cmpi slt, %n, %c0 : index\nscf.condition(%no) %a : {D}\n}}}} do {{{{\n^bb0(%b: {D}):\nscf.yield %b : {D}\n}}}}\n%v = math.exp %w : {D}\n", 2, "math.exp", id="while"),
        pytest.param(GROWS + f"func.call @other(%t) : ({D}) -> ()\n%w = math.exp %t : {D}\n", 3, "math.exp", id="a call"),
        pytest.param(GROWS + f"%a = math.exp %t : {D}\nfunc.call @other(%t) : ({D}) -> ()\n%w = arith.addf %a, %t : {D}\nfunc.call @other(%t) : ({D}) -> ()\n", 4, "math.exp", id="two calls"),
        pytest.param(GROWS + f"%i = arith.constant dense<0.0> : tensor<f32>\n%w = linalg.reduce {{{{ arith.addf }}}} ins(%t : {D}) outs(%i : tensor<f32>) dimensions = [0]\n%z = linalg.reduce {{{{ arith.addf }}}} ins(%t : {D}) outs(%w : tensor<f32>) dimensions = [0]\n%v = math.exp %t : {D}\n", 2, "math.exp", id="a reduction"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [5, 8])
def test_extents_known_at_run_time_only_count_as_numbers_do(
    function: Text, body: str, tiles: int, op: str, n: int
) -> None:
    other = "func.func @other(%p: {d}) {{\n%g = math.exp %p : {d}\n%h = math.exp %g : {d}\nreturn\n}}\n"
    found = []
    for extent, size in (("?", "%n"), (str(n), "")):
        text = function(body.format(d=extent, n=size, m=size).replace("[]", ""), "%n: index")
        text = text.replace("%one =", "%c0 = arith.constant 0 : index\n%one =")
        called = other.format(d=f"tensor<{extent}xf32>")
        if "@other" in text:
            text = text.replace("module {\n", "module {\n" + called)
        # A cast makes an extent unknown in either form.
        found.append((most(text, [n]), "?" in text))
    for (count, name, core), unknown in found:
        assert (count, name) == (4 * n * tiles, op)
        assert core == (0 if unknown else None)


LIMITS = """%e = tensor.empty(%n) : tensor<?xf32>
%one = arith.constant 1.0 : f32
%t = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
%z = arith.addf %t, %t : tensor<?xf32>
%y = arith.addf %x, %x : tensor<12xf32>"""


@pytest.mark.parametrize(
    ("n", "code", "words"),
    [
        (203130, None, ""),
        (203131, "KT208", "1625096 bytes of tiles live here, above 1625088"),
        (262138, "KT208", "2097152 bytes of tiles live here, above 1625088"),
        (262139, "KT207", "2097160 bytes of tiles live here, the scratchpad has 2097152"),
    ],
)
@pytest.mark.parametrize("watched", [False, True])
def test_tiles_of_unknown_extents_fit_the_scratchpad(
    through: Text, n: int, code: str | None, words: str, watched: bool
) -> None:
    """48 bytes of `%x`, and `%n` elements twice."""
    text = through(LIMITS, 12, "f32", "f32").replace("%out: index", "%out: index, %n: index")
    run = Module.parse(text).function().run
    args = [torch.ones(12), torch.zeros(12), n]
    found = run(args, check=False, trace=(lambda *_: None) if watched else None).diagnostics
    line = next(i for i, written in enumerate(text.splitlines(), 1) if "%z =" in written)
    want = [(code, words, "arith.addf", line, 0)] if code else []
    assert [(d.code, d.message, d.op, d.line, d.core) for d in found] == want
    assert not run(args, check=False, sanitize=False).diagnostics
    if code == "KT207":
        with pytest.raises(KtirError, match="2097160 bytes"):
            run(args)


def test_the_core_that_holds_most_is_named(function: Text) -> None:
    body = "%core = ktdp.get_compute_tile_id : index\n%c2 = arith.constant 2 : index\n%d = arith.subi %core, %c2 : index\n%q = arith.muli %d, %d : index\n%n = arith.addi %q, %c2 : index\n"
    body += (GROWS + HANDED_ON).format(d="?", n="%n")
    assert most(function(body, grid="[4]")) == (2 * 4 * 6, "arith.addf", 0)


def test_tiles_and_what_is_stored_are_of_one_core(function: Text, view: Text, tile: Text) -> None:
    """Core 0 stores 4 KiB and holds no large tile; core 1 holds two of them."""
    local = view("v", "c0", "1024", "f32").replace("global", "ct_local")
    lines = [
        "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%k = arith.constant 1024 : index",
        "%x = arith.constant dense<1.0> : tensor<1024xf32>\n%n = arith.muli %core, %k : index",
        "%first = arith.cmpi eq, %core, %c0 : index\nscf.if %first {",
        local,
        tile("t", "v", "%c0", "1024", "1024xf32"),
        "ktdp.store %x, %t : tensor<1024xf32>, <1024xindex>\n}",
        (GROWS + HANDED_ON).format(d="?", n="%n"),
    ]
    run = Module.parse(function("\n".join(lines), grid="[2]")).function().run
    assert not run(target=SpyreTarget(lx_bytes=8192)).errors
    (found,) = run(target=SpyreTarget(lx_bytes=8188), check=False).errors
    assert (found.code, found.core) == ("KT207", 1)
    assert found.message == "8192 bytes of tiles live here, the scratchpad has 8188"


ALL = "(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)"
GROUPS = "affine_set<(g) : (g >= 0, -g >= 0)>"


def produce(future: str, partial: str, tile: str, inside: str = "") -> str:
    type_ = f"!ktdp.tile_future<{tile}, groups = {GROUPS}>"
    return f"%{future} = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<{ALL}> : {tile} -> {type_} {{\n^bb0(%gid_{future}: index):\n{inside}ktdp.yield_partial %{partial} : {tile}\n}}\n"


def reduce(result: str, future: str, tile: str, dependency: str = "") -> str:
    type_ = f"!ktdp.tile_future<{tile}, groups = {GROUPS}>"
    needs = f"producer_dependency_per_consumer = affine_set<{dependency}>, " if dependency else ""
    return f"%{result} = ktdp.inter_tile_reduce(%{future}) consumer_tiles_per_group = affine_set<{ALL}>, {needs}identity(%zero : {tile}) : {type_} -> {tile} {{\n^bb0(%p: {tile}, %q: {tile}):\n%sum_{result} = arith.addf %p, %q : {tile}\nktdp.yield_reduced %sum_{result} : {tile}\n}}\n"


ZERO = "%zf = arith.constant 0.0 : f32\n%zero = tensor.splat %zf{m} : tensor<{d}xf32>\n"
SELF = "(p)[c] : (p - c == 0)"


@pytest.mark.parametrize("dependency", ["", "(p)[c] : (p >= 0, -p + 3 >= 0)"])
@pytest.mark.parametrize(
    ("between", "inside", "after", "tiles", "op"),
    [
        # The own partial, one that came, their sum.
        ("", "", "", 3, "arith.addf"),
        # The core has the partial anyway: while it is used, and no longer.
        ("", "", "v=t", 4, "arith.addf"),
        # A loop of work between produce and reduce goes on beside the partial.
        ("b=a c=b", "", "v=c", 4, "arith.addf"),
        # A partial made for the others only takes space of its own: t, m, and then a of t.
        ("", "m=t", "", 3, "arith.addf"),
        ("a=t b=a", "m=t", "v=b w=t", 5, "arith.addf"),
        # At the first of the last four t, b to k, g; and m.
        ("b=t c=t d=t k=t g=b h=c i=d j=k", "", "v=t", 6, "math.exp"),
        ("b=t c=t d=t k=t g=b h=c i=d j=k", "m=t", "v=t", 7, "math.exp"),
    ],
)
@pytest.mark.parametrize("extent", ["?", "6"])
def test_partials_count_until_they_are_reduced(
    function: Text, between: str, inside: str, after: str, tiles: int, op: str, extent: str, dependency: str
) -> None:
    def work(words: str) -> str:
        return "".join(f"%{a} = math.exp %{b} : tensor<{extent}xf32>\n" for a, b in (w.split("=") for w in words.split()))  # fmt: skip

    tile, size = f"tensor<{extent}xf32>", "%n" if extent == "?" else ""
    start = (GROWS + ZERO).format(d=extent, n=size, m=f"[{size}]" if size else "")
    if between.startswith("b=a"):
        start += work("a=t")
    body = start + produce("f", "m" if inside else "t", tile, work(inside)) + work(between)
    body += reduce("r", "f", tile, dependency) + work(after)
    found = most(function(body, "%n: index", grid="[4]"), [6])
    assert found[:2] == (tiles * 24, op)


@pytest.mark.parametrize(("kib", "code"), [(396, None), (397, "KT208"), (512, "KT208"), (513, "KT207")])
def test_partials_fit_the_scratchpad(function: Text, kib: int, code: str | None) -> None:
    """A partial that no tile of the core is, beside three tiles."""
    tile = f"tensor<{kib * 256}xf32>"
    work = f"%a = math.exp %x : {tile}\n%b = arith.addf %a, %x : {tile}\n"
    body = f"%one = arith.constant 1.0 : f32\n%e = tensor.empty() : {tile}\n%x = linalg.fill ins(%one : f32) outs(%e : {tile}) -> {tile}\n"
    body += f"%zero = arith.constant dense<0.0> : {tile}\n"
    body += produce("f", "m", tile, f"%m = math.exp %x : {tile}\n") + work + reduce("r", "f", tile)
    (found,) = Module.parse(function(body, grid="[4]")).function().run(check=False).diagnostics or (None,)
    assert (found and found.code) == code
    if found:
        assert found.message.startswith(f"{4 * kib * 1024} bytes of tiles live here, ")
        assert found.op == "arith.addf"


SMALL = "tensor<1x8xf32>"
MIRROR = "(p)[c] : (p + c - 3 == 0)"
X = torch.arange(32.0).reshape(4, 8)
STEPS = "%c1 = arith.constant 1 : index\n%c9 = arith.constant 9 : index\n"


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Text:
    """`%x` is the core's row of the input, `%y` becomes its row of the output."""

    def build(body: str) -> str:
        lines = [
            "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n" + STEPS,
            view("source", "in", "4x8", "f32"),
            view("target", "out", "4x8", "f32"),
            tile("a", "source", "%core, %c0", "1x8", "4x8xf32"),
            f"%x = ktdp.load %a : <1x8xindex> -> {SMALL}\n%zero = arith.constant dense<0.0> : {SMALL}",
            body,
            tile("b", "target", "%core, %c0", "1x8", "4x8xf32"),
            f"ktdp.store %y, %b : {SMALL}, <1x8xindex>",
        ]
        return function("\n".join(lines), "%in: index, %out: index", grid="[4]")

    return build


def run(text: str) -> torch.Tensor:
    return Module.parse(text).function().run([X, torch.zeros(4, 8)]).outputs[0]


LOOP = f"%y = scf.for %t = %c1 to %c9 step %c1 iter_args(%sofar = %x) -> ({SMALL}) {{{{\n{{}}}}}}\n"
BRANCH = f"%k = arith.constant 1 : index\n%odd = arith.andi %t, %k : index\n%go = arith.cmpi eq, %odd, %c0 : index\n%w = scf.if %go -> ({SMALL}) {{\n{reduce('r', 'f', SMALL, MIRROR)}scf.yield %r : {SMALL}\n}} else {{\nscf.yield %sofar : {SMALL}\n}}\nscf.yield %w : {SMALL}\n"
INNER = f"%w = scf.for %u = %c0 to %c1 step %c1 iter_args(%old = %sofar) -> ({SMALL}) {{\n{reduce('r', 'f', SMALL, MIRROR)}scf.yield %r : {SMALL}\n}}\nscf.yield %w : {SMALL}\n"
TWICE = reduce("r", "f", SMALL, MIRROR) + reduce("r2", "f", SMALL, MIRROR) + f"scf.yield %r2 : {SMALL}\n"


@pytest.mark.parametrize("body", [BRANCH, INNER, TWICE], ids=["branch", "inner loop", "twice"])
def test_partials_of_earlier_rounds_are_freed(rows: Text, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the reduce is: who produces again has no use for the round before."""
    held, publish = [], Session.publish

    def watched(session: Session, op: Any, partial: torch.Tensor | None) -> int:
        turn = publish(session, op, partial)
        held.append(len(session.published))
        return turn

    monkeypatch.setattr(Session, "publish", watched)
    assert torch.equal(run(rows(LOOP.format(produce("f", "x", SMALL) + body))), X.flip(0))
    assert len(held) == 32
    assert max(held) <= 12


def test_partials_for_a_core_that_has_ended_are_freed(rows: Text, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes what core 0 produces for core 3 after that has ended its one round."""
    left: list[int] = []
    end = Session.end

    def watched(session: Session) -> None:
        end(session)
        left.append(len(session.published))

    monkeypatch.setattr(Session, "end", watched)
    body = "%c3 = arith.constant 3 : index\n%left = arith.subi %c3, %core : index\n%rounds = arith.addi %left, %c1 : index\n"
    body += f"scf.for %t = %c0 to %rounds step %c1 {{\n{produce('f', 'x', SMALL)}{reduce('r', 'f', SMALL, SELF)}}}\n"
    chain = "(p)[c] : (-p + c >= 0, p >= 0)"
    body = body.replace(SELF, chain) + f"%y = arith.addf %x, %x : {SMALL}\n"
    assert torch.equal(run(rows(body)), 2 * X)
    assert len(left) == 4
    assert left[-1] == 0


CARRIED = f"!ktdp.tile_future<{SMALL}, groups = {GROUPS}>"


def carried(dependency: str) -> str:
    """Every round reduces what the round before produced."""
    body = produce("f", "x", SMALL)
    body += f"%last, %y = scf.for %t = %c1 to %c9 step %c1 iter_args(%h = %f, %sofar = %zero) -> ({CARRIED}, {SMALL}) {{\n"
    body += f"%double = arith.addf %x, %x : {SMALL}\n" + produce("next", "double", SMALL)
    body += reduce("r", "h", SMALL, dependency)
    return (
        body + f"%more = arith.addf %sofar, %r : {SMALL}\nscf.yield %next, %more : {CARRIED}, {SMALL}\n}}\n"
    )


@pytest.mark.parametrize(
    ("dependency", "want"), [("", 15 * X.sum(0).expand(4, 8)), (MIRROR, 15 * X.flip(0)), (SELF, 15 * X)]
)
def test_a_future_carried_round_a_loop(rows: Text, dependency: str, want: torch.Tensor) -> None:
    assert torch.equal(run(rows(carried(dependency))), want)
    # x, the sum so far, the double; of the carried future p in its place, q, and their sum.
    assert most(rows(carried(dependency)), [X, torch.zeros(4, 8)]) == (6 * 32, "arith.addf", None)


def test_a_carried_future_that_one_core_does_not_produce(rows: Text) -> None:
    text = rows(carried(SELF).replace(ALL, ALL.replace("i >= 0", "i - 1 >= 0"), 1))
    with pytest.raises(KtirError) as error:
        run(text)
    found = error.value.diagnostics[-1]
    assert (found.code, found.op) == ("KT224", "ktdp.inter_tile_reduce")
    assert found.message.startswith("core 0 depends on cores [0], which do not produce in group 0")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (f" : {SMALL} -> {CARRIED}", f", groups = {GROUPS} : {SMALL} -> !ktdp.tile_future<{SMALL}>", "Expected '->'"),
        (f" : {SMALL} -> {CARRIED}", f" {{groups = {GROUPS}}} : {SMALL} -> !ktdp.tile_future<{SMALL}>", "Expected '->'"),
        (f"-> {CARRIED}", f"-> !ktdp.tile_future<{SMALL}>, groups = {GROUPS}", "needs a region in braces here"),
    ],
)  # fmt: skip
def test_groups_outside_the_type_of_a_future(rows: Text, before: str, after: str, words: str) -> None:
    text = rows(produce("f", "x", SMALL) + reduce("y", "f", SMALL))
    assert torch.equal(run(text), X.sum(0).expand(4, 8))
    with pytest.raises(KtirError) as error:
        Module.parse(text.replace(before, after, 1))
    found = error.value.diagnostics[0]
    line = next(i for i, written in enumerate(text.splitlines(), 1) if "%f =" in written)
    assert (found.code, found.op, found.line) == ("KT101", "ktdp.inter_tile_produce", line)
    assert words in found.message
