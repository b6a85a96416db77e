"""What other tools get wrong without a word, entry by entry: the right value here, or a finding with its line.

The name of a case begins with the section of the catalogue of such forms that it belongs to: 1.8 limits of text
parsers, 4.4 wrong values, 5.1 arguments, 5.2 memory, 5.3 malformed text.
"""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.latency.model import latency
from tracer.ktir.rules.verifier import verify
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]
X = torch.tensor([1.0, 2.0, 3.0, 4.0])
ONE = "%c1 = arith.constant 1 : index\n"
PAIR = f"{ONE}%r:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<4xf32>, tensor<4xf32>) {{\nscf.yield %a, %b : tensor<4xf32>, tensor<4xf32>\n}}\n"
SQUARE = "%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n"
FLAT = "\n%y = tensor.collapse_shape %z [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>"
TWICE = "%y = arith.addf %x, %x : tensor<4xf32>"


def found_in(text: str, args: tuple[Any, ...] = (), **options: Any) -> list[Diagnostic]:
    """Everything that is said about a text and a run of it."""
    try:
        module = Module.parse(text)
        function = module.function()
        return [
            *module.warnings,
            *function.run(args or (X, torch.zeros(4)), check=False, **options).diagnostics,
        ]
    except KtirError as error:
        return list(error.diagnostics)


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize(
    ("body", "want"),
    [
        pytest.param(
            PAIR + "%y = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %r#1) -> (tensor<4xf32>) {\n%z = arith.addf %a, %a : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n}",
            [2.0, 4.0, 6.0, 8.0], id="1.8 one of several results starts a loop"),
        pytest.param(PAIR + "%y = arith.mulf %r#0, %r#1 : tensor<4xf32>", [1.0, 4.0, 9.0, 16.0], id="1.8 one of several results in arith"),
        pytest.param(
            "%c-1 = arith.constant -1 : index\n%c = arith.constant 100 : index\n%k = arith.subi %c, %c-1 : index\n%i = arith.index_cast %k : index to i32\n%f = arith.sitofp %i : i32 to f32\n%y = tensor.splat %f : tensor<4xf32>",
            [101.0] * 4, id="1.8 names that end in a sign and a number"),
        pytest.param("%p.q = arith.addf %x, %x : tensor<4xf32>\n%p$q = arith.mulf %p.q, %x : tensor<4xf32>\n%y = arith.subf %p$q, %p.q : tensor<4xf32>", [0.0, 4.0, 12.0, 24.0], id="1.8 names with dots and dollars"),
        pytest.param("%arith.mulf = arith.addf %x, %x : tensor<4xf32>\n%y = arith.subf %arith.mulf, %x {linalg.add} : tensor<4xf32>", X.tolist(), id="1.8 an operation's name inside a name or an attribute"),
        pytest.param("%i = arith.constant 7 : i32\n%f = arith.sitofp %i : i32 to f32 loc(\"k.py\":1:2)\n%y = tensor.splat %f : tensor<4xf32>", [7.0] * 4, id="1.8 locations"),
        pytest.param(
            "%t = arith.constant false\n%y = scf.if %t -> (tensor<4xf32>) {\nscf.yield %x : tensor<4xf32>\n} else {\n%z = arith.addf %x, %x : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n}",
            [2.0, 4.0, 6.0, 8.0], id="1.8 and 4.4.11 else"),
        pytest.param(
            "%t = arith.constant true\n%y = scf.if %t -> (tensor<4xf32>) {\nscf.yield %x : tensor<4xf32>\n}\nelse\n{\n%z = arith.addf %x, %x : tensor<4xf32>\nscf.yield %z : tensor<4xf32>\n}",
            X.tolist(), id="1.8 and 4.4.11 then, else on its own line"),
        pytest.param("%a = arith.constant 1.0e5 : f32\n%b = arith.mulf %a, %a : f32\n%y = tensor.splat %b : tensor<4xf32>", [1e10] * 4, id="4.4.3 scalars of f32"),
        pytest.param("%t = arith.constant true\n%i = arith.extui %t : i1 to i32\n%f = arith.sitofp %i : i32 to f32\n%y = tensor.splat %f : tensor<4xf32>", [1.0] * 4, id="4.4.5 true"),
        pytest.param("%t = arith.constant dense<true> : tensor<4xi1>\n%z = arith.constant dense<0.0> : tensor<4xf32>\n%y = arith.select %t, %x, %z : tensor<4xi1>, tensor<4xf32>", X.tolist(), id="4.4.5 dense<true>"),
        pytest.param("%z = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>" + FLAT, X.tolist(), id="4.4.5 nested lists"),
        pytest.param(
            "%o = arith.constant dense<1.0> : tensor<2x2xf32>\n" + SQUARE + "%m = linalg.matmul ins(%w, %w : tensor<2x2xf32>, tensor<2x2xf32>) outs(%o : tensor<2x2xf32>) -> tensor<2x2xf32>\n%z = arith.subf %m, %o : tensor<2x2xf32>" + FLAT,
            [7.0, 10.0, 15.0, 22.0], id="4.4.6 matmul leaves its outs as it is"),
        pytest.param(
            "%z = arith.constant dense<5.0> : tensor<f32>\n%s = linalg.reduce { arith.addf } ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]\n%a = tensor.extract %s[] : tensor<f32>\n%b = tensor.extract %z[] : tensor<f32>\n%d = arith.subf %a, %b : f32\n%y = tensor.splat %d : tensor<4xf32>",
            [10.0] * 4, id="4.4.6 reduce leaves its outs as it is"),
        pytest.param("%a = arith.constant 7.0 : f32\n%b = arith.constant -7.0 : f32\n%t = arith.constant 3.0 : f32\n%r = arith.remf %b, %t : f32\n%y = tensor.splat %r : tensor<4xf32>", [-1.0] * 4, id="4.4.7 sign of a remainder"),
        pytest.param("%a = arith.constant -1 : i32\n%z = arith.constant 0 : i32\n%l = arith.cmpi ult, %a, %z : i32\n%o = arith.constant dense<0.0> : tensor<4xf32>\n%y = arith.select %l, %o, %x : tensor<4xf32>", X.tolist(), id="4.4.7 unsigned comparison, one condition for a tile"),
        pytest.param("%a = arith.constant 9007199254740993 : i64\n%o = arith.constant 1 : i64\n%q = arith.divsi %a, %o : i64\n%d = arith.subi %q, %a : i64\n%f = arith.sitofp %d : i64 to f32\n%y = tensor.splat %f : tensor<4xf32>", [0.0] * 4, id="4.4.7 division of large integers"),
        pytest.param("%a = arith.constant 3.0e9 : f32\n%i = arith.fptosi %a : f32 to i64\n%f = arith.sitofp %i : i64 to f32\n%y = tensor.splat %f : tensor<4xf32>", [3e9] * 4, id="4.4.7 width of a cast"),
        pytest.param("%a = arith.constant dense<100000> : tensor<4xi32>\n%y = arith.sitofp %a : tensor<4xi32> to tensor<4xf32>", [1e5] * 4, id="4.4.7 integers to f32 tiles"),
    ],
)  # fmt: skip
def test_values(through: Text, body: str, want: list[float]) -> None:
    text = through(body, 4, "f32", "f32")
    for source in (text, print_module(parse(text))):
        assert Module.parse(source).function().run([X, torch.zeros(4)]).outputs[0].tolist() == want


