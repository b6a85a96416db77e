"""Texts at the edge of the language: nothing carried, maps on named ops, names that break off."""
# ruff: noqa: E501

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from conftest import elementwise
from test_fuzz import INDIRECT
from xdsl.printer import Printer

from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]

TILE = "tensor<2x2xf32>"
HEAD = f"""%false = arith.constant 0 : i1
%c0 = arith.constant 0 : index
%c2 = arith.constant 2 : index
%k = arith.constant 1.5 : f32
%x = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : {TILE}
%e = arith.constant dense<0.0> : {TILE}
"""


def generic(text: str) -> str:
    """The same module in MLIR's generic form."""
    out = io.StringIO()
    Printer(out, print_generic_format=True).print_op(parse(text))
    return out.getvalue()


def refusals(text: str) -> list[Diagnostic]:
    with pytest.raises(KtirError) as caught:
        Module.parse(text)
    return list(caught.value.diagnostics)


def returned(text: str) -> list[object]:
    """What the function returns, from the text as it is, printed, and in generic form."""
    spellings = [text, print_module(parse(text)), generic(text)]
    assert print_module(parse(spellings[1])) == spellings[1]
    assert parse(spellings[2]).is_structurally_equivalent(parse(text))
    found = []
    for spelling in spellings:
        ((value, *_),) = Module.parse(spelling).function().run([]).counters["returned"]
        found.append(value.tolist() if hasattr(value, "tolist") else value)
    return found


@pytest.fixture(name="returning")
def _returning(function: Text) -> Text:
    """A function of `body` that returns `%r`."""

    def build(body: str, kind: str = "index") -> str:
        text = function(HEAD + body).replace(") attributes", f") -> {kind} attributes", 1)
        return text.replace("    return\n", f"    return %r : {kind}\n")

    return build


# --- regions with nothing carried

LOOPS = {
    "while without arguments": (
        "%r = scf.while : () -> index {\nscf.condition(%false) %c2 : index\n} do {\n^bb0(%i: index):\nscf.yield\n}",
        2,
    ),
    "while with empty parentheses": (
        "%r = scf.while () : () -> index {\nscf.condition(%false) %c2 : index\n} do {\n^bb0(%i: index):\nscf.yield\n}",
        2,
    ),
    "while without anything": (
        "scf.while : () -> () {\nscf.condition(%false)\n} do {\nscf.yield\n}\n%r = arith.addi %c2, %c2 : index",
        4,
    ),
    "while with attributes": (
        "scf.while : () -> () {\nscf.condition(%false)\n} do {\nscf.yield\n} attributes {a = 1 : i32}\n%r = arith.addi %c2, %c2 : index",
        4,
    ),
    "forall without loops": ("scf.forall () in () {\n}\n%r = arith.addi %c2, %c2 : index", 4),
    "parallel without loops": ("scf.parallel () = () to () step () {\n}\n%r = arith.addi %c2, %c2 : index", 4),
    "for without results": ("scf.for %i = %c0 to %c2 step %c2 iter_args() -> () {\nscf.yield\n}\n%r = arith.addi %c2, %c2 : index", 4),
    "if without results": ("scf.if %false -> () {\n} else {\n}\n%r = arith.addi %c2, %c2 : index", 4),
}  # fmt: skip


@pytest.mark.parametrize(("body", "value"), LOOPS.values(), ids=LOOPS)
def test_regions_that_carry_nothing(returning: Text, body: str, value: int) -> None:
    assert returned(returning(body)) == [value] * 3


MAPPED = "%r = linalg.map {ins}outs(%e : tensor<2x2xf32>) ({args}) {{\n{body}linalg.yield {y} : f32\n}}"


def test_a_map_without_inputs(returning: Text) -> None:
    text = returning(MAPPED.format(ins="", args="", body="", y="%k"), TILE)
    assert returned(text) == [[[1.5, 1.5], [1.5, 1.5]]] * 3
    one = MAPPED.format(ins=f"ins(%x : {TILE}) ", args="%a: f32", body="%n = arith.negf %a : f32\n", y="%n")
    assert returned(returning(one, TILE)) == [[[-1.0, -2.0], [-3.0, -4.0]]] * 3


def test_a_constant_without_elements(returning: Text) -> None:
    text = returning("%r = arith.constant dense<> : tensor<0x2xf32>", "tensor<0x2xf32>")
    assert returned(text) == [[]] * 3


