"""Lanes give the bits that running core by core gives, and give way wherever cores or iterations might meet."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.lanes_run import LaneProgram

Text = Callable[..., str]

BODIES = [
    "%y = arith.addf %x, %x : {t}",
    "%e = math.exp %x : {t}\n%y = arith.divf %x, %e : {t}",
    "%z = arith.constant dense<0.5> : {t}\n%c = arith.cmpf ogt, %x, %z : {t}\n%y = arith.select %c, %x, %z : tensor<{tile}x{columns}xi1>, {t}",
    # the row number enters the values
    "%i = arith.index_cast %row : index to i32\n%f = arith.sitofp %i : i32 to f16\n%s = tensor.splat %f : {t}\n%y = arith.mulf %x, %s : {t}",
    # an element of the tile, spread again
    "%v = tensor.extract %x[%c0, %c0] : {t}\n%e = tensor.empty() : {t}\n%s = linalg.fill ins(%v : f16) outs(%e : {t}) -> {t}\n%y = arith.subf %x, %s : {t}",
    # a loop with a carried tile that starts uniform
    "%z = arith.constant dense<1.0> : {t}\n%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index\n%y = scf.for %k = %c0 to %c3 step %c1 iter_args(%acc = %z) -> ({t}) {{\n%b = arith.mulf %acc, %x : {t}\nscf.yield %b : {t}\n}}",
    # lanes part ways
    "%two = arith.constant 2 : index\n%m = arith.remui %t, %two : index\n%odd = arith.cmpi eq, %m, %c0 : index\n%y = scf.if %odd -> ({t}) {{\n%b = arith.addf %x, %x : {t}\nscf.yield %b : {t}\n}} else {{\nscf.yield %x : {t}\n}}",
    # reductions over rows and back
    "%z = arith.constant dense<0.0> : tensor<{columns}xf16>\n%s = linalg.reduce {{ arith.addf }} ins(%x : {t}) outs(%z : tensor<{columns}xf16>) dimensions = [0]\n%e = tensor.empty() : {t}\n%b = linalg.broadcast ins(%s : tensor<{columns}xf16>) outs(%e : {t}) dimensions = [0]\n%y = arith.subf %x, %b : {t}",
]  # fmt: skip


def both(text: str, args: list[Any]) -> tuple[torch.Tensor, torch.Tensor, bool]:
    fast, slow = Module.parse(text).function(), Module.parse(text).function()
    slow.lanes = False
    got = fast.run(args).outputs[0]
    return got, slow.run(args).outputs[0], isinstance(fast.lanes, LaneProgram)


@pytest.mark.parametrize("body", BODIES)
def test_bodies(elementwise: Text, body: str) -> None:
    text = elementwise(24, 16, 2, 5, body.replace("{columns}", "16").replace("{tile}", "2"))
    x = torch.randn(24, 16, generator=torch.Generator().manual_seed(1)).half()
    fast, slow, on_lanes = both(text, [x, torch.zeros_like(x)])
    assert on_lanes
    assert torch.equal(fast, slow)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tiles=st.integers(1, 40),
    tile=st.integers(1, 3),
    columns=st.sampled_from([1, 3, 16]),
    cores=st.integers(1, 32),
    body=st.sampled_from(BODIES),
)
def test_any_division_of_the_work(
    elementwise: Text, tiles: int, tile: int, columns: int, cores: int, body: str
) -> None:
    text = elementwise(
        tiles * tile,
        columns,
        tile,
        cores,
        body.replace("{columns}", str(columns)).replace("{tile}", str(tile)),
    )
    x = torch.randn(tiles * tile, columns, generator=torch.Generator().manual_seed(tiles)).half()
    fast, slow, _ = both(text, [x, torch.zeros_like(x)])
    assert torch.equal(fast, slow)


def test_in_place_rows_stay_on_lanes(elementwise: Text) -> None:
    text = elementwise(24, 16, 2, 5).replace(
        "%target = ktdp.construct_memory_view %out", "%target = ktdp.construct_memory_view %in"
    )
    x = torch.randn(24, 16).half()
    function = Module.parse(text).function()
    assert torch.equal(function.run([x, x]).outputs[0], x + x)
    y = x.clone()
    function.run([y, y.clone()], inplace=True)
    assert torch.equal(y, x + x)


def test_iterations_that_depend_on_each_other_run_in_order(function: Text, view: Text, tile: Text) -> None:
    """a[i + 1] = a[i] + a[i], one core: every iteration reads what the one before wrote."""
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c9 = arith.constant 9 : index",
                view("v", "a", "10", "f32"),
                "scf.for %i = %c0 to %c9 step %c1 {",
                tile("r", "v", "%i", "1", "10xf32"),
                "%x = ktdp.load %r : <1xindex> -> tensor<1xf32>\n%y = arith.addf %x, %x : tensor<1xf32>",
                tile("w", "v", "%i + 1", "1", "10xf32"),
                "ktdp.store %y, %w : tensor<1xf32>, <1xindex>\n}",
            ]
        ),
        "%a: index",
    )
    out = Module.parse(text).function().run([torch.ones(10)]).outputs[0]
    assert out.tolist() == [2.0**i for i in range(10)]


def test_the_last_iteration_to_write_wins(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c9 = arith.constant 9 : index",
                view("v", "a", "10", "f32"),
                view("o", "b", "1", "f32"),
                "scf.for %i = %c0 to %c9 step %c1 {",
                tile("r", "v", "%i", "1", "10xf32"),
                "%x = ktdp.load %r : <1xindex> -> tensor<1xf32>",
                tile("w", "o", "%c0", "1", "1xf32"),
                "ktdp.store %x, %w : tensor<1xf32>, <1xindex>\n}",
            ]
        ),
        "%a: index, %b: index",
    )
    assert Module.parse(text).function().run([torch.arange(10.0), torch.zeros(1)]).outputs[0].item() == 8.0


def test_rows_picked_by_data(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
                "%c4 = arith.constant 4 : index\n%c12 = arith.constant 12 : index",
                view("i", "index", "12", "i64"),
                view("s", "source", "6x8", "f16"),
                view("t", "target", "12x8", "f16"),
                "scf.for %k = %core to %c12 step %c4 {",
                tile("it", "i", "%k", "1", "12xi64"),
                "%n = ktdp.load %it : <1xindex> -> tensor<1xi64>\n%e = tensor.extract %n[%c0] : tensor<1xi64>",
                "%row = arith.index_cast %e : i64 to index",
                tile("st", "s", "%row, %c0", "1x8", "6x8xf16"),
                "%x = ktdp.load %st : <1x8xindex> -> tensor<1x8xf16>",
                tile("tt", "t", "%k, %c0", "1x8", "12x8xf16"),
                "ktdp.store %x, %tt : tensor<1x8xf16>, <1x8xindex>\n}",
            ]
        ),
        "%index: index, %source: index, %target: index",
        grid="[4]",
    )
    index = torch.tensor([5, 0, 3, 3, 1, 2, 4, 5, 0, 0, 1, 2])
    source = torch.randn(6, 8).half()
    fast, slow, on_lanes = both(text, [index, source, torch.zeros(12, 8).half()])
    assert on_lanes
    assert torch.equal(fast, source[index])
    assert torch.equal(slow, source[index])
    index[7] = 6
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run([index, source, torch.zeros(12, 8).half()])
    assert (error.value.code, error.value.diagnostics[0].core) == ("KT201", 3)
