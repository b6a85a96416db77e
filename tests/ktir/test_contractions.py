"""Each contraction takes its whole axis, whatever else the function reads."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic
from tracer.ktir.simulator import Module

Text = Callable[..., str]
A, B = torch.arange(8.0 * 64).reshape(8, 64) % 7, torch.arange(64.0 * 16).reshape(64, 16) % 5
C0 = "%c0 = arith.constant 0 : index\n%core = ktdp.get_compute_tile_id : index"


def found(text: str) -> list[Diagnostic]:
    return coverage_findings(Module.parse(text).function())


def numbers(*values: int) -> str:
    return "\n".join(f"%c{n} = arith.constant {n} : index" for n in sorted({*values} - {0}))


@pytest.fixture(name="products")
def _products(function: Text, view: Text, tile: Text) -> Text:
    """For every (first, last, bound) the product of A[8, 64] and B[64, 16] over K from first up to last, 16 at a
    time, added to `%s{start}` and stored, one output each.
    """

    def product(number: int, first: str, last: str, start: str) -> str:
        return "\n".join(
            [
                f"%s{number} = scf.for %k{number} = {first} to {last} step %c16 iter_args(%p{number} = {start}) -> (tensor<8x16xf32>) {{",
                tile(f"ta{number}", "va", f"%c0, %k{number}", "8x16", "8x64xf32"),
                f"%x{number} = ktdp.load %ta{number} : <8x16xindex> -> tensor<8x16xf32>",
                tile(f"tb{number}", "vb", f"%k{number}, %c0", "16x16", "64x16xf32"),
                f"%y{number} = ktdp.load %tb{number} : <16x16xindex> -> tensor<16x16xf32>",
                f"%n{number} = linalg.matmul ins(%x{number}, %y{number} : tensor<8x16xf32>, tensor<16x16xf32>) outs(%p{number} : tensor<8x16xf32>) -> tensor<8x16xf32>",
                f"scf.yield %n{number} : tensor<8x16xf32>\n}}",
            ]
        )

    def build(*loops: tuple[str, str, str], stored: tuple[int, ...] = (0, 1), bounds: str = "") -> str:
        lines = [C0, numbers(16, 32, 48, 64), view("va", "a", "8x64", "f32"), view("vb", "b", "64x16", "f32")]
        lines += ["%zero = arith.constant dense<0.0> : tensor<8x16xf32>", bounds]
        lines += [product(i, *loop) for i, loop in enumerate(loops)]
        for i in stored:
            lines += [
                view(f"v{i}", f"o{i}", "8x16", "f32"),
                tile(f"t{i}", f"v{i}", "%c0, %c0", "8x16", "8x16xf32"),
            ]
            lines += [f"ktdp.store %s{i}, %t{i} : tensor<8x16xf32>, <8x16xindex>"]
        arguments = ", ".join(["%a: index", "%b: index", *(f"%o{i}: index" for i in stored)])
        return function("\n".join(lines), arguments)

    return build


WHOLE = ("%c0", "%c64", "%zero")


@pytest.mark.parametrize(
    ("loops", "stored"),
    [
        ([WHOLE, WHOLE], (0, 1)),
        # Halves, and a head and a rest, are parts that are meant.
        ([("%c0", "%c32", "%zero"), ("%c32", "%c64", "%zero")], (0, 1)),
        ([("%c0", "%c48", "%zero"), ("%c48", "%c64", "%s0"), WHOLE], (1, 2)),
        # Windows that overlap, none of which holds the other.
        ([("%c0", "%c48", "%zero"), ("%c16", "%c64", "%zero")], (0, 1)),
    ],
)
def test_parts_that_are_meant(
    products: Text, loops: list[tuple[str, str, str]], stored: tuple[int, ...]
) -> None:
    text = products(*loops, stored=stored)
    assert found(text) == []
    out = Module.parse(text).function().run([A, B, torch.zeros(8, 16), torch.zeros(8, 16)]).outputs[1]
    last = loops[-1]
    first = int(last[0][2:])
    assert torch.equal(out, A[:, first:] @ B[first:])


@pytest.mark.parametrize(("half", "line"), [(0, "%x0 = "), (1, "%x1 = ")])
def test_half_of_the_axis_beside_the_whole(products: Text, half: int, line: str) -> None:
    loops = [WHOLE, WHOLE]
    loops[half] = ("%c0", "%c32", "%zero")
    text = products(*loops)
    lines = text.splitlines()
    numbered = {
        name: next(i for i, row in enumerate(lines, 1) if row.startswith(name))
        for name in (f"%x{half}", f"%y{half}", f"%x{1 - half}", f"%n{half}", f"%s{half}", f"%ta{half}")
    }
    of_a, of_b = found(text)
    assert (of_a.code, of_a.severity, of_a.line, of_a.coordinates) == (
        "KT303",
        "warning",
        numbered[f"%x{half}"],
        (32,),
    )
    assert (of_b.code, of_b.line, of_b.coordinates) == ("KT303", numbered[f"%y{half}"], (32,))
    assert of_a.message.startswith(
        f"32 of 64 positions of a along axis 1 are left out here, and read in line {numbered[f'%x{1 - half}']}:"
        f" linalg.matmul in line {numbered[f'%n{half}']} sums over a part (%x{half}, loaded here, feeds it; check bounds"
        f" and step of the loop in line {numbered[f'%s{half}']}, %c0 = 0 of line 4, %c32 = 32 of line 7, %c16 = 16 of"
        f" line 6, and the tile in line {numbered[f'%ta{half}']})"
    )
    assert of_b.message.startswith("32 of 64 positions of b along axis 0")


def test_a_head_whose_rest_is_missing_beside_the_whole(products: Text) -> None:
    text = products(("%c0", "%c32", "%zero"), ("%c32", "%c48", "%s0"), WHOLE, stored=(1, 2))
    assert [(d.code, d.coordinates) for d in found(text)] == [("KT303", (48,))] * 4
    assert all("16 of 64 positions" in d.message for d in found(text))


def test_a_bound_that_depends_on_the_core_is_meant(products: Text) -> None:
    """A core that takes what lies before its own part, as a causal product does, beside the whole."""
    bound = "%tiles = arith.addi %core, %c1 : index\n%upper = arith.muli %tiles, %c16 : index"
    text = products(("%c0", "%upper", "%zero"), WHOLE, bounds=f"{numbers(1)}\n{bound}")
    assert found(text) == []
    fixed = text.replace("%tiles = arith.addi %core, %c1", "%tiles = arith.addi %c1, %c1")
    assert [d.code for d in found(fixed)] == ["KT303", "KT303"]


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Text:
    """Rows of x[4, 32] over their sum of squares, 8 elements at a time; the sum over `last`, the rest over 32."""

    def build(last: int = 32) -> str:
        return function(
            "\n".join(
                [
                    C0,
                    f"%c8 = arith.constant 8 : index\n%c32 = arith.constant 32 : index\n%last = arith.constant {last} : index",
                    view("vx", "x", "4x32", "f32"),
                    view("vy", "y", "4x32", "f32"),
                    "%zero = arith.constant dense<0.0> : tensor<1xf32>\n%e = tensor.empty() : tensor<1x8xf32>",
                    "%sum = scf.for %k = %c0 to %last step %c8 iter_args(%acc = %zero) -> (tensor<1xf32>) {",
                    tile("t", "vx", "%core, %k", "1x8", "4x32xf32"),
                    "%a = ktdp.load %t : <1x8xindex> -> tensor<1x8xf32>\n%aa = arith.mulf %a, %a : tensor<1x8xf32>",
                    "%next = linalg.reduce { arith.addf } ins(%aa : tensor<1x8xf32>) outs(%acc : tensor<1xf32>) dimensions = [1]",
                    "scf.yield %next : tensor<1xf32>\n}",
                    "%wide = linalg.broadcast ins(%sum : tensor<1xf32>) outs(%e : tensor<1x8xf32>) dimensions = [1]",
                    "scf.for %j = %c0 to %c32 step %c8 {",
                    tile("tj", "vx", "%core, %j", "1x8", "4x32xf32"),
                    "%b = ktdp.load %tj : <1x8xindex> -> tensor<1x8xf32>\n%q = arith.divf %b, %wide : tensor<1x8xf32>",
                    tile("to", "vy", "%core, %j", "1x8", "4x32xf32"),
                    "ktdp.store %q, %to : tensor<1x8xf32>, <1x8xindex>\n}",
                ]
            ),
            "%x: index, %y: index",
            grid="[4]",
        )

    return build


def test_a_sum_of_squares_of_half_a_row(rows: Text) -> None:
    x = torch.arange(128.0).reshape(4, 32) + 1
    whole = rows()
    assert found(whole) == []
    out = Module.parse(whole).function().run([x, torch.zeros(4, 32)]).outputs[0]
    torch.testing.assert_close(out, x / (x * x).sum(1, keepdim=True))
    (only,) = found(rows(16))
    assert (only.code, only.coordinates) == ("KT303", (16,))
    assert "16 of 32 positions of x along axis 1 are left out here" in only.message
    assert "linalg.reduce in line" in only.message


@pytest.mark.parametrize(
    ("extent", "rest", "codes"), [(32, 64, ["KT303", "KT303"]), (64, 64, []), (32, 32, [])]
)
def test_a_tile_that_is_half_of_both_operands(
    function: Text, view: Text, tile: Text, extent: int, rest: int, codes: list[str]
) -> None:
    """C = A[:, :extent] B[:extent], of B of `rest` rows: half of A alone is a part that is meant."""
    text = function(
        "\n".join(
            [
                C0,
                view("va", "a", "8x64", "f32"),
                view("vb", "b", f"{rest}x16", "f32"),
                view("vc", "c", "8x16", "f32"),
                tile("ta", "va", "%c0, %c0", f"8x{extent}", "8x64xf32"),
                tile("tb", "vb", "%c0, %c0", f"{extent}x16", f"{rest}x16xf32"),
                tile("tc", "vc", "%c0, %c0", "8x16", "8x16xf32"),
                f"%x = ktdp.load %ta : <8x{extent}xindex> -> tensor<8x{extent}xf32>\n%y = ktdp.load %tb : <{extent}x16xindex> -> tensor<{extent}x16xf32>",
                "%zero = arith.constant dense<0.0> : tensor<8x16xf32>",
                f"%z = linalg.matmul ins(%x, %y : tensor<8x{extent}xf32>, tensor<{extent}x16xf32>) outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>",
                "ktdp.store %z, %tc : tensor<8x16xf32>, <8x16xindex>",
            ]
        ),
        "%a: index, %b: index, %c: index",
    )
    assert [d.code for d in found(text)] == codes
    for d in found(text):
        assert d.coordinates == (32,)
        assert "32 of 64 positions of" in d.message
