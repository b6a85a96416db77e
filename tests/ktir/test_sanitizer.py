"""Every kind of finding from the smallest program that deserves it, beside one that differs in a word and does not.

Each runs in every form the simulator has: cores together as lanes, lanes that part ways at a conditional, and core
by core, which a loop without order or without a counter brings about.
"""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.lanes_run import LaneProgram

Text = Callable[..., str]

HEAD = """%core = ktdp.get_compute_tile_id : index
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
%zero = arith.constant dense<0.0> : tensor<1xf32>
%one = arith.constant dense<1.0> : tensor<1xf32>
%two = arith.constant dense<2.0> : tensor<2xf32>
%four = arith.constant dense<4.0> : tensor<4xf32>
"""
WHILE = """%once = scf.while (%was = %c0) : (index) -> index {
%less = arith.cmpi slt, %was, %c1 : index
scf.condition(%less) %was : index
} do {
^bb0(%is: index):
%will = arith.addi %is, %c1 : index
scf.yield %will : index
}
"""
FORMS = {
    "together": "{}",
    "parted": "%here = arith.cmpi sge, %core, %c0 : index\nscf.if %here {{\n{}\n}}",
    "forall": "scf.forall (%none) in (1) {{\n}}\n{}",
    "while": WHILE.replace("{", "{{").replace("}", "}}") + "{}",
}
in_every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(name="program")
def _program(function: Text) -> Text:
    def build(form: str, lines: Sequence[str], cores: int = 4, args: str = "%a: index, %b: index") -> str:
        return function(HEAD + FORMS[form].format("\n".join(lines)), args, grid=f"[{cores}]")

    return build


def store(value: str, tile: str, shape: str = "1") -> str:
    return f"ktdp.store %{value}, %{tile} : tensor<{shape}xf32>, <{shape}xindex>"


def load(value: str, tile: str, shape: str = "1") -> str:
    return f"%{value} = ktdp.load %{tile} : <{shape}xindex> -> tensor<{shape}xf32>"


def errors(text: str, form: str, args: Sequence[Any] | None = None, **options: Any) -> list[Diagnostic]:
    """What a run finds; whether it was compiled for lanes is checked too."""
    function = Module.parse(text).function()
    given = args if args is not None else [torch.zeros(64), torch.zeros(64)]
    try:
        result = function.run(given, **options)
    except KtirError as error:
        found = list(error.diagnostics)
    else:
        found = [d for d in result.diagnostics if d.code not in ("KT122", "KT302")]
    assert isinstance(function.lanes, LaneProgram) == (form in ("together", "parted"))
    assert all(d.line > 0 for d in found)
    return found


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


RACES = {
    # name: (lines, the word that is wrong, the word that is right, code, line of the finding)
    "a store that every core makes": (["VIEW a 8", "TILE t a AT 1", "STORE one t"], "%c0", "%core", "KT205", "ktdp.store"),
    "a store that every core makes in a loop": (["VIEW a 8", "scf.for %i = %c0 to %c1 step %c1 {", "TILE t a AT 1", "STORE one t", "}"], "%i", "%core + %i", "KT205", "ktdp.store"),
    "tiles that overlap by the last element": (["VIEW a 20", "TILE t a AT 4", "STORE four t"], "%core * 3", "%core * 4", "KT205", "ktdp.store"),
    "tiles of two views of one memory": (["VIEW a 4x4", "GRID f a 16", "TILE t a %core,%c0 1x4", "TILE u f AT 1", "STORE row t", "STORE one u"], "%core * 4 + 4", "%core * 4 + 3", "KT205", "ktdp.store %row"),
    "a view of another offset": (["VIEW a 16", "MOVED m a 1 16", "TILE t a %core*4 4", "TILE u m AT 1", "STORE four t", "STORE one u"], "%core * 4 + 3", "%core * 4 + 2", "KT205", "ktdp.store %four"),
    "interleaved columns of one element too many": (["STRIDED a 4x4 1,WIDE", "TILE t a %core,%c0 1x4", "STORE row t"], "3", "4", "KT205", "ktdp.store"),
    "a load of what all have stored before": (["VIEW a 8", "VIEW b 8", "TILE t a %core 1", "STORE one t", "TILE u a AT 1", "LOAD x u", "TILE o b %core 1", "STORE x o"], "%c0", "%core", "KT206", "%x = ktdp.load"),
    "a load of what all store afterwards": (["VIEW a 8", "VIEW b 8", "TILE u a AT 1", "LOAD x u", "TILE t a %core 1", "STORE one t", "TILE o b %core 1", "STORE x o"], "%c1", "%core", "KT206", "ktdp.store %one"),
    "the neighbour's last element": (["VIEW a 4x4", "GRID f a 20", "VIEW b 8", "TILE t a %core,%c0 1x4", "STORE row t", "TILE u f AT 1", "LOAD x u", "TILE o b %core 1", "STORE x o"], "%core * 4 + 4", "%core * 4 + 3", "KT206", "ktdp.store %row"),
    "interleaved reads one element too far": (["STRIDED a 4x4 1,4", "GRID f a 64", "VIEW b 8", "TILE u f AT 1", "LOAD x u", "TILE t a %core,%c0 1x4", "STORE row t", "TILE o b %core 1", "STORE x o"], "%core + 5", "%core + 4", "KT206", "ktdp.store %row"),
}  # fmt: skip


