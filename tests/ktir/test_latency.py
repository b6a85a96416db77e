"""The latency model: hand-computed costs, sticks, pipelines, reports."""
# ruff: noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.ktir.latency.model import PIPELINES, CoreCost, HardwareConfig, latency
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


def test_the_public_model_loses_a_batch(function: Text) -> None:
    text = function(
        "%a = arith.constant dense<1.0> : tensor<4x64x64xf16>\n"
        "%y = linalg.batch_matmul ins(%a, %a : tensor<4x64x64xf16>, tensor<4x64x64xf16>) "
        "outs(%a : tensor<4x64x64xf16>) -> tensor<4x64x64xf16>"
    )
    assert latency(Module.parse(text).function(), mode="ktir_cpu").flops == 2 * 4 * 64 * 64


def test_a_generic_reduction_counts_its_body_once(function: Text) -> None:
    text = function(
        "%a = arith.constant dense<1.0> : tensor<64x64xf16>\n%z = arith.constant dense<0.0> : tensor<64xf16>\n"
        "%y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], "
        'iterator_types = ["parallel", "reduction"]} ins(%a : tensor<64x64xf16>) outs(%z : tensor<64xf16>) {\n'
        "^bb0(%p: f16, %q: f16):\n%s = arith.addf %p, %q : f16\nlinalg.yield %s : f16\n} -> tensor<64xf16>"
    )
    assert latency(Module.parse(text).function()).flops == 64 * 64
    # Once more for the fold and the initial value of each row, once for each result.
    assert latency(Module.parse(text).function(), mode="ktir_cpu").flops == 2 * 64 * 64 + 64


def test_a_body_is_computed_over_the_axes_that_it_depends_on(function: Text) -> None:
    text = function(
        "%n = arith.constant 3 : index\n%z = arith.constant dense<0> : tensor<8x16xindex>\n"
        "%y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], "
        'iterator_types = ["parallel", "parallel"]} outs(%z : tensor<8x16xindex>) {\n'
        "^bb0(%q: index):\n%i = linalg.index 0 : index\n%j = linalg.index 1 : index\n"
        "%m = arith.muli %n, %n : index\n%a = arith.addi %i, %m : index\n%b = arith.addi %j, %m : index\n"
        "%s = arith.muli %a, %b : index\nlinalg.yield %s : index\n} -> tensor<8x16xindex>"
    )
    # Nothing for the scalar product, a row, a column, all of it; the public model counts the operation, too.
    assert latency(Module.parse(text).function()).flops == 8 + 16 + 8 * 16
    assert latency(Module.parse(text).function(), mode="ktir_cpu").flops == 8 + 16 + 2 * 8 * 16


def test_scalars_that_are_no_addresses_cost_an_element(function: Text) -> None:
    text = function(
        "%f = arith.constant 2.0 : f32\n%c = arith.constant 2 : index\n%b = arith.constant true\n"
        "%x = arith.mulf %f, %f : f32\n%r = math.rsqrt %x : f32\n%g = arith.cmpf olt, %x, %r : f32\n"
        "%i = arith.muli %c, %c : index\n%k = arith.select %b, %c, %i : index"
    )
    strict = latency(Module.parse(text).function())
    assert strict.critical.compute == (1 + 4 + 1) / 64
    assert latency(Module.parse(text).function(), mode="ktir_cpu").critical.compute == (1 + 4 + 1 + 1) / 64


def test_integer_tiles_of_one_element(function: Text) -> None:
    text = function("%a = arith.constant dense<1> : tensor<1xi32>\n%b = arith.addi %a, %a : tensor<1xi32>")
    assert latency(Module.parse(text).function()).flops == 1
    assert latency(Module.parse(text).function(), mode="ktir_cpu").flops == 0


@pytest.mark.parametrize("combiner", ["addf", "maximumf"])
@pytest.mark.parametrize("extent", [1, 5, 64])
def test_a_reduction_applies_its_body_once_an_element(function: Text, combiner: str, extent: int) -> None:
    text = function(
        f"%a = arith.constant dense<1.0> : tensor<3x{extent}xf16>\n%z = arith.constant dense<0.0> : tensor<3xf16>\n"
        f"%y = linalg.reduce ins(%a : tensor<3x{extent}xf16>) outs(%z : tensor<3xf16>) dimensions = [1] "
        f"(%p: f16, %q: f16) {{\n%s = arith.{combiner} %p, %q : f16\nlinalg.yield %s : f16\n}}"
    )
    for mode in ("strict", "ktir_cpu"):
        assert latency(Module.parse(text).function(), mode=mode).flops == 3 * extent


def test_data_movement_shares_a_pipe() -> None:
    core = CoreCost(compute=10.0, memory=8.0, comm=4.0)
    assert [core.cycles(p) for p in PIPELINES] == [22.0, 12.0, 10.0]


def test_an_unknown_mode_is_refused(elementwise: Text) -> None:
    with pytest.raises(ValueError, match="mode must be one of strict, ktir_cpu"):
        latency(Module.parse(elementwise(64, 64, 1, 32)).function(), mode="loose")


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
    assert "us, serial)" in report.table()
    assert "0.25 operations/byte, 31.5 operations/cycle, 98% of the memory roof" in report.table()


def test_a_mix_of_units_has_its_own_roof(function: Text, view: Text, tile: Text) -> None:
    # 2 * 64^3 matrix operations take 512 cycles, 64^2 vector operations 64: together fewer a cycle than the
    # matrix unit does alone, and more than the vector unit.
    text = function(
        "%a = arith.constant dense<1.0> : tensor<64x64xf16>\n"
        "%y = linalg.matmul ins(%a, %a : tensor<64x64xf16>, tensor<64x64xf16>) "
        "outs(%a : tensor<64x64xf16>) -> tensor<64x64xf16>\n%z = arith.addf %y, %y : tensor<64x64xf16>"
    )
    report = latency(Module.parse(text).function())
    place = report.roofline()
    assert place["compute_roof"] == place["flops_per_cycle"] == (2 * 64**3 + 64**2) / (512 + 64)
    assert place["memory_roof"] is None
    assert place["flops_per_byte"] is None
    assert "no memory traffic" in report.table()
    json.dumps(report.to_json(), allow_nan=False)


@pytest.mark.parametrize("suffix", ["svg", "png"])
@pytest.mark.parametrize("body", ["%y = arith.bitcast %x : {t} to {t}", "%y = math.exp %x : {t}"])
def test_the_roofline_is_plotted(elementwise: Text, tmp_path: Path, suffix: str, body: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"roofline.{suffix}"
    report = latency(Module.parse(elementwise(64, 64, 1, 32, body)).function())
    report.save_roofline(str(path))
    drawn = path.read_bytes()
    assert drawn.startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")
    if suffix == "svg":
        words = ["operations / byte of memory traffic", "operations / cycle", "memory: 128 bytes/cycle"]
        for word in [*words, "operations/byte" if report.flops else "no operations to place"]:
            assert f"<!-- {word}".encode() in drawn or word.encode() in drawn
