"""Signs of a slip, each beside what looks like it and is meant."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.simulator import Module

Text = Callable[..., str]


def warnings(text: str) -> list[tuple[str, str]]:
    """Codes and messages of what the verifier finds odd."""
    return [(d.code, d.message) for d in Module.parse(text).warnings]


def test_a_loop_that_stores_to_the_same_places(elementwise: Text) -> None:
    text = elementwise(64, 64, 1, 32)
    assert warnings(text) == []
    assert warnings(text.replace("arith.muli %t, %extent", "arith.muli %core, %extent")) == [
        ("KT122", "nothing uses %t: every iteration stores to the same places")
    ]


def test_a_loop_that_repeats_a_sum_is_meant(function: Text) -> None:
    text = function(
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c8 = arith.constant 8 : index\n"
        "%z = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n"
        "%s = scf.for %i = %c0 to %c8 step %c1 iter_args(%p = %z) -> (f32) {\n"
        "%n = arith.addf %p, %one : f32\nscf.yield %n : f32\n}"
    )
    assert warnings(text) == []


def test_a_scratchpad_between_load_and_store_is_meant(function: Text, view: Text, tile: Text) -> None:
    def program(*stores: str) -> str:
        local = view("pad", "c0", "4", "f16").replace("<global>", "<ct_local>")
        body = [
            "%c0 = arith.constant 0 : index",
            view("source", "in", "4", "f16"),
            local,
            view("target", "out", "4", "f16"),
            *(
                tile(name, base, "%c0", "4", "4xf16")
                for name, base in (("a", "source"), ("b", "pad"), ("c", "target"))
            ),
            "%x = ktdp.load %a : <4xindex> -> tensor<4xf16>",
            "ktdp.store %x, %b : tensor<4xf16>, <4xindex>",
            "%y = ktdp.load %b : <4xindex> -> tensor<4xf16>",
            *stores,
        ]
        return function("\n".join(body), "%in: index, %out: index")

    assert warnings(program("ktdp.store %y, %c : tensor<4xf16>, <4xindex>")) == []
    assert ("KT302", "kernel stores nothing to global memory: this view is of a scratchpad") in warnings(
        program()
    )


def test_an_argument_that_nothing_uses(function: Text, view: Text, tile: Text) -> None:
    def program(second: str, arguments: str) -> str:
        body = [
            "%c0 = arith.constant 0 : index",
            view("source", "in", "4", "f16"),
            view("target", second, "4", "f16"),
            tile("a", "source", "%c0", "4", "4xf16"),
            tile("b", "target", "%c0", "4", "4xf16"),
            "%x = ktdp.load %a : <4xindex> -> tensor<4xf16>",
            "ktdp.store %x, %b : tensor<4xf16>, <4xindex>",
        ]
        return function("\n".join(body), arguments)

    # An argument alone may be there for the caller's sake.
    assert warnings(program("out", "%in: index, %out: index, %spare: index")) == []
    assert warnings(program("in", "%in: index, %out: index")) == [
        (
            "KT122",
            "nothing uses argument %out, but %in has several views: %source of line 5 and %target of line 6",
        )
    ]


def test_a_part_that_data_chooses_is_no_omission(function: Text, view: Text, tile: Text) -> None:
    def program(row: str) -> str:
        body = [
            "%c0 = arith.constant 0 : index",
            view("index", "which", "1", "i32"),
            view("target", "out", "8x4", "f16"),
            tile("i", "index", "%c0", "1", "1xi32"),
            "%n = ktdp.load %i : <1xindex> -> tensor<1xi32>",
            "%s = tensor.extract %n[%c0] : tensor<1xi32>\n%r = arith.index_cast %s : i32 to index",
            tile("t", "target", f"{row}, %c0", "1x4", "8x4xf16"),
            "%x = arith.constant dense<1.0> : tensor<1x4xf16>",
            "ktdp.store %x, %t : tensor<1x4xf16>, <1x4xindex>",
        ]
        return function("\n".join(body), "%which: index, %out: index")

    function_ = Module.parse(program("%r")).function()
    assert coverage_findings(function_, [torch.tensor([3], dtype=torch.int32), None]) == []
    # Along the other axis everything is wanted all the same.
    half = program("%r").replace("-d1 + 3 >= 0)>} : memref<8x4xf16>", "-d1 + 2 >= 0)>} : memref<8x4xf16>")
    half = half.replace("1x4xindex", "1x3xindex").replace("tensor<1x4xf16>", "tensor<1x3xf16>")
    core = half.replace("[%r, %c0]", "[%r, %core]").replace(
        "%c0 = ", "%core = ktdp.get_compute_tile_id : index\n%c0 = ", 1
    )
    found = coverage_findings(Module.parse(core).function(), [torch.tensor([3], dtype=torch.int32), None])
    assert [(d.code, d.coordinates) for d in found] == [("KT302", (3, 3))]