def test_an_executed_region_keeps_its_terminator(returning: Text) -> None:
    text = returning("scf.execute_region {\nscf.yield\n}\n%r = arith.addi %c2, %c2 : index")
    printed = print_module(parse(text))
    assert print_module(parse(printed)) == printed
    assert parse(printed).is_structurally_equivalent(parse(text))


@pytest.mark.parametrize(
    ("loop", "code", "said"),
    [
        ("scf.while : () -> () {\nscf.condition(%false)\n} do {\n}", "KT119", "a region of scf.while is empty; it must end with scf.yield"),
        ("scf.while : () -> () {\nscf.yield\n} do {\nscf.yield\n}", "KT102", "its condition must end with scf.condition, its body with scf.yield"),
        ("scf.while : () -> () {\nscf.condition(%false)\n} do {\nscf.yield %c0 : index\n}", "KT102", "scf.yield passes on index, but the loop is given nothing"),
        ("%w = scf.while : () -> index {\nscf.condition(%false)\n} do {\n^bb0(%i: index):\nscf.yield\n}", "KT102", "scf.condition passes on nothing, but the loop returns index"),
        ("%w = scf.while : () -> index {\nscf.condition(%false) %c0 : index\n} do {\nscf.yield\n}", "KT102", "the body takes nothing, but the loop returns index"),
        ("scf.while : (index) -> () {\nscf.condition(%false)\n} do {\nscf.yield\n}", "KT101", "0 values are carried but 1 have types"),
    ],
)  # fmt: skip
def test_loops_whose_parts_do_not_fit(returning: Text, loop: str, code: str, said: str) -> None:
    text = returning(f"{loop}\n%r = arith.addi %c2, %c2 : index")
    assert [(d.code, d.op, d.message) for d in refusals(text)] == [(code, "scf.while", said)]


# --- named ops

MAPS = "indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]"
TYPES = f"ins(%x, %x : {TILE}, {TILE}) outs(%e : {TILE})"


@pytest.mark.parametrize("name", ["add", "mul", "div", "matmul", "batch_matmul", "reduce", "transpose"])
@pytest.mark.parametrize("spelling", [MAPS, f"{{{MAPS}}}", f"{{a = 1 : i32, {MAPS}}}"])
def test_named_ops_have_their_own_maps(returning: Text, name: str, spelling: str) -> None:
    (only,) = refusals(returning(f"%r = linalg.{name} {spelling} {TYPES} -> {TILE}", TILE))
    assert (only.code, only.op) == ("KT102", f"linalg.{name}")
    assert only.message == "has its own indexing maps; write linalg.generic for others"
    assert only.source.startswith(f"%r = linalg.{name}")


def test_maps_behind_the_operands(returning: Text) -> None:
    (only,) = refusals(returning(f"%r = linalg.add {TYPES} attrs = {{{MAPS}}} -> {TILE}", TILE))
    assert (only.code, only.message) == (
        "KT102",
        "has its own indexing maps; write linalg.generic for others",
    )


def test_a_generic_takes_maps(returning: Text) -> None:
    body = f'%r = linalg.generic {{{MAPS}, iterator_types = ["parallel", "parallel"]}} {TYPES} {{\n^bb0(%a: f32, %b: f32, %c: f32):\n%s = arith.addf %a, %b : f32\nlinalg.yield %s : f32\n}} -> {TILE}'
    assert returned(returning(body, TILE)) == [[[2.0, 5.0], [5.0, 8.0]]] * 3


@pytest.mark.parametrize("spelling", ["{front} {types}", "{types} attrs = {front}"])
def test_attributes_of_named_ops(returning: Text, spelling: str) -> None:
    """MLIR writes them in front of the operands, xDSL behind."""
    operation = spelling.format(front='{a = 7 : i32, doc = "x"}', types=TYPES)
    text = returning(f"%r = linalg.add {operation} -> {TILE}", TILE)
    assert f'linalg.add {{a = 7 : i32, doc = "x"}} {TYPES} -> {TILE}' in print_module(parse(text))
    assert returned(text) == [[[2.0, 4.0], [6.0, 8.0]]] * 3


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (f"add ins(%x : {TILE})", "it takes 2 inputs and one output, not 1 and 1"),
        (f"add ins(%x, %x, %x : {TILE}, {TILE}, {TILE})", "it takes 2 inputs and one output, not 3 and 1"),
        (f"exp ins(%x, %x : {TILE}, {TILE})", "it takes one input and one output, not 2 and 1"),
        (f"copy ins(%x, %x : {TILE}, {TILE})", "it takes one input and one output, not 2 and 1"),
    ],
)
def test_inputs_that_a_named_op_would_drop(returning: Text, op: str, said: str) -> None:
    (only,) = refusals(returning(f"%r = linalg.{op} outs(%e : {TILE}) -> {TILE}", TILE))
    assert (only.code, only.message) == ("KT102", said)
    assert returned(returning(f"%r = linalg.copy ins(%x : {TILE}) outs(%e : {TILE}) -> {TILE}", TILE))[0] == [[1.0, 2.0], [3.0, 4.0]]  # fmt: skip


