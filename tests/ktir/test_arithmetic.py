"""Exact arithmetic: widths, signs, rounding, casts, constants. Each case is one that the public tool gets wrong."""
# ruff: noqa: E501

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
DTYPES = {
    "f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "i1": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2,
}  # fmt: skip


@pytest.fixture(name="tiles")
def _tiles(through: Text) -> Callable[..., list[Any]]:
    def run(body: str, values: list[Any], source: str, target: str) -> list[Any]:
        text = through(body, len(values), source, target)
        x = torch.tensor(values, dtype=DTYPES[source])
        out = torch.zeros(len(values), dtype=DTYPES[target])
        return Module.parse(text).function().run([x, out], check=False).outputs[0].to(torch.float64).tolist()

    return run


@pytest.fixture(name="scalar")
def _scalar(function: Text, view: Text, tile: Text) -> Callable[[str, str], Any]:
    def run(body: str, element: str) -> Any:
        text = function(
            "\n".join(
                [
                    "%c0 = arith.constant 0 : index",
                    body,
                    view("target", "out", "1", element),
                    f"%t = tensor.splat %y : tensor<1x{element}>",
                    tile("out_tile", "target", "%c0", "1", f"1x{element}"),
                    f"ktdp.store %t, %out_tile : tensor<1x{element}>, <1xindex>",
                ]
            ),
            "%out: index",
        )
        out = torch.zeros(1, dtype=DTYPES[element])
        return Module.parse(text).function().run([out]).outputs[0].item()

    return run