def spelled(lines: Sequence[str], view: Text, tile: Text, word: str) -> list[str]:
    """The lines of a case, with the short words that they use written out."""
    shapes: dict[str, str] = {}
    out: list[str] = [
        "%row = tensor.expand_shape %four [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>"
    ]
    for line in lines:
        match line.replace("AT", word.replace(" ", "")).replace("WIDE", word).split():
            case ["VIEW", name, shape]:
                shapes[name] = shape
                out.append(view(f"v{name}", name, shape, "f32"))
            case ["GRID", name, pointer, shape]:
                shapes[name] = shape
                out.append(view(f"v{name}", pointer, shape, "f32"))
            case ["STRIDED", name, shape, strides]:
                shapes[name] = shape
                out.append(view(f"v{name}", name, shape, "f32", strides.replace(",", ", ")))
            case ["MOVED", name, pointer, by, shape]:
                shapes[name] = shape
                out.append(
                    f"%by = arith.constant {by} : index\n%p{name} = arith.addi %{pointer}, %by : index"
                )
                out.append(view(f"v{name}", f"p{name}", shape, "f32"))
            case ["TILE", name, base, subscripts, shape]:
                shapes[f"tile {name}"] = shape
                spaced = subscripts.replace(",", ", ").replace("+", " + ").replace("*", " * ")
                out.append(tile(name, f"v{base}", spaced, shape, f"{shapes[base]}xf32"))
            case ["STORE", value, name]:
                out.append(store(value, name, shapes[f"tile {name}"]))
            case ["LOAD", value, name]:
                out.append(load(value, name, shapes[f"tile {name}"]))
            case _:
                out.append(line)
    return out


@in_every_form
@pytest.mark.parametrize("name", RACES)
def test_races(program: Text, view: Text, tile: Text, name: str, form: str) -> None:
    lines, wrong, right, code, place = RACES[name]
    assert errors(program(form, spelled(lines, view, tile, right)), form) == []
    text = program(form, spelled(lines, view, tile, wrong))
    found = errors(text, form)
    assert code in [d.code for d in found], found
    first = next(d for d in found if d.code == code)
    assert first.line == line_of(text, place), str(first)


@in_every_form
def test_one_core_may_read_what_it_wrote(program: Text, view: Text, tile: Text, form: str) -> None:
    lines = [
        "VIEW a 8",
        "VIEW b 8",
        "TILE t a %core 1",
        "STORE one t",
        "TILE u a %core 1",
        "LOAD x u",
        "TILE o b %core 1",
        "STORE x o",
        "STORE zero t",
    ]
    text = program(form, spelled(lines, view, tile, ""))
    a, b = Module.parse(text).function().run([torch.zeros(8), torch.zeros(8)]).outputs
    assert (a[:4].tolist(), b[:4].tolist()) == ([0.0] * 4, [1.0] * 4)


