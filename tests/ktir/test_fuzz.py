"""Mutated texts end in our diagnostics or in a module that prints and parses again; nothing else is raised.

`KTIR_FUZZ=20000` runs more of them than the default, `KTIR_FUZZ_SEED=7` others; where `KTIR_CPU_EXAMPLES`
names the public examples, they are mutated too.
"""

# ruff: noqa: E501
from __future__ import annotations

import io
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.printer import Printer

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.rules.verifier import public_parser_findings, verify
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]

COUNT = int(os.environ.get("KTIR_FUZZ", "400"))
SEED = int(os.environ.get("KTIR_FUZZ_SEED", "0"))
BATCHES = 8
HARVESTED = Path(__file__).parents[2] / "harvested"
EXAMPLES = os.environ.get("KTIR_CPU_EXAMPLES", "")
TOKENS = [
    "%", "(", ")", "{", "}", "[", "]", "<", ">", "-1", "0", "99999999999999999999", "index", "f16", "?", "x",
    "=", ":", "->", '"', "affine_map", "#", "!", "0x", "1.5", "e", "ktdp.", "arith.addi", "module", "\\",
    "^bb0", "d9", "mod", "floordiv", "-", "\x00", "\n", "é",
]  # fmt: skip

INDIRECT = """
#all = affine_set<(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 7 >= 0)>
module {
  func.func @kernel(%i: index, %s: index, %n: !ktdp.runtime_arg<index, upperbound = 8>) attributes {grid = [2, 1]} {
    %x, %y = ktdp.get_compute_tile_id : index, index
    %m = ktdp.runtime_arg_extract value from %n : !ktdp.runtime_arg<index, upperbound = 8> -> index
    %vi = ktdp.construct_memory_view %i, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.spyre_memory_space<HBM>} : memref<4xi32>
    %vs = ktdp.construct_memory_view %s, sizes: [%m, 8], strides: [8, 1] {coordinate_set = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 7 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<?x8xf16>
    %t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %vs[ind(%vi[%p]), (%q floordiv 2 + %x)] {variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = #all} : memref<?x8xf16>, memref<4xi32> -> !ktdp.access_tile<4x8xindex>
    %v = ktdp.load %t : <4x8xindex> -> tensor<4x8xf16>
    %f = ktdp.inter_tile_produce producer_tiles_per_group = affine_set<(i)[g] : (i - g >= 0)> : tensor<4x8xf16> -> !ktdp.tile_future<tensor<4x8xf16>, groups = affine_set<(g) : (g == 0)>> {
    ^bb0(%g: index):
      ktdp.yield_partial %v : tensor<4x8xf16>
    }
    %r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = affine_set<(i)[g] : (i - g >= 0)>, identity(%v : tensor<4x8xf16>) : <(tensor<4x8xf16>), groups = affine_set<(g) : (g == 0)>> -> tensor<32xf16> {
    ^bb0(%a: tensor<4x8xf16>, %b: tensor<4x8xf16>):
      %c = arith.addf %a, %b : tensor<4x8xf16>
      ktdp.yield_reduced %c : tensor<4x8xf16>
    }
    return
  }
}
"""


TOKEN = re.compile(r"%[\w$.]+|[\w.]+|->|\S")
NUMBERS = [
    "0", "1", "-1", "2", "7", "99", "4294967296", "-9223372036854775808", "99999999999999999999999", "0x7FFF",
    "1.5e400",
]  # fmt: skip


def characters(text: str, rnd: random.Random) -> str:
    for _ in range(rnd.choice([1, 1, 1, 2, 4])):
        start = rnd.randrange(len(text))
        end = min(len(text), start + rnd.choice([1, 1, 2, 5, 20, 80]))
        match rnd.randrange(6):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + rnd.choice(TOKENS) + text[start:]
            case 2:
                text = text[:start] + rnd.choice(TOKENS) + text[end:]
            case 3:
                text = text[:start] + text[start:end] * 2 + text[end:]
            case 4:
                text = text[:start]
            case _:
                other = rnd.randrange(len(text))
                text = text[:start] + text[other : other + end - start] + text[end:]
        text = text or " "
    return text


def lines(text: str, rnd: random.Random) -> str:
    rows = text.splitlines()
    for _ in range(rnd.choice([1, 1, 2])):
        i, j = rnd.randrange(len(rows)), rnd.randrange(len(rows))
        match rnd.randrange(4):
            case 0:
                del rows[i]
            case 1:
                rows.insert(j, rows[i])
            case 2:
                rows[i], rows[j] = rows[j], rows[i]
            case _:
                rows[i] = rows[i][: rnd.randrange(len(rows[i]) + 1)]
        rows = rows or [""]
    return "\n".join(rows)


def numbers(text: str, rnd: random.Random) -> str:
    spot = rnd.choice(list(re.finditer(r"\d+", text)))
    return text[: spot.start()] + rnd.choice(NUMBERS) + text[spot.end() :]


def words(text: str, rnd: random.Random) -> str:
    """One name, keyword or sign becomes another of the same text, none, or itself twice."""
    spots = list(TOKEN.finditer(text))
    spot, other = rnd.choice(spots), rnd.choice(spots)
    new = rnd.choice([other.group(), other.group(), "", spot.group() * 2, rnd.choice(TOKENS)])
    return text[: spot.start()] + new + text[spot.end() :]