@pytest.mark.parametrize(
    ("body", "element", "expected"),
    [
        ("%a = arith.constant 1.0e5 : f32\n%y = arith.mulf %a, %a : f32", "f32", 1e10),
        ("%a = arith.constant 1.0 : f32\n%b = arith.constant 1.0e-4 : f32\n%y = arith.addf %a, %b : f32", "f32", 1.0001),
        ("%a = arith.constant 1.0 : f32\n%b = arith.constant 3.0 : f32\n%y = arith.divf %a, %b : f32", "f32", 1 / 3),
        ("%a = arith.constant 2.0 : f32\n%b = arith.constant 3.0 : f32\n%y = arith.maximumf %a, %b : f32", "f32", 3.0),
        ("%a = arith.constant -7.0 : f32\n%b = arith.constant 3.0 : f32\n%y = arith.remf %a, %b : f32", "f32", -1.0),
        ("%a = arith.constant 2147483647 : i32\n%b = arith.constant 1 : i32\n%y = arith.addi %a, %b : i32", "i32", -(2**31)),
        ("%a = arith.constant 9007199254740993 : i64\n%b = arith.constant 1 : i64\n%y = arith.divsi %a, %b : i64", "i64", 9007199254740993),
        ("%a = arith.constant -7 : i32\n%b = arith.constant 2 : i32\n%y = arith.divui %a, %b : i32", "i32", 2147483644),
        ("%a = arith.constant -7 : i32\n%b = arith.constant 2 : i32\n%y = arith.divsi %a, %b : i32", "i32", -3),
        ("%a = arith.constant -7 : i32\n%b = arith.constant 2 : i32\n%y = arith.floordivsi %a, %b : i32", "i32", -4),
        ("%a = arith.constant -1 : i32\n%b = arith.constant 0 : i32\n%y = arith.cmpi ult, %a, %b : i32", "i1", False),
        ("%a = arith.constant -8 : i32\n%b = arith.constant 1 : i32\n%y = arith.shrui %a, %b : i32", "i32", 2147483644),
        ("%y = arith.constant true", "i1", True),
        ("%a = arith.constant 3.0e9 : f64\n%y = arith.fptosi %a : f64 to i64", "i64", 3000000000),
        ("%a = arith.constant 100000 : i32\n%y = arith.sitofp %a : i32 to f32", "f32", 100000.0),
        ("%a = arith.constant 1.00390625 : f32\n%y = arith.truncf %a : f32 to bf16", "bf16", 1.0),
        ("%a = arith.constant 0x3C00 : f16\n%y = arith.bitcast %a : f16 to i16", "i16", 0x3C00),
        ("%a = arith.constant true\n%y = arith.extsi %a : i1 to i32", "i32", -1),
        ("%a = arith.constant true\n%y = arith.extui %a : i1 to i32", "i32", 1),
        ("%a = arith.constant 65520.0 : f32\n%y = arith.truncf %a : f32 to f16", "f16", math.inf),
    ],
)  # fmt: skip
def test_scalars(scalar: Callable[[str, str], Any], body: str, element: str, expected: Any) -> None:
    assert scalar(body, element) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("body", "values", "source", "target", "expected"),
    [
        ("%y = arith.sitofp %x : tensor<2xi32> to tensor<2xf32>", [100000, -3], "i32", "f32", [100000.0, -3.0]),
        ("%y = arith.fptosi %x : tensor<2xf64> to tensor<2xi64>", [3e9, -1.5], "f64", "i64", [3e9, -1.0]),
        ("%y = arith.remf %x, %x : tensor<1xf32>", [-7.0], "f32", "f32", [0.0]),
        ("%y = arith.extf %x : tensor<1xf32> to tensor<1xf64>", [0.1], "f32", "f64", [0.10000000149011612]),
        ("%y = arith.truncf %x : tensor<1xf32> to tensor<1xbf16>", [1.00390625], "f32", "bf16", [1.0]),
        ("%y = arith.addi %x, %x : tensor<1xi8>", [100], "i8", "i8", [-56.0]),
        ("%y = arith.divui %x, %x : tensor<1xi32>", [-7], "i32", "i32", [1.0]),
        ("%z = arith.constant dense<2> : tensor<1xi32>\n%y = arith.divui %x, %z : tensor<1xi32>", [-7], "i32", "i32", [2147483644.0]),
        ("%z = arith.constant dense<0> : tensor<1xi32>\n%y = arith.cmpi ult, %x, %z : tensor<1xi32>", [-1], "i32", "i1", [0.0]),
        ("%z = arith.constant dense<0> : tensor<1xi32>\n%y = arith.cmpi slt, %x, %z : tensor<1xi32>", [-1], "i32", "i1", [1.0]),
        ("%z = arith.constant dense<5> : tensor<1xi32>\n%y = arith.maxui %x, %z : tensor<1xi32>", [-1], "i32", "i32", [-1.0]),
        ("%y = arith.index_cast %x : tensor<2xi64> to tensor<2xindex>\n%w = arith.index_cast %y : tensor<2xindex> to tensor<2xi64>", [1, -2], "i64", "i64", None),
        ("%y = arith.bitcast %x : tensor<1xf16> to tensor<1xi16>", [1.0], "f16", "i16", [15360.0]),
        ("%y = arith.extsi %x : tensor<1xi8> to tensor<1xi16>", [-3], "i8", "i16", [-3.0]),
        ("%y = arith.extui %x : tensor<1xi8> to tensor<1xi16>", [-3], "i8", "i16", [253.0]),
        ("%y = arith.trunci %x : tensor<1xi32> to tensor<1xi8>", [300], "i32", "i8", [44.0]),
        ("%y = math.exp2 %x : tensor<1xf32>", [3.0], "f32", "f32", [8.0]),
        ("%y = math.roundeven %x : tensor<2xf32>", [0.5, 2.5], "f32", "f32", [0.0, 2.0]),
        ("%y = math.round %x : tensor<2xf32>", [0.5, -2.5], "f32", "f32", [1.0, -3.0]),
        ("%y = arith.constant dense<[true, false]> : tensor<2xi1>", [1, 2], "i8", "i1", [1.0, 0.0]),
        ("%y = arith.constant dense<true> : tensor<2xi1>", [1, 2], "i8", "i1", [1.0, 1.0]),
        ("%w = arith.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>\n%y = tensor.collapse_shape %w [[0, 1]] : tensor<2x2xi32> into tensor<4xi32>", [0] * 4, "i8", "i32", [1.0, 2.0, 3.0, 4.0]),
        ("%y = arith.mulf %x, %x : tensor<1xf8E4M3FN>", [1.75], "f8E4M3FN", "f8E4M3FN", [3.0]),
        ("%y = arith.addf %x, %x : tensor<1xf8E5M2>", [1.5], "f8E5M2", "f8E5M2", [3.0]),
        ("%y = arith.maximumf %x, %x : tensor<1xf16>", [math.nan], "f16", "f16", [math.nan]),
        ("%z = arith.constant dense<1.0> : tensor<1xf16>\n%y = arith.maxnumf %x, %z : tensor<1xf16>", [math.nan], "f16", "f16", [1.0]),
        ("%z = arith.constant dense<7> : tensor<3xi8>\n%y = arith.ceildivsi %x, %z : tensor<3xi8>", [-128, 15, -15], "i8", "i8", [-18.0, 3.0, -2.0]),
        ("%z = arith.constant dense<0.5> : tensor<2xf32>\n%y = arith.remf %x, %z : tensor<2xf32>", [3.4028234663852886e38, 1.75], "f32", "f32", [0.0, 0.25]),
        ("%w = arith.index_cast %x : tensor<2xi64> to tensor<2xindex>\n%y = arith.index_castui %w : tensor<2xindex> to tensor<2xi1>", [2, 3], "i64", "i1", [0.0, 1.0]),
        ("%w = arith.constant 7 : i64\n%y = tensor.splat %w : tensor<2xi64>", [0, 0], "i8", "i64", [7.0, 7.0]),
    ],
)  # fmt: skip
def test_tiles(
    tiles: Callable[..., list[Any]],
    body: str,
    values: list[Any],
    source: str,
    target: str,
    expected: list[Any] | None,
) -> None:
    if expected is None:
        # The tile form of index_cast: there and back.
        expected, body = [float(v) for v in values], body.replace("%y", "%q").replace("%w", "%y")
    got = tiles(body, values, source, target)
    assert got == pytest.approx(expected, nan_ok=True)