def test_1_8_one_of_several_results_is_stored(through: Text) -> None:
    text = through(f"{PAIR}%y = arith.addf %x, %x : tensor<4xf32>", 4, "f32", "f32")
    text = text.replace("ktdp.store %y", "ktdp.store %r#1")
    assert Module.parse(text).function().run([X, torch.zeros(4)]).outputs[0].tolist() == X.tolist()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        pytest.param("arith.addf %x, %x", "arith.frobnicate %x, %x", "KT117", id="1.8 and 5.3 unknown operation"),
        pytest.param("arith.addf %x, %x", "arith.addf %x, %nope", "KT103", id="1.8 and 5.3 undefined value"),
        pytest.param("arith.addf %x, %x", "arith.addf %x", "KT101", id="1.8 wrong number of operands"),
        pytest.param("arith.addf %x, %x : tensor<4xf32>", "arith.addf %x, %x - tensor<4xf32>", "KT101", id="1.8 an operation that does not parse"),
        pytest.param("arith.addf %x, %x : tensor<4xf32>", "arith.constant dense<nonsense> : tensor<4xf32>", "KT101", id="4.4.5 malformed constant"),
        pytest.param("arith.addf %x, %x : tensor<4xf32>", "arith.constant : tensor<4xf32>", "KT101", id="4.4.5 constant without a value"),
        pytest.param("arith.addf %x, %x : tensor<4xf32>", "arith.constant dense<[1.0, 2.0]> : tensor<4xf32>", "KT101", id="4.4.5 constant with too few values"),
        pytest.param("arith.addf %x, %x : tensor<4xf32>", '"arith.addf"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "KT102", id="5.3 generic form with one operand"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("taken", [True, False])
def test_errors_that_wait_for_nothing(through: Text, old: str, new: str, code: str, taken: bool) -> None:
    """A text is checked whole: also what no core ever reaches."""
    branch = "%t = arith.constant false\nscf.if %t {\n%u = arith.addf %x, %x : tensor<4xf32>\n}\n"
    text = through(branch + TWICE.replace("addf", "mulf"), 4, "f32", "f32")
    if taken:
        text = text.replace("constant false", "constant true")
    wrong = text.replace(old, new, 1)
    found = found_in(wrong)
    assert [d for d in found_in(text) if d.severity == "error"] == []
    assert (found[0].code, found[0].line) == (code, line_of(wrong, new)), str(found[0])


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        pytest.param("memory_space<global>}", "memory_space<global>", "KT101", None, id="1.8, 4.4.10 and 5.3 missing brace"),
        pytest.param("#ktdp.memory_space<global>", "#ktdp.memory_space<HBM>", "KT101", None, id="4.4.10 and 5.3 unknown memory space"),
        pytest.param("#ktdp.memory_space<global>", "#ktdp.spyre_memory_space<global>", "KT101", None, id="4.4.10 a space of the other spelling"),
        pytest.param("#ktdp.memory_space<global>", "#ktdp.memory_spaces<global>", "KT101", None, id="4.4.10 a space that is misspelled"),
        pytest.param("#ktdp.memory_space<global>", '"global"', "KT101", None, id="4.4.10 a space as a string"),
        pytest.param("grid = [1]", "grid = [1, 1, 1, 1]", "KT111", None, id="4.4.10 grid of four axes"),
        pytest.param("grid = [1]", "grid = array<i64: 2>", "KT111", None, id="4.4.10 grid as an array"),
        pytest.param("grid = [1]", "grid = [0]", "KT111", None, id="4.4.10 grid without cores"),
        pytest.param("grid = [1]", "grid = [1000]", "KT111", None, id="4.4.10 grid of too many cores"),
        pytest.param("(d0 >= 0, -d0 + 3 >= 0)>, memory", "(d0 >= 0, -d9 + 3 >= 0)>, memory", "KT101", None, id="5.3 affine name"),
        pytest.param(", access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>", "", "KT101", None, id="5.3 missing access_tile_set"),
        pytest.param("!ktdp.access_tile<4xindex>", "!ktdp.access_tile<4xf16>", "KT101", None, id="5.3 tile of another element"),
        pytest.param("sizes: [4]", "sizes: [4, 1]", "KT102", None, id="5.3 rank of sizes"),
        pytest.param("sizes: [4]", "sizes: [5]", "KT102", None, id="5.3 value of sizes"),
        pytest.param("strides: [1]", "strides: [1, 1]", "KT102", None, id="5.3 rank of strides, one too many"),
        pytest.param("strides: [1]", "strides: []", "KT102", None, id="5.3 rank of strides, one too few"),
        pytest.param("%y = arith", "%y, %z = arith", "KT101", None, id="5.3 number of results"),
        pytest.param("%x, %x : tensor<4xf32>", "%x, %x : tensor<2xf32>", "KT104", None, id="5.3 shape of an operand"),
        pytest.param("<4xindex> -> tensor<4xf32>", "<4xindex> -> tensor<8xf32>", "KT104", "%y = arith.addf", id="5.3 declared shape of a load"),
        pytest.param("affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<4xf32> ->", "affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>} : memref<4xf32> ->", "KT113", None, id="5.3 set smaller than the tile"),
        pytest.param("affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<4xf32> ->", "affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0, d0 mod 3 == 0)>} : memref<4xf32> ->", "KT113", None, id="5.3 number of points of a set"),
        pytest.param("%source[%c0]", "%source[1]", "KT201", "%x = ktdp.load", id="5.3 a literal subscript is one"),
        pytest.param("%source[%c0] {", "%source[%c0] symbols(%c0) {", "KT102", None, id="5.3 a symbol that the set does not have"),
        pytest.param("%source[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>}", "%source[%c0] symbols(%c0) {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>}", "KT113", "%x = ktdp.load", id="5.3 a symbolic tile that is too small"),
    ],
)  # fmt: skip
def test_5_3_malformed_text(through: Text, old: str, new: str, code: str, place: str | None) -> None:
    text = through(TWICE, 4, "f32", "f32")
    assert old in text
    wrong = text.replace(old, new, 1)
    assert found_in(text) == []
    found = [d for d in found_in(wrong) if d.severity == "error"]
    assert (found[0].code, found[0].line) == (code, line_of(wrong, place or new or "%in_tile")), str(found[0])
    assert found[0].source == wrong.splitlines()[found[0].line - 1]