MUTATORS = (characters, lines, numbers, words)


def generic(text: str) -> str:
    out = io.StringIO()
    Printer(out, print_generic_format=True).print_op(parse(text))
    return out.getvalue()


def test_the_seed_text_round_trips() -> None:
    module = parse(INDIRECT)
    text = print_module(module)
    assert parse(text).is_structurally_equivalent(module)
    assert print_module(parse(text)) == text


VIEW = """func.func @f(%a: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %a, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %t = ktdp.construct_access_tile %v[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %x = ktdp.load %t : <4xindex> -> tensor<4xf32>
  %y = "tensor.expand_shape"(%x) <{reassociation = [[0 : i64, 1 : i64]], static_output_shape = array<i64: 4, 1>}> : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}
"""


@pytest.fixture(scope="module", name="seeds")
def _seeds() -> list[str]:
    small = [p for p in sorted(HARVESTED.rglob("*.ktir")) if p.stat().st_size < 6000]
    files = small[:: max(1, len(small) // 12)]
    files += (
        [p for p in sorted(Path(EXAMPLES).rglob("*.mlir")) if p.stat().st_size < 6000] if EXAMPLES else []
    )
    return [INDIRECT, VIEW, *(p.read_text() for p in files)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutations(elementwise: Text, seeds: list[str], batch: int) -> None:
    loop = "%z = arith.constant dense<1.0> : {t}\n%y = scf.for %k = %c0 to %cores step %cores iter_args(%acc = %z) -> ({t}) {{\n%b = arith.mulf %acc, %x : {t}\nscf.yield %b : {t}\n}}"
    rnd = random.Random(SEED * BATCHES + batch)
    plain = [*seeds, elementwise(12, 64, 4, 2), elementwise(12, 64, 4, 2, loop)]
    texts = plain + [generic(text) for text in rnd.sample(plain, 6)]
    for _ in range(COUNT // BATCHES):
        text = rnd.choice(MUTATORS)(rnd.choice(texts), rnd)
        try:
            check(text)
        except BaseException as error:
            error.add_note(text)
            raise


def check(text: str) -> None:
    try:
        module = parse(text)
    except KtirError as error:
        found = list(error.diagnostics)
        assert found
    else:
        found = verify(module) + public_parser_findings(module)
        printed = print_module(module)
        assert print_module(parse(printed, verify=False)) == printed
    assert all(diagnostic.line for diagnostic in found), found


@pytest.mark.parametrize(
    ("old", "new", "code", "line"),
    [
        # the number under which dynamic extents are kept, in both forms
        ("strides: [1]", "strides: [-9223372036854775808]", "KT101", 3),
        ("array<i64: 4, 1>", "array<i64: -9223372036854775808, 1>", "KT102", 6),
        # a constant that nobody can hold
        (
            "%c0 = arith.constant 0 : index",
            "%z = arith.constant dense<0> : tensor<99999999999999xi64>\n%c0 = arith.constant 0 : index",
            "KT101",
            2,
        ),
        # a type whose range is a number of 500 megabytes
        ("array<i64: 4, 1>", "array<i4294967296: 4, 1>", "KT101", 6),
        ("-> tensor<4xf32>", "-> tensor<4xi4294967296>", "KT101", 5),
        # an attribute whose dialect and name ran together
        ("#ktdp.memory_space<global>", "#ktdpemory_space<global>", "KT112", 3),
        # a set that cannot be enumerated in 64 bits
        ("(d0 >= 0, -d0 + 3 >= 0)>} :", "(d0 * 99999999999999999999 >= 0, d0 mod 4 == d0)>} :", "KT113", 4),
    ],
)
def test_what_mutations_found(old: str, new: str, code: str, line: int) -> None:
    assert [d for d in verify(parse(VIEW)) if d.severity == "error"] == []
    assert old in VIEW
    try:
        found = verify(parse(VIEW.replace(old, new)))
    except KtirError as error:
        found = list(error.diagnostics)
    assert (found[0].code, found[0].line) == (code, line), str(found[0])


def test_an_extent_that_a_run_tells_is_not_compared() -> None:
    wrong = VIEW.replace("access_tile<4xindex>", "access_tile<5xindex>").replace("%t : <4x", "%t : <5x")
    assert [d.code for d in verify(parse(wrong, verify=False)) if d.severity == "error"] == ["KT113"]
    dynamic = VIEW.replace("-> !ktdp.access_tile<4xindex>", "-> !ktdp.access_tile<?xindex>")
    dynamic = dynamic.replace("%t : <4xindex> -> tensor<4xf32>", "%t : <?xindex> -> tensor<?xf32>")
    dynamic = "\n".join(line for line in dynamic.splitlines() if "expand_shape" not in line)
    assert [d.code for d in verify(parse(dynamic)) if d.severity == "error"] == []


def test_a_function_name_that_needs_quotes() -> None:
    text = 'func.func @")"() attributes {grid = [1]} {\nreturn\n}\n'
    printed = print_module(parse(text))
    assert 'func.func @")"() attributes' in printed
    assert print_module(parse(printed)) == printed
    assert "func.func @f() attributes" in print_module(parse(text.replace('")"', "f")))