def test_every_step_rounds_to_f16(tiles: Callable[..., list[Any]]) -> None:
    body = "%z = arith.constant dense<2048.0> : tensor<1xf16>\n%w = arith.addf %x, %z : tensor<1xf16>\n%y = arith.subf %w, %z : tensor<1xf16>"
    assert tiles(body, [1.0], "f16", "f16") == [0.0]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("%a = arith.constant 1 : i32\n%b = arith.constant 0 : i32\n%y = arith.divsi %a, %b : i32", "KT214"),
        ("%a = arith.constant 1.0e9 : f32\n%y = arith.fptosi %a : f32 to i16", "KT215"),
        ("%a = arith.constant 1 : i32\n%b = arith.constant 40 : i32\n%y = arith.shli %a, %b : i32", "KT215"),
    ],
)
def test_undefined_results_are_named(scalar: Callable[[str, str], Any], body: str, code: str) -> None:
    with pytest.raises(KtirError) as error:
        scalar(body, "i16" if "i16" in body else "i32")
    assert error.value.code == code


def test_matmul_accumulates_f16_products_in_f32(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("va", "a", "1x1024", "f16"),
                view("vb", "b", "1024x1", "f16"),
                view("vc", "c", "1x1", "f32"),
                tile("ta", "va", "%c0, %c0", "1x1024", "1x1024xf16"),
                tile("tb", "vb", "%c0, %c0", "1024x1", "1024x1xf16"),
                tile("tc", "vc", "%c0, %c0", "1x1", "1x1xf32"),
                "%x = ktdp.load %ta : <1x1024xindex> -> tensor<1x1024xf16>",
                "%w = ktdp.load %tb : <1024x1xindex> -> tensor<1024x1xf16>",
                "%z = arith.constant dense<0.0> : tensor<1x1xf32>",
                "%y = linalg.matmul ins(%x, %w : tensor<1x1024xf16>, tensor<1024x1xf16>) outs(%z : tensor<1x1xf32>) -> tensor<1x1xf32>",
                "%again = linalg.matmul ins(%x, %w : tensor<1x1024xf16>, tensor<1024x1xf16>) outs(%z : tensor<1x1xf32>) -> tensor<1x1xf32>",
                "ktdp.store %again, %tc : tensor<1x1xf32>, <1x1xindex>",
            ]
        ),
        "%a: index, %b: index, %c: index",
    )
    args = [torch.full((1, 1024), 16.0).half(), torch.full((1024, 1), 16.0).half(), torch.zeros(1, 1)]
    # 262144 overflows f16, and `outs` must not have been changed by the first matmul.
    assert Module.parse(text).function().run(args).outputs[0].item() == 262144.0


def test_reduce_leaves_its_init_alone(through: Text) -> None:
    body = """
    %z = arith.constant dense<1.0> : tensor<1xf32>
    %w = tensor.expand_shape %x [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
    %s = linalg.reduce { arith.addf } ins(%w : tensor<1x4xf32>) outs(%z : tensor<1xf32>) dimensions = [1]
    %c = tensor.extract %z[%c0] : tensor<1xf32>
    %d = tensor.extract %s[%c0] : tensor<1xf32>
    %y = tensor.from_elements %c, %d, %c, %d : tensor<4xf32>"""
    x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    out = Module.parse(through(body, 4, "f32", "f32")).function().run([x, torch.zeros(4)]).outputs[0]
    assert out.tolist() == [1.0, 11.0, 1.0, 11.0]