def test_5_3_a_tile_of_a_tensor_is_a_part_of_it(through: Text) -> None:
    body = "%t = ktdp.construct_access_tile %x[%c0 + 2] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>} : tensor<4xf32> -> !ktdp.access_tile<2xindex>\n%p = ktdp.load %t : <2xindex> -> tensor<2xf32>\n%y = tensor.concat dim(0) %p, %p : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>"
    text = through(body, 4, "f32", "f32")
    assert Module.parse(text).function().run([X, torch.zeros(4)]).outputs[0].tolist() == [3.0, 4.0] * 2
    beyond = found_in(text.replace("%c0 + 2", "%c0 + 3"))
    assert [(d.code, d.line) for d in beyond] == [("KT201", line_of(text, "%p = ktdp.load"))]


def test_5_1_arguments(through: Text) -> None:
    text = through(TWICE, 4, "f32", "f32")
    out = torch.zeros(4)
    args: list[tuple[tuple[Any, ...], str]] = [
        ((X,), "KT216"),
        ((X, out, out), "KT216"),
        (([1.0, 2.0, 3.0, 4.0], out), "KT216"),
        ((X.half(), out), "KT216"),
        ((X.int(), out), "KT216"),
        ((X.double(), out), "KT216"),
        ((X.bool(), out), "KT216"),
        ((X.to(torch.int8), out), "KT216"),
        ((np.zeros(4, dtype=np.float64), out), "KT216"),
        ((4096, out), "KT221"),
        ((0, out), "KT221"),
        ((X[:3].clone(), out), "KT203"),
        ((X, out[:3].clone()), "KT203"),
    ]
    for given, code in args:
        found = found_in(text, given)
        assert (found[0].code, found[0].line > 0) == (code, True), (given, str(found[0]))
    # The rank of a tensor is the caller's business; so are its strides, that views count from its first element.
    assert found_in(text, (X.reshape(2, 2), out)) == []
    with pytest.raises(KtirError, match="no function nope; the module has kernel"):
        Module.parse(text).function("nope")
    with pytest.raises(KtirError, match=r"KT115.*: there is no function$"):
        Module.parse("module {\n}\n").function()
    two = text.rstrip().removesuffix("}") + "func.func @other() attributes {grid = [1]} {\nreturn\n}\n}\n"
    assert Module.parse(two).function("other").name == "other"
    with pytest.raises(KtirError, match=r"KT115.* the module has several functions, name one: kernel, other"):
        Module.parse(two).function()