UNWRITTEN = {
    "never": (["VIEW a 8", "VIEW b 8", "TILE t a %core 1", "STORE one t", "TILE u a AT 1", "LOAD x u", "TILE o b %core 1", "STORE x o"], "%core + 4", "%core", "%x = ktdp.load"),
    "by a later core": (["VIEW a 8", "VIEW b 8", "TILE t a %core 1", "STORE one t", "TILE u a AT 1", "LOAD x u", "TILE o b %core 1", "STORE x o"], "%core + 1", "%core", "%x = ktdp.load"),
    "later by this core": (["VIEW a 8", "VIEW b 8", "TILE t a AT 1", "STORE one t", "TILE u a %core*2 1", "LOAD x u", "TILE o b %core 1", "STORE x o", "TILE s a %core*2 1", "STORE one s"], "%core * 2 + 1", "%core * 2", "%x = ktdp.load"),
    "between rows, where sticks are padded": (["STRIDED a 4x4 8,1", "GRID f a 32", "VIEW b 8", "TILE t a %core,%c0 1x4", "STORE row t", "TILE u f AT 1", "LOAD x u", "TILE o b %core 1", "STORE x o"], "%core * 8 + 4", "%core * 8 + 3", "%x = ktdp.load"),
}  # fmt: skip


@in_every_form
@pytest.mark.parametrize("name", UNWRITTEN)
def test_reads_of_what_nobody_wrote(program: Text, view: Text, tile: Text, name: str, form: str) -> None:
    lines, wrong, right, place = UNWRITTEN[name]
    args = [torch.zeros(32), torch.zeros(8)]
    fine = errors(program(form, spelled(lines, view, tile, right)), form, args, uninitialized=[0])
    assert {d.code for d in fine} <= {"KT211"}
    text = program(form, spelled(lines, view, tile, wrong))
    found = errors(text, form, args, uninitialized=[0])
    assert (found[0].code, found[0].line, found[0].core) == ("KT204", line_of(text, place), 0), str(found[0])