PAYLOAD = "({\n^bb0(%p: f32, %q: f32):\nlinalg.yield %p : f32\n})"


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (f'"linalg.transpose"(%x, %e) {PAYLOAD} : ({TILE}, {TILE}) -> {TILE}', "property 'permutation' expected in operation 'linalg.transpose'"),
        (f'"linalg.transpose"(%x, %e) <{{permutation = array<i64: 1, 0>}}> {PAYLOAD} : ({TILE}, {TILE}) -> tensor<3xf32>', "the result has the type of the output"),
        (f'"linalg.reduce"(%x, %e) <{{dimensions = array<i64>}}> : ({TILE}, {TILE}) -> {TILE}', "Expected 1 region, but got 0"),
        (f'"linalg.reduce"(%x, %e) <{{dimensions = array<i64>}}> {PAYLOAD} : ({TILE}, {TILE}) -> tensor<3xf32>', "the result has the type of the output"),
        (f'"linalg.broadcast"(%x, %e) <{{dimensions = array<i64>}}> : ({TILE}, {TILE}) -> {TILE}', "Expected 1 region, but got 0"),
    ],
)  # fmt: skip
def test_generic_forms_are_checked_as_the_short_ones(function: Text, op: str, said: str) -> None:
    (only,) = refusals(function(f"{HEAD}%r = {op}"))
    assert (only.code, only.message) == ("KT102", said)


def test_the_generic_form_of_a_transpose(returning: Text) -> None:
    text = returning(f'%r = "linalg.transpose"(%x, %e) <{{permutation = array<i64: 1, 0>}}> {PAYLOAD} : ({TILE}, {TILE}) -> {TILE}', TILE)  # fmt: skip
    assert returned(text) == [[[1.0, 3.0], [2.0, 4.0]]] * 3


# --- texts that break off


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%", "Expected suffix identifier after %"),
        ("#", "Expected suffix identifier after #"),
        ("module {\n  %", "Expected suffix identifier after %"),
        ("-", "an operation is expected here"),
        ("module {\n}\n}", "an operation is expected here"),
        ("module {\n  = }", "an operation or a closing brace is expected here"),
        ("#a", "Expected '=' after the name of an alias"),
        ("#s = affine_set<(d0) : (d0 > 1)>", "a constraint needs >=, <= or == here"),
        ("module {\n  %x = arith.", "arith is a dialect; the name of an operation follows it"),
        ("module {\n  %x = tensor.collap", "there is no operation tensor.collap in KTIR; did you mean tensor.collapse_shape?"),
        ("module {\n  func.func @f(%a: !ktdp.acc", "there is no type or attribute ktdp.acc in KTIR; did you mean ktdp.access_tile?"),
        ("module {\n  func.func @f(%a: !ktdp.access-tile<4xindex>) {\n  }\n}", "there is no type or attribute ktdp.access-tile in KTIR; did you mean ktdp.access_tile?"),
        ("module {\n  func.func @f(%a: memref<4}xf32>) {\n  }\n}", "an x is expected between the extents of a shape"),
    ],
)  # fmt: skip
def test_what_is_said_about_a_text_that_breaks_off(text: str, said: str) -> None:
    assert [d.message for d in refusals(text)] == [said]


INNER = ("{first_char}", "_LIT", "_IDENT", "R_BRACE", "L_PAREN", "object has no attribute", "index out of range", "NoneType")  # fmt: skip


@pytest.mark.parametrize("text", [INDIRECT, elementwise(8, 12, 4, 2)], ids=["indirect", "elementwise"])
def test_every_beginning_and_one_character_more(text: str) -> None:
    """Only our diagnostics, at a line of the text, in words about it."""
    tried = [text[:end] for end in range(0, len(text), 3)]
    tried += [text[:i] + '%#"-(}9x'[i % 8] + text[i:] for i in range(0, len(text), 5)]
    refused = 0
    for candidate in tried:
        try:
            parse(candidate)
        except KtirError as error:
            refused += 1
            for found in error.diagnostics:
                assert 1 <= found.line <= len(candidate.splitlines()) + 1, found
                assert not any(word in found.message for word in INNER), found
    assert refused > len(tried) // 2