def test_4_4_13_a_collective_and_those_who_take_no_part(function: Text, view: Text, tile: Text) -> None:
    """Cores 0 and 1 of four sum their rows; with a dependency set that is a box; timed as well."""
    future = "!ktdp.tile_future<tensor<1x8xf32>, groups = affine_set<(g) : (g == 0)>>"
    some = "affine_set<(i)[g] : (i >= 0, -i + 1 >= 0, g == 0)>"
    box = "affine_set<(p)[c] : (p >= 0, -p + 1 >= 0)>"
    text = function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c2 = arith.constant 2 : index",
                view("source", "in", "4x8", "f32"),
                view("target", "out", "2x8", "f32"),
                tile("a", "source", "%core, %c0", "1x8", "4x8xf32"),
                "%x = ktdp.load %a : <1x8xindex> -> tensor<1x8xf32>\n%zero = arith.constant dense<0.0> : tensor<1x8xf32>",
                f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {some} : tensor<1x8xf32> -> {future} {{",
                "^bb0(%gid: index):\nktdp.yield_partial %x : tensor<1x8xf32>\n}",
                f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {some}, producer_dependency_per_consumer = {box}, identity(%zero : tensor<1x8xf32>) : {future} -> tensor<1x8xf32> {{",
                "^bb0(%p: tensor<1x8xf32>, %q: tensor<1x8xf32>):\n%s = arith.addf %p, %q : tensor<1x8xf32>\nktdp.yield_reduced %s : tensor<1x8xf32>\n}",
                "%here = arith.cmpi slt, %core, %c2 : index\nscf.if %here {",
                tile("b", "target", "%core, %c0", "1x8", "2x8xf32"),
                "ktdp.store %r, %b : tensor<1x8xf32>, <1x8xindex>\n}",
            ]
        ),
        "%in: index, %out: index",
        grid="[4]",
    )
    x = torch.arange(32.0).reshape(4, 8)
    for source in (text, text.replace(f"producer_dependency_per_consumer = {box}, ", "")):
        out = Module.parse(source).function().run([x, torch.zeros(2, 8)]).outputs[0]
        assert torch.equal(out, (x[0] + x[1]).expand(2, 8))
        # A partial of 32 bytes takes half a cycle to the one partner; the others send nothing.
        report = latency(Module.parse(source).function())
        assert [core.comm for core in report.cores] == [0.5, 0.5, 0.0, 0.0]


def test_4_4_14_operations_of_contractions_and_generics(function: Text) -> None:
    matmul = "linalg.batch_matmul ins(%a, %a : tensor<4x8x8xf16>, tensor<4x8x8xf16>) outs(%a : tensor<4x8x8xf16>) -> tensor<4x8x8xf16>"
    reduced = (
        "linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], "
        'iterator_types = ["parallel", "reduction"]} ins(%b : tensor<8x8xf16>) outs(%z : tensor<8xf16>) {\n'
        "^bb0(%p: f16, %q: f16):\n%s = arith.addf %p, %q : f16\nlinalg.yield %s : f16\n} -> tensor<8xf16>"
    )
    head = "%a = arith.constant dense<1.0> : tensor<4x8x8xf16>\n%b = arith.constant dense<1.0> : tensor<8x8xf16>\n%z = arith.constant dense<0.0> : tensor<8xf16>\n"
    for op, operations in ((matmul, 2 * 4 * 8**3), (reduced, 64)):
        assert latency(Module.parse(function(f"{head}%y = {op}")).function()).flops == operations


@pytest.mark.parametrize(
    ("subscripts", "code", "where"),
    [
        pytest.param("%c0, %c0", None, None, id="4.4.8 inside"),
        pytest.param("%c3, %c0", "KT201", (4, 0), id="5.2 past the end, in rows"),
        pytest.param(
            "%c0, %c1 * 6", "KT201", (0, 8), id="4.4.8 and 5.2 columns that would wrap into the next row"
        ),
        pytest.param("%c0 - 1, %c0", "KT201", (-1, 0), id="5.2 before the beginning"),
        pytest.param("%far, %c0", "KT201", (1000000000, 0), id="5.2 far away"),
        pytest.param("%c0, %c1 * 64", "KT201", (0, 64), id="5.2 the next stick"),
    ],
)
@pytest.mark.parametrize("store", [False, True])
def test_5_2_accesses(
    function: Text, view: Text, tile: Text, subscripts: str, code: str | None, where: Any, store: bool
) -> None:
    whole, part = ("target", "source") if store else ("source", "target")
    pointers = {"source": "in", "target": "out"}
    shapes = {whole: "4x8", part: "2x4"}
    body = [
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n%far = arith.constant 1000000000 : index",
        *(view(name, pointers[name], shapes[name], "f16") for name in ("source", "target")),
        tile("t", whole, subscripts, "2x4", "4x8xf16"),
        tile("u", part, "%c0, %c0", "2x4", "2x4xf16"),
        f"%x = ktdp.load %{'u' if store else 't'} : <2x4xindex> -> tensor<2x4xf16>",
        f"ktdp.store %x, %{'t' if store else 'u'} : tensor<2x4xf16>, <2x4xindex>",
    ]
    text = function("\n".join(body), "%in: index, %out: index")
    # Memory beyond the view is there: only the view says what may be reached.
    memory = {name: torch.arange(4096.0).half() for name in ("source", "target")}
    found = found_in(text, (memory["source"], memory["target"]))
    op = "ktdp.store" if store else "ktdp.load"
    want = [(code, op, line_of(text, op), where)] if code else []
    assert [(d.code, d.op, d.line, d.coordinates) for d in found] == want


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        pytest.param(0, None, id="5.2 no offset"),
        pytest.param(1, "KT203", id="5.2 an element too far"),
        pytest.param(64, "KT203", id="5.2 the next argument"),
        pytest.param(1 << 40, "KT203", id="5.2 far away"),
        pytest.param(-1, "KT203", id="5.2 the argument before"),
    ],
)
@pytest.mark.parametrize("name", ["in", "out"])
def test_5_2_pointers_that_leave_their_buffer(
    through: Text, offset: int, code: str | None, name: str
) -> None:
    body = f"{TWICE}\n"
    text = through(body, 4, "f32", "f32")
    moved = f"%by = arith.constant {offset} : index\n%moved = arith.addi %{name}, %by : index\n%source"
    text = text.replace("%source", moved, 1).replace(f"view %{name},", "view %moved,")
    found = found_in(text)
    op = "ktdp.load" if name == "in" else "ktdp.store"
    assert [(d.code, d.op, d.line) for d in found] == ([(code, op, line_of(text, op))] if code else [])