@in_every_form
@pytest.mark.parametrize(
    ("extra", "wrong", "right", "code"),
    [
        ("", "%core + 5", "%core + 4", "KT201"),
        ("", "%core - 1", "%core", "KT201"),
        ("affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>", "%core + 1", "%core", "KT202"),
        ("affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0, d0 mod 2 == 0)>", "%core * 3", "%core * 2", "KT202"),
        ("affine_set<(d0) : (d0 == 0)>", "%core", "%core * 0", "KT202"),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_accesses_outside_views_and_sets(
    program: Text,
    view: Text,
    tile: Text,
    extra: str,
    wrong: str,
    right: str,
    code: str,
    stored: bool,
    form: str,
) -> None:
    def text(word: str) -> str:
        other = tile("o", "plain", "%core", "1", "8xf32")
        one = tile("t", "bounded", word, "1", "8xf32")
        access = [load("x", "o"), store("x", "t")] if stored else [load("x", "t"), store("x", "o")]
        views = [view("bounded", "a", "8", "f32", extra=extra), view("plain", "b", "8", "f32")]
        return program(form, [*views, one, other, *access])

    # One element that every core stores is a race whatever its set.
    if not (stored and right == "%core * 0"):
        assert errors(text(right), form) == []
    found = errors(text(wrong), form)
    op = "ktdp.store" if stored else "ktdp.load"
    assert (found[0].code, found[0].op, found[0].line) == (code, op, line_of(text(wrong), op)), str(found[0])


@in_every_form
@pytest.mark.parametrize(
    ("word", "codes", "missing"),
    [
        ("%core * 2", [], 0),
        ("%core * 2 + 1", ["KT201"], 0),
        # cores 0 and 1 share element 1, so that the last one is left out
        ("%core * 2 - (%core + 3) floordiv 4", ["KT205", "KT211"], 1),
    ],
)
def test_outputs_are_covered(
    program: Text, view: Text, tile: Text, word: str, codes: list[str], missing: int, form: str
) -> None:
    text = program(
        form, [view("v", "a", "8", "f32"), tile("t", "v", word, "2", "8xf32"), store("two", "t", "2")]
    )
    found = errors(text, form, [torch.zeros(8), torch.zeros(8)], uninitialized=[0])
    assert [d.code for d in found] == codes
    assert all(d.line == line_of(text, "ktdp.store") for d in found)
    if missing:
        assert "1 of 8 elements are never written" in found[1].message
        seen = coverage_findings(Module.parse(text).function(), [None, 0])
        assert [(d.code, d.coordinates) for d in seen] == [("KT302", (7,)), ("KT301", (1,))]


@in_every_form
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nan_from_finite_input(program: Text, view: Text, tile: Text, value: float, form: str) -> None:
    text = program(
        form,
        [
            view("v", "a", "4", "f32"),
            view("w", "b", "4", "f32"),
            tile("t", "v", "%core", "1", "4xf32"),
            tile("u", "w", "%core", "1", "4xf32"),
            load("x", "t"),
            "%y = arith.divf %zero, %x : tensor<1xf32>",
            store("y", "u"),
        ],
    )
    x = torch.tensor([1.0, 1.0, value, 1.0])
    found = errors(text, form, [x, torch.zeros(4)])
    want = [("KT210", line_of(text, "%y = arith.divf"), 2)] if value == 0 else []
    assert [(d.code, d.line, d.core) for d in found] == want
    infinite = errors(text, form, [torch.tensor([torch.inf, 0.0, 1.0, 1.0]), torch.zeros(4)])
    assert infinite == []


@in_every_form
@pytest.mark.parametrize("inner", [True, False])
def test_the_limit_of_steps(program: Text, view: Text, tile: Text, inner: bool, form: str) -> None:
    """Core 3 executes most: a loop of 4 + core rounds, of three operations, or of four with one of ten inside."""
    body = [
        tile("t", "v", "%i", "1", "64xf32"),
        load("x", "t"),
        tile("u", "w", "%at + %i", "1", "64xf32"),
        store("x", "u"),
    ]
    nested = ["scf.for %j = %c0 to %c4 step %c1 {", "%k = arith.addi %j, %i : index", "}"] if inner else []
    lines = [
        view("v", "a", "64", "f32"),
        view("w", "b", "64", "f32"),
        "%n = arith.addi %core, %c4 : index\n%c16 = arith.constant 16 : index\n%at = arith.muli %core, %c16 : index",
        "scf.for %i = %c0 to %n step %c1 {",
        *body,
        *nested,
        "}",
    ]
    text = program(form, lines)
    # What else the forms execute in loops: one operation of forall's iteration, seven in two rounds of while.
    extra = {"together": 0, "parted": 0, "forall": 1, "while": 0}[form]
    per_round = 4 + 1 + (1 + 4 * 2 if inner else 0)
    steps = 7 * per_round + extra
    if form == "while":
        spent = Module.parse(program(form, ["%n = arith.addi %core, %c4 : index"])).function()
        for limit in range(40):
            try:
                spent.run([torch.zeros(64)] * 2, max_steps=limit)
            except KtirError:
                continue
            steps += limit
            break
    assert errors(text, form, max_steps=steps) == []
    found = errors(text, form, max_steps=steps - 1)
    assert [(d.code, d.core) for d in found] == [("KT222", 3)]


@in_every_form
def test_the_span_of_a_core(program: Text, view: Text, tile: Text, form: str) -> None:
    """Core 1 reads the first element, as all do, and one that is 256 MiB away, or a stick less."""
    memory = torch.empty((256 << 20) + 256, dtype=torch.int8)
    far = (256 << 20) - 1
    body = [
        "%i = arith.constant dense<1> : tensor<1xi8>",
        view("v", "a", f"{(256 << 20) + 256}", "i8"),
        view("w", "b", "4", "i8"),
        tile("t", "v", "%c0", "1", f"{(256 << 20) + 256}xi8"),
        tile("u", "v", f"%core * {far - 2} + WHERE", "1", f"{(256 << 20) + 256}xi8"),
        "%x = ktdp.load %t : <1xindex> -> tensor<1xi8>\n%y = ktdp.load %u : <1xindex> -> tensor<1xi8>\n%z = arith.addi %x, %y : tensor<1xi8>",
        tile("o", "w", "%core", "1", "4xi8"),
        "ktdp.store %z, %o : tensor<1xi8>, <1xindex>",
    ]
    args = [memory, torch.zeros(4, dtype=torch.int8)]
    for where, want in (("2", []), ("3", [("KT209", 1)])):
        text = program(form, [line.replace("WHERE", where) for line in body], cores=2)
        assert [(d.code, d.core) for d in errors(text, form, args)] == want


@pytest.mark.parametrize(("extent", "code"), [(132, None), (133, "KT208"), (170, "KT208"), (171, "KT207")])
@pytest.mark.parametrize("form", ["forall", "while"])
def test_scratchpad_of_tiles(
    program: Text, view: Text, tile: Text, extent: int, code: str | None, form: str
) -> None:
    """Three tiles of `extent` KiB x 4 at once; so large that lanes are never worth it."""
    n = extent * 1024
    lines = [
        view("v", "a", f"{n}", "f32"),
        tile("t", "v", "%c0", f"{n}", f"{n}xf32"),
        load("x", "t", str(n)),
        f"%y = arith.addf %x, %x : tensor<{n}xf32>\n%z = arith.mulf %y, %x : tensor<{n}xf32>",
        store("z", "t", str(n)),
    ]
    found = errors(program(form, lines, cores=1), form, [torch.zeros(n), torch.zeros(1)], check=False)
    assert [d.code for d in found] == ([code] if code else [])


@pytest.mark.parametrize(("cores", "fits"), [(1, True), (32, True), (33, False), (64, False), (0, False)])
@pytest.mark.parametrize("form", FORMS)
def test_cores_of_a_grid(program: Text, view: Text, tile: Text, cores: int, fits: bool, form: str) -> None:
    lines = [view("v", "a", "64", "f32"), tile("t", "v", "%core", "1", "64xf32"), store("one", "t")]
    for text, options in ((program(form, lines, cores), {}), (program(form, lines), {"grid": [cores]})):
        if fits:
            assert errors(text, form, **options) == []
            continue
        with pytest.raises(KtirError) as error:
            Module.parse(text).function().run([torch.zeros(64), torch.zeros(64)], **options)
        (found,) = error.value.diagnostics
        assert (found.code, found.line) == ("KT111", line_of(text, "func.func"))


LOCAL = "#ktdp.memory_space<ct_local>"


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        ("ct_local", "ct_local", None),
        ("ct_local", "ct_local, ct_id = 0", "KT206"),
        ("ct_local, ct_id = 0", "ct_local", "KT205"),
    ],
)
def test_scratchpads_of_other_cores(
    function: Text, view: Text, tile: Text, first: str, second: str, code: str | None
) -> None:
    """Every core writes its number to its scratchpad and reads it back; or to, or from, that of core 0."""
    lines = [
        "%i = arith.index_cast %core : index to i32\n%f = arith.sitofp %i : i32 to f32\n%mine = tensor.splat %f : tensor<1xf32>",
        view("v", "c4", "1", "f32").replace("global", first),
        view("w", "c4", "1", "f32").replace("global", second),
        view("o", "a", "4", "f32"),
        tile("t", "v", "%c0", "1", "1xf32"),
        tile("u", "w", "%c0", "1", "1xf32"),
        tile("r", "o", "%core", "1", "4xf32"),
        store("mine", "t"),
        load("x", "u"),
        store("x", "r"),
    ]
    text = function(HEAD + "\n".join(lines), "%a: index", grid="[4]")
    result = Module.parse(text).function().run([torch.zeros(4)], check=False)
    assert ([d.code for d in result.errors][:1] or [None]) == [code]
    if code is None:
        assert result.outputs[0].tolist() == [0.0, 1.0, 2.0, 3.0]
    else:
        assert result.errors[0].core == 1


