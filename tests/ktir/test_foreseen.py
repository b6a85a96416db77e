"""What the text foretells of a run is among the run's diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tracer.ktir.coverage import findings
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.run import Function

Text = Callable[..., str]


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Callable[[], Function]:
    """The sums of the 8 columns of x over `%n` of its 16 rows, 4 rows at a time, on a core that stores 4."""

    def build() -> Function:
        lines = [
            "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
            "%c4 = arith.constant 4 : index\n%column = arith.muli %core, %c4 : index",
            view("vx", "x", "16x8", "f32"),
            view("vy", "y", "8", "f32"),
            "%zero = arith.constant dense<0.0> : tensor<4xf32>",
            "%sum = scf.for %k = %c0 to %n step %c4 iter_args(%acc = %zero) -> (tensor<4xf32>) {",
            tile("tx", "vx", "%k, %column", "4x4", "16x8xf32"),
            "%part = ktdp.load %tx : <4x4xindex> -> tensor<4x4xf32>",
            "%next = linalg.reduce { arith.addf } ins(%part : tensor<4x4xf32>)",
            "outs(%acc : tensor<4xf32>) dimensions = [0]",
            "scf.yield %next : tensor<4xf32>\n}",
            tile("ty", "vy", "%column", "4", "8xf32"),
            "ktdp.store %sum, %ty : tensor<4xf32>, <4xindex>",
        ]
        text = function("\n".join(lines), "%x: index, %n: index, %y: index", grid="[2]")
        return Module.parse(text).function()

    return build


def run(function: Function, n: int = 16, grid: Sequence[int] | None = None, **options: Any) -> list[str]:
    """Codes of a run whose result is that of the rows and columns that the text takes."""
    x = torch.arange(128.0).reshape(16, 8)
    result = function.run([x, n, torch.zeros(8)], grid=grid, **options)
    columns = 8 if grid is None else 4 * grid[0]
    assert result.outputs[0].tolist() == [*x[:n].sum(0)[:columns].tolist(), *[0.0] * (8 - columns)]
    return [d.code for d in result.diagnostics]


def test_a_sum_over_a_part(rows: Callable[[], Function]) -> None:
    function = rows()
    assert [run(function, n) for n in (16, 12, 16)] == [[], ["KT303"], []]


def test_an_output_left_out(rows: Callable[[], Function]) -> None:
    function = rows()
    assert [run(function, grid=grid) for grid in ([2], [1], None)] == [[], ["KT302"], []]
    (found,) = function.run([torch.zeros(16, 8), 16, torch.zeros(8)], grid=[1]).diagnostics
    assert (found.severity, found.coordinates) == ("warning", (4,))


@pytest.mark.parametrize("options", [{"sanitize": False}, {"mode": "ktir_cpu"}, {"foresee": False}])
def test_not_without_the_sanitizer(rows: Callable[[], Function], options: dict[str, Any]) -> None:
    assert run(rows(), 12, [1]) == ["KT302", "KT303"]
    assert run(rows(), 12, [1], **options) == []


def test_it_is_found_once(rows: Callable[[], Function], monkeypatch: pytest.MonkeyPatch) -> None:
    function, seen = rows(), []
    real = findings.coverage_findings

    def counted(*args: Any, **options: Any) -> Any:
        seen.append(args)
        return real(*args, **options)

    monkeypatch.setattr(findings, "coverage_findings", counted)
    assert [run(function, n) for n in (12, 12, 8, 12)] == [["KT303"]] * 4
    assert len(seen) == 2


def test_one_function_of_several(function: Text, view: Text, tile: Text) -> None:
    """What the text says of another function is not said of this one."""

    def one(name: str, value: str) -> str:
        body = [
            "%c0 = arith.constant 0 : index\n%e = tensor.empty() : tensor<4xf32>",
            f"%x = arith.constant dense<1.0> : tensor<4xf32>\n%y = arith.addf %x, {value} : tensor<4xf32>",
            view("v", "p", "4", "f32"),
            tile("t", "v", "%c0", "4", "4xf32"),
            "ktdp.store %y, %t : tensor<4xf32>, <4xindex>",
        ]
        text = function("\n".join(body), "%p: index").replace("@kernel", f"@{name}")
        return text.replace("module {\n", "").rstrip()[:-1]

    module = Module.parse("module {\n" + one("good", "%x") + one("bad", "%e") + "}\n")
    found = {name: module.function(name).run([torch.zeros(4)]).diagnostics for name in module.functions}
    assert {name: [d.code for d in ds] for name, ds in found.items()} == {"good": [], "bad": ["KT204"]}