@pytest.mark.parametrize("index", [[3, 0, 1, 2], [3, 0, -1, 2], [3, 0, 4, 2], [3, 0, 1 << 20, 2]])
@pytest.mark.parametrize("scatter", [False, True])
def test_5_2_gather_and_scatter_indices(
    function: Text, view: Text, tile: Text, index: list[int], scatter: bool
) -> None:
    indirect = "%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %rows[ind(%index[%p]), (%q)] {variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 1 >= 0)>} : memref<4x2xf32>, memref<4xi32> -> !ktdp.access_tile<4x2xindex>"
    source, target = ("u", "t") if scatter else ("t", "u")
    body = [
        "%c0 = arith.constant 0 : index",
        view("index", "i", "4", "i32"),
        view("rows", "a", "4x2", "f32"),
        view("plain", "b", "4x2", "f32"),
        indirect,
        tile("u", "plain", "%c0, %c0", "4x2", "4x2xf32"),
        f"%x = ktdp.load %{source} : <4x2xindex> -> tensor<4x2xf32>",
        f"ktdp.store %x, %{target} : tensor<4x2xf32>, <4x2xindex>",
    ]
    text = function("\n".join(body), "%i: index, %a: index, %b: index")
    # Rows beyond the view exist in memory, and must not be reached.
    a, b = torch.arange(64.0).reshape(32, 2), torch.arange(100.0, 164.0).reshape(32, 2)
    run = Module.parse(text).function().run
    rows = torch.tensor(index, dtype=torch.int32)
    if min(index) >= 0 and max(index) < 4:
        got = run([rows, a, b]).outputs[0][:4]
        assert torch.equal(got[index] if scatter else got, b[:4] if scatter else a[index])
        return
    with pytest.raises(KtirError) as error:
        run([rows, a, b])
    (found,) = error.value.diagnostics
    wrong = next(i for i in index if not 0 <= i < 4)
    assert (found.code, found.coordinates) == ("KT201", (wrong, 0))
    assert found.line == line_of(text, "%t = ktdp.construct_indirect")


def test_5_2_elements_that_nothing_has_filled(through: Text) -> None:
    text = through(
        "%e = tensor.empty() : tensor<4xf32>\n%y = arith.addf %x, %e : tensor<4xf32>", 4, "f32", "f32"
    )
    (found,) = verify(parse(text))
    assert (found.code, found.line) == ("KT204", line_of(text, "%y = "))
    local = text.replace(
        "#ktdp.memory_space<global>} : memref<4xf32>\n%target",
        "#ktdp.memory_space<ct_local>} : memref<4xf32>\n%target",
    )
    local = local.replace("view %in,", "view %c0,").replace(
        "%e = tensor.empty() : tensor<4xf32>\n%y = arith.addf %x, %e", "%y = arith.addf %x, %x"
    )
    unwritten = found_in(local)
    assert [(d.code, d.line) for d in unwritten if d.severity == "error"] == [
        ("KT204", line_of(local, "%x = ktdp.load"))
    ]