@pytest.mark.parametrize(("at", "code"), [(0, None), (4, "KT204")])
def test_bytes_of_a_scratchpad_under_two_types(
    function: Text, view: Text, tile: Text, at: int, code: str | None
) -> None:
    """Four f16 ones are two numbers of 32 bits, 0x3C003C00 each."""
    lines = [
        f"%half = arith.constant dense<1.0> : tensor<4xf16>\n%at = arith.constant {at} : index",
        view("v", "at", "4", "f16").replace("global", "ct_local"),
        view("w", "c0", "2", "i32").replace("global", "ct_local"),
        view("o", "a", "2", "i32"),
        tile("t", "v", "%c0", "4", "4xf16"),
        tile("u", "w", "%c0", "2", "2xi32"),
        tile("r", "o", "%c0", "2", "2xi32"),
        "ktdp.store %half, %t : tensor<4xf16>, <4xindex>\n%x = ktdp.load %u : <2xindex> -> tensor<2xi32>",
        "ktdp.store %x, %r : tensor<2xi32>, <2xindex>",
    ]
    text = function(HEAD + "\n".join(lines), "%a: index")
    result = Module.parse(text).function().run([torch.zeros(2, dtype=torch.int32)], check=False)
    assert [d.code for d in result.errors] == ([code] if code else [])
    assert code or result.outputs[0].tolist() == [0x3C003C00] * 2


