"""Coverage without arithmetic: what is written once, what is read, and where it falls short."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import Missing, coalesced, coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


@pytest.fixture(name="matmul")
def _matmul(function: Text, view: Text, tile: Text) -> Text:
    """C[8, 32] = A[8, 64] B[64, 32] in N tiles of 8 over 4 cores, K in steps of 16 up to `upper`."""

    def build(upper: int = 64, cores: int = 4, n: int = 8) -> str:
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
                    f"%width = arith.constant {n} : index\n%step = arith.constant 16 : index\n%upper = arith.constant {upper} : index",
                    view("va", "a", "8x64", "f16"),
                    view("vb", "b", "64x32", "f16"),
                    view("vc", "c", "8x32", "f32"),
                    "%column = arith.muli %core, %width : index",
                    "%zero = arith.constant dense<0.0> : tensor<8x8xf32>",
                    "%sum = scf.for %k = %c0 to %upper step %step iter_args(%acc = %zero) -> (tensor<8x8xf32>) {",
                    tile("ta", "va", "%c0, %k", "8x16", "8x64xf16"),
                    tile("tb", "vb", "%k, %column", "16x8", "64x32xf16"),
                    "%x = ktdp.load %ta : <8x16xindex> -> tensor<8x16xf16>\n%y = ktdp.load %tb : <16x8xindex> -> tensor<16x8xf16>",
                    "%next = linalg.matmul ins(%x, %y : tensor<8x16xf16>, tensor<16x8xf16>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>",
                    "scf.yield %next : tensor<8x8xf32>\n}",
                    tile("tc", "vc", "%c0, %column", "8x8", "8x32xf32"),
                    "ktdp.store %sum, %tc : tensor<8x8xf32>, <8x8xindex>",
                ]
            ),
            "%a: index, %b: index, %c: index",
            grid=f"[{cores}]",
        )

    return build


def test_a_whole_contraction(matmul: Text) -> None:
    text = matmul()
    found = coverage(Module.parse(text).function())
    assert not found.unread(0, (8, 64), (64, 1))
    assert not found.unread(1, (64, 32), (32, 1))
    assert not found.uncovered_writes(2, (8, 32), (32, 1))
    assert not found.repeated_writes(2, (8, 32), (32, 1))
    a, b = torch.randn(8, 64).half(), torch.randn(64, 32).half()
    out = Module.parse(text).function().run([a, b, torch.zeros(8, 32)]).outputs[0]
    torch.testing.assert_close(out, a.float() @ b.float())


def test_half_of_the_reduced_axis(matmul: Text) -> None:
    found = coverage(Module.parse(matmul(upper=32)).function())
    assert found.unread(0, (8, 64), (64, 1)) == Missing(8 * 32, (0, 32))
    assert found.unread(1, (64, 32), (32, 1)) == Missing(32 * 32, (32, 0))


def test_columns_nobody_writes(matmul: Text) -> None:
    found = coverage(Module.parse(matmul(cores=3)).function())
    assert found.uncovered_writes(2, (8, 32), (32, 1)) == Missing(8 * 8, (0, 24))


def test_columns_written_twice(matmul: Text) -> None:
    found = coverage(Module.parse(matmul(n=4)).function())
    assert found.repeated_writes(2, (8, 32), (32, 1)) == Missing(8 * 12, (0, 4))
    assert found.uncovered_writes(2, (8, 32), (32, 1)) == Missing(8 * 12, (0, 20))


def test_other_layouts_of_the_same_memory(matmul: Text) -> None:
    found = coverage(Module.parse(matmul(cores=3)).function())
    # the same 256 elements as [2, 4, 32] coalesce to the view's layout; a transposed layout does not
    assert found.uncovered_writes(2, (2, 4, 32), (128, 32, 1)) == Missing(64, (0, 0, 24))
    assert found.uncovered_writes(2, (32, 8), (1, 32)) == Missing(64, (24, 0))


def test_accesses_outside_a_view_are_found_without_running(matmul: Text) -> None:
    with pytest.raises(KtirError) as error:
        coverage(Module.parse(matmul(cores=5)).function())
    assert error.value.code == "KT201"


def test_addresses_that_depend_on_data(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("i", "index", "1", "i64"),
                view("o", "out", "4", "f16"),
                tile("it", "i", "%c0", "1", "1xi64"),
                "%n = ktdp.load %it : <1xindex> -> tensor<1xi64>\n%e = tensor.extract %n[%c0] : tensor<1xi64>",
                "%at = arith.index_cast %e : i64 to index",
                tile("ot", "o", "%at", "1", "4xf16"),
                "%z = arith.constant dense<0.0> : tensor<1xf16>\nktdp.store %z, %ot : tensor<1xf16>, <1xindex>",
            ]
        ),
        "%index: index, %out: index",
    )
    run = Module.parse(text).function()
    with pytest.raises(KtirError) as error:
        coverage(run)
    assert error.value.code == "KT304"
    found = coverage(run, [torch.tensor([2]), None])
    assert found.uncovered_writes(1, (4,), (1,)) == Missing(3, (0,))


def test_a_huge_matrix_is_cheap(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
                "%n = arith.constant 128256 : index\n%k = arith.constant 4096 : index\n%c512 = arith.constant 512 : index",
                "%from = arith.muli %core, %c512 : index\n%by = arith.constant 16384 : index",
                view("v", "a", "4096x128256", "f16"),
                "scf.for %j = %from to %n step %by {",
                "scf.for %i = %c0 to %k step %c512 {",
                "%rest = arith.subi %n, %j : index\n%whole = arith.cmpi sge, %rest, %c512 : index",
                "scf.if %whole {",
                tile("t", "v", "%i, %j", "512x512", "4096x128256xf16"),
                "%x = ktdp.load %t : <512x512xindex> -> tensor<512x512xf16>\n} else {",
                tile("u", "v", "%i, %j", "512x256", "4096x128256xf16"),
                "%y = ktdp.load %u : <512x256xindex> -> tensor<512x256xf16>\n}\n}\n}",
            ]
        ),
        "%a: index",
        grid="[32]",
    )
    assert not coverage(Module.parse(text).function()).unread(0, (4096, 128256), (128256, 1))
    short = text.replace("dense", "dense").replace("%k = arith.constant 4096", "%k = arith.constant 3584")
    assert (
        coverage(Module.parse(short).function()).unread(0, (4096, 128256), (128256, 1)).count == 512 * 128256
    )


def test_coalesced_layouts() -> None:
    assert coalesced((2, 4, 32), (128, 32, 1)) == coalesced((256,), (1,)) == coalesced((8, 1, 32), (32, 7, 1))
    assert coalesced((8, 32), (64, 1)) != coalesced((8, 32), (32, 1))
