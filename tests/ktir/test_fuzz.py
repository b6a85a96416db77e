"""Mutated texts end in our diagnostics or in a module that prints and parses again; nothing else is raised.

`KTIR_FUZZ=20000` runs more of them than the default.
"""

# ruff: noqa: E501
from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable

import pytest

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.text import parse, print_module
from tracer.ktir.verifier import verify

Text = Callable[..., str]

COUNT = int(os.environ.get("KTIR_FUZZ", "400"))
BATCHES = 8
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


def mutate(text: str, rnd: random.Random) -> str:
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


def test_the_seed_text_round_trips() -> None:
    module = parse(INDIRECT)
    text = print_module(module)
    assert parse(text).is_structurally_equivalent(module)
    assert print_module(parse(text)) == text


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutations(elementwise: Text, batch: int) -> None:
    loop = "%z = arith.constant dense<1.0> : {t}\n%y = scf.for %k = %c0 to %cores step %cores iter_args(%acc = %z) -> ({t}) {{\n%b = arith.mulf %acc, %x : {t}\nscf.yield %b : {t}\n}}"
    texts = [INDIRECT, elementwise(12, 64, 4, 2), elementwise(12, 64, 4, 2, loop)]
    rnd = random.Random(batch)
    for _ in range(COUNT // BATCHES):
        text = mutate(rnd.choice(texts), rnd)
        with contextlib.suppress(KtirError):
            module = parse(text)
            verify(module)
            printed = print_module(module)
            assert print_module(parse(printed)) == printed


VIEW = """func.func @f(%a: index) attributes {grid = [1]} {
  %c0 = arith.constant 0 : index
  %v = ktdp.construct_memory_view %a, sizes: [4], strides: [1] {coordinate_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<4xf32>
  %t = ktdp.construct_access_tile %v[%c0] {access_tile_order = affine_map<(d0) -> (d0)>, access_tile_set = affine_set<(d0) : (d0 >= 0, -d0 + 3 >= 0)>} : memref<4xf32> -> !ktdp.access_tile<4xindex>
  %x = ktdp.load %t : <4xindex> -> tensor<4xf32>
  %y = "tensor.expand_shape"(%x) <{reassociation = [[0 : i64, 1 : i64]], static_output_shape = array<i64: 4, 1>}> : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}
"""


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