@pytest.mark.parametrize(
    ("kib", "code"), [(100, None), (198, None), (199, "KT208"), (256, "KT208"), (257, "KT207")]
)
def test_a_scratchpad_holds_tiles_and_what_is_stored(
    function: Text, view: Text, tile: Text, kib: int, code: str | None
) -> None:
    """`kib` x 4 KiB stored in the scratchpad, and as much again in the tile that is read back."""
    n = kib * 1024
    lines = [
        f"%x = arith.constant dense<1.0> : tensor<{n}xf32>",
        view("v", "c0", str(n), "f32").replace("global", "ct_local"),
        view("o", "a", str(n), "f32"),
        tile("t", "v", "%c0", str(n), f"{n}xf32"),
        tile("r", "o", "%c0", str(n), f"{n}xf32"),
        store("x", "t", str(n)),
        load("y", "t", str(n)),
        store("y", "r", str(n)),
    ]
    found = Module.parse(function(HEAD + "\n".join(lines), "%a: index")).function()
    result = found.run([torch.zeros(n)], check=False)
    assert [d.code for d in result.diagnostics] == ([code] if code else [])


@pytest.mark.parametrize("deadlock", [False, True])
def test_collectives_taken_in_another_order(function: Text, view: Text, tile: Text, deadlock: bool) -> None:
    """Two collectives of all cores; the odd cores come to them in the same order, or in the opposite one."""
    future = "!ktdp.tile_future<tensor<1xf32>, groups = affine_set<(g) : (g == 0)>>"
    everyone = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)>"
    produce = "%f{0} = ktdp.inter_tile_produce producer_tiles_per_group = {1} : tensor<1xf32> -> {2} {{\n^bb0(%g{0}: index):\nktdp.yield_partial %one : tensor<1xf32>\n}}"
    reduce = "%r{0} = ktdp.inter_tile_reduce(%f{0}) consumer_tiles_per_group = {1}, identity(%zero : tensor<1xf32>) : {2} -> tensor<1xf32> {{\n^bb0(%p{0}: tensor<1xf32>, %q{0}: tensor<1xf32>):\n%s{0} = arith.addf %p{0}, %q{0} : tensor<1xf32>\nktdp.yield_reduced %s{0} : tensor<1xf32>\n}}"
    turns = ["x", "y"]
    # A loop of two rounds: in round i a core comes to x where its number and i say so, to y otherwise.
    first = "%mine = arith.cmpi eq, %i, %from : index"
    lines = [
        view("o", "a", "4", "f32"),
        tile("t", "o", "%core", "1", "4xf32"),
        "%c2 = arith.constant 2 : index",
        f"%from = arith.{'remui' if deadlock else 'muli'} %core, {'%c2' if deadlock else '%c0'} : index",
        "scf.for %i = %c0 to %c2 step %c1 {",
        first,
        "scf.if %mine {",
        produce.format("x", everyone, future),
        reduce.format("x", everyone, future),
        "} else {",
        produce.format("y", everyone, future),
        reduce.format("y", everyone, future),
        "}\n}",
        store("one", "t"),
    ]
    text = function(HEAD + "\n".join(lines), "%a: index", grid="[4]")
    run = Module.parse(text).function().run
    if not deadlock:
        assert run([torch.zeros(4)]).outputs[0].tolist() == [1.0] * 4
        return
    with pytest.raises(KtirError) as error:
        run([torch.zeros(4)])
    found = error.value.diagnostics[-1]
    lines_of = [line_of(text, f"%r{name} =") for name in turns]
    assert (found.code, found.core, found.line) == ("KT212", 0, lines_of[0])
    assert f"core 0 at line {lines_of[0]}, core 1 at line {lines_of[1]}" in found.message
