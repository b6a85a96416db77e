"""The latency model: hand-computed costs, sticks, pipelines, reports."""
# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.ktir.latency import HardwareConfig, latency
from tracer.ktir.simulator import Module

Text = Callable[..., str]


def test_rows_of_exponentials(elementwise: Text) -> None:
    # 64 rows of 64 f16 on 32 cores: each core loads and stores 2 sticks each way, 128 bytes a stick, at 4 bytes a
    # cycle; exp is 4 cycles per 64 elements, the addition one.
    body = "%e = math.exp %x : {t}\n%y = arith.addf %e, %x : {t}"
    report = latency(Module.parse(elementwise(64, 64, 1, 32, body)).function())
    assert report.critical.compute == 2 * (4 + 1)
    assert report.critical.memory == 2 * 2 * 128 / 4
    assert report.cycles == 10 + 128
    assert report.bottleneck == "memory"
    assert report.bytes == report.compulsory_bytes == 2 * 64 * 128
    assert report.flops == 64 * 64 * 2
    assert report.balance == 1.0


def test_pipelines(elementwise: Text) -> None:
    function = Module.parse(elementwise(64, 64, 1, 32, "%y = math.exp %x : {t}")).function()
    assert latency(function, pipeline="serial").cycles == 8 + 128
    assert latency(function, pipeline="overlapped").cycles == 128
    assert latency(function, pipeline="overlapped_3way").cycles == 128
    with pytest.raises(ValueError, match="pipeline"):
        latency(function, pipeline="psychic")


def test_unequal_cores(elementwise: Text) -> None:
    report = latency(Module.parse(elementwise(3, 64, 1, 2)).function())
    assert report.balance == pytest.approx(0.75)
    assert [c.bytes for c in report.cores] == [2 * 2 * 128, 2 * 128]


def test_a_row_that_is_no_whole_stick(function: Text, view: Text, tile: Text) -> None:
    # Rows of 40 f16 are 80 bytes: rows 0, 1, 2 take sticks {0}, {0, 1}, {1}; row 1 alone takes two.
    def program(row: int, rows: int) -> str:
        return function(
            "\n".join(
                [
                    f"%c0 = arith.constant 0 : index\n%r = arith.constant {row} : index",
                    view("v", "a", "8x40", "f16"),
                    tile("t", "v", "%r, %c0", f"{rows}x40", "8x40xf16"),
                    f"%x = ktdp.load %t : <{rows}x40xindex> -> tensor<{rows}x40xf16>",
                ]
            ),
            "%a: index",
        )

    def moved(row: int, rows: int) -> int:
        return latency(Module.parse(program(row, rows)).function()).bytes // 128

    assert [moved(0, 1), moved(1, 1), moved(2, 1), moved(0, 3), moved(0, 8)] == [1, 2, 1, 2, 5]


def test_a_column_touches_a_stick_per_row(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("v", "a", "8x64", "f16"),
                tile("t", "v", "%c0, %c0", "8x1", "8x64xf16"),
                "%x = ktdp.load %t : <8x1xindex> -> tensor<8x1xf16>",
            ]
        ),
        "%a: index",
    )
    report = latency(Module.parse(text).function())
    assert report.bytes == 8 * 128
    assert report.compulsory_bytes == 8 * 2


def test_batches_of_matmuls_are_counted(function: Text) -> None:
    text = function(
        "%a = arith.constant dense<1.0> : tensor<4x64x64xf16>\n"
        "%y = linalg.batch_matmul ins(%a, %a : tensor<4x64x64xf16>, tensor<4x64x64xf16>) "
        "outs(%a : tensor<4x64x64xf16>) -> tensor<4x64x64xf16>"
    )
    report = latency(Module.parse(text).function())
    assert report.flops == 2 * 4 * 64**3
    assert report.cycles == 2 * 4 * 64**3 / 1024


def test_a_generic_reduction_counts_its_body_once(function: Text) -> None:
    text = function(
        "%a = arith.constant dense<1.0> : tensor<64x64xf16>\n%z = arith.constant dense<0.0> : tensor<64xf16>\n"
        "%y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], "
        'iterator_types = ["parallel", "reduction"]} ins(%a : tensor<64x64xf16>) outs(%z : tensor<64xf16>) {\n'
        "^bb0(%p: f16, %q: f16):\n%s = arith.addf %p, %q : f16\nlinalg.yield %s : f16\n} -> tensor<64xf16>"
    )
    assert latency(Module.parse(text).function()).flops == 64 * 64


def test_reports(elementwise: Text, tmp_path: Path) -> None:
    report = latency(
        Module.parse(elementwise(64, 64, 1, 32)).function(), config=HardwareConfig(clock_ghz=0.5)
    )
    assert report.microseconds == report.cycles / 500
    data = json.loads(json.dumps(report.to_json()))
    assert data["cycles"] == report.cycles
    assert len(data["cores"]) == 32
    assert {r["op"] for r in data["ops"]} == {"ktdp.load", "ktdp.store", "arith.addf"}
    assert "bound by memory" in report.table()
    place = report.roofline()
    assert place["flops_per_cycle"] <= min(place["compute_roof"], place["memory_roof"])
    pytest.importorskip("matplotlib")
    report.save_roofline(str(tmp_path / "roofline.svg"))
    assert (tmp_path / "roofline.svg").read_text().startswith("<?xml")
