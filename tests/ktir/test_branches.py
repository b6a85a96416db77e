"""`scf.index_switch` and `scf.execute_region`: what they run, what they give back, and who knows of them."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency.model import latency
from tracer.ktir.rules.verifier import public_parser_findings
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.lanes_run import LaneProgram
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]
T = "tensor<4xf32>"
X = torch.tensor([1.0, 2.0, 3.0, 4.0])

SWITCH = f"""%k = arith.index_cast %n : index to i32
%y, %u = scf.index_switch %n -> {T}, index
case 2 {{
  %a = arith.addf %x, %x : {T}
  scf.yield %a, %c0 : {T}, index
}}
case -1 {{
  scf.yield %x, %n : {T}, index
}}
default {{
  %b = arith.mulf %x, %x : {T}
  scf.yield %b, %n : {T}, index
}}"""
ONLY = (
    f"%y = scf.index_switch %n -> {T}\ndefault {{\n  %a = arith.addf %x, %x : {T}\n  scf.yield %a : {T}\n}}"
)
EXECUTE = f"%y, %u = scf.execute_region -> ({T}, index) {{\n  %a = arith.addf %x, %x : {T}\n  scf.yield %a, %n : {T}, index\n}}"


def numbered(through: Text, body: str) -> str:
    return through(body, 4, "f32", "f32").replace("%out: index", "%out: index, %n: index")


@pytest.mark.parametrize(
    ("body", "n", "want"),
    [
        (SWITCH, 2, X + X),
        (SWITCH, -1, X),
        (SWITCH, 0, X * X),
        (SWITCH, 1 << 40, X * X),
        (ONLY, 0, X + X),
        (EXECUTE, 0, X + X),
    ],
)
def test_values(through: Text, body: str, n: int, want: torch.Tensor) -> None:
    function = Module.parse(numbered(through, body)).function()
    assert torch.equal(function.run([X, torch.zeros(4), n]).outputs[0], want)
    seen: list[tuple[str, int]] = []
    args = [X, torch.zeros(4), n]
    function.run(args, trace=lambda _, op, values: seen.append((op.name, len(values))))
    name = "scf.execute_region" if body is EXECUTE else "scf.index_switch"
    assert seen.count((name, 1 if body is ONLY else 2)) == 1
    assert function.lanes is False, "they run core by core"


@pytest.mark.parametrize("body", [SWITCH, ONLY, EXECUTE])
def test_text(through: Text, body: str) -> None:
    module = parse(numbered(through, body))
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    assert parse(printed).is_structurally_equivalent(module)
    (found,) = public_parser_findings(module)
    assert (found.code, found.severity) == ("KT401", "warning")
    assert found.message in ("scf.index_switch is unknown", "scf.execute_region is unknown")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("case -1", "case 2", "duplicate case value"),
        ("scf.yield %x, %n", "scf.yield %x, %k", "yields|returns values of types"),
        ("scf.yield %b, %n : tensor<4xf32>, index", "scf.yield %b : tensor<4xf32>", "yields|returns values"),
    ],
)
def test_a_wrong_switch(through: Text, old: str, new: str, said: str) -> None:
    text = numbered(through, SWITCH)
    changed = text.replace(old, new)
    if "%k" in new:
        changed = changed.replace("%x, %k : tensor<4xf32>, index", "%x, %k : tensor<4xf32>, i32")
    assert changed != text
    with pytest.raises(KtirError, match=said) as caught:
        parse(changed)
    assert caught.value.diagnostics[0].op in ("scf.index_switch", "scf.yield")


def test_a_region_of_several_blocks(through: Text) -> None:
    text = numbered(through, EXECUTE)
    changed = text.replace("scf.yield %a, %n : tensor<4xf32>, index\n", "scf.yield %a, %n : tensor<4xf32>, index\n^more:\nscf.yield %x, %n : tensor<4xf32>, index\n")  # fmt: skip
    assert changed != text
    parse(text)
    with pytest.raises(KtirError, match=r"KT102.*its region must be one block"):
        parse(changed)


def stores(function: Text, view: Text, tile: Text, head: str, branch: str) -> str:
    """Each of four cores copies its row of eight, from where `%p` points, within `branch`."""
    body = [
        "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
        head,
        view("source", "p", "4x8", "f32"),
        view("target", "out", "4x8", "f32"),
        branch.format(
            copy="\n".join(
                [
                    tile("a", "source", "%core, %c0", "1x8", "4x8xf32"),
                    "%x = ktdp.load %a : <1x8xindex> -> tensor<1x8xf32>",
                    tile("b", "target", "%row, %c0", "1x8", "4x8xf32"),
                    "ktdp.store %x, %b : tensor<1x8xf32>, <1x8xindex>",
                ]
            )
        ),
    ]
    return function("\n".join(body), "%in: index, %other: index, %out: index", grid="[4]")


PICK = "%p = scf.index_switch %core -> index\ncase 1 {\nscf.yield %other : index\n}\ndefault {\nscf.yield %in : index\n}\n"
TURN = "%row = scf.index_switch %core -> index\ncase 0 {\n%c3 = arith.constant 3 : index\nscf.yield %c3 : index\n}\ndefault {\n%c1 = arith.constant 1 : index\n%r = arith.subi %core, %c1 : index\nscf.yield %r : index\n}\n"
SAME = "%p = scf.execute_region -> (index) {\nscf.yield %in : index\n}\n%row = scf.execute_region -> (index) {\nscf.yield %core : index\n}\n"


def test_addresses(function: Text, view: Text, tile: Text) -> None:
    """What switches choose are pointers and subscripts: coverage follows them without arithmetic."""
    a, b = torch.arange(32.0).reshape(4, 8), -torch.arange(32.0).reshape(4, 8)
    picked = Module.parse(stores(function, view, tile, PICK + TURN, "{copy}")).function()
    want = torch.stack([b[1], a[2], a[3], a[0]])
    assert torch.equal(picked.run([a, b, torch.zeros(4, 8)], uninitialized=[2]).outputs[0], want)
    assert (picked.stored, picked.loaded) == ((2,), (0, 1))
    seen = coverage(picked)
    assert not seen.uncovered_writes(2, (4, 8), (8, 1))
    assert seen.unread(0, (4, 8), (8, 1)).first == (1, 0)
    assert (seen.unread(0, (4, 8), (8, 1)).count, seen.unread(1, (4, 8), (8, 1)).count) == (8, 24)


def test_effects(function: Text, view: Text, tile: Text) -> None:
    """Stores within: the cores that the case leaves out store nothing."""
    a = torch.arange(32.0).reshape(4, 8)
    branch = "scf.index_switch %core\ncase 3 {{\nscf.yield\n}}\ndefault {{\n{copy}\nscf.yield\n}}"
    run = Module.parse(stores(function, view, tile, SAME, branch)).function().run
    got = run([a, a, torch.full((4, 8), 7.0)])
    assert torch.equal(got.outputs[0], torch.cat([a[:3], torch.full((1, 8), 7.0)]))
    with pytest.raises(KtirError, match=r"KT211.*8 of 32 elements are never written"):
        run([a, a, torch.zeros(4, 8)], uninitialized=[2])
    whole = stores(function, view, tile, SAME, "scf.execute_region {{\n{copy}\nscf.yield\n}}")
    assert torch.equal(Module.parse(whole).function().run([a, a, torch.zeros(4, 8)], uninitialized=[2]).outputs[0], a)  # fmt: skip


def test_tiles_within_count(through: Text) -> None:
    """16 bytes of `%x`, and two tiles of 4096 bytes in the case."""
    wide = "%w = scf.index_switch %n -> f32\ncase 1 {\n%e = tensor.splat %s : tensor<1024xf32>\n%f = math.exp %e : tensor<1024xf32>\n%g = math.exp %f : tensor<1024xf32>\n%h = tensor.extract %g[%c0] : tensor<1024xf32>\nscf.yield %h : f32\n}\ndefault {\nscf.yield %s : f32\n}\n"
    body = (
        f"%s = tensor.extract %x[%c0] : {T}\n{wide}%b = tensor.splat %w : {T}\n%y = arith.addf %x, %b : {T}"
    )
    function = Module.parse(numbered(through, body)).function()
    assert (function.peak[0], function.peak[1].name) == (8192 + 16, "math.exp")
    once = Module.parse(numbered(through, body.replace("math.exp %f", "math.exp %e"))).function()
    assert once.peak[0] == 4096 + 16, "a splat holds nothing, and %f goes when nothing uses it"
    run = latency(function, [X, torch.zeros(4), 1]), latency(function, [X, torch.zeros(4), 0])
    assert run[0].flops - run[1].flops == 2048


def test_neither_runs_elementwise(through: Text) -> None:
    body = f"%y = tensor.generate {{\n^bb0(%i: index):\n  {{0}}\n  %f = arith.constant 1.0 : f32\n  tensor.yield %f : f32\n}} : {T}"
    inner = {
        "scf.index_switch": "%q = scf.index_switch %n -> index\n  default {\n    scf.yield %i : index\n  }",
        "scf.execute_region": "%q = scf.execute_region -> (index) {\n    scf.yield %i : index\n  }",
    }
    for name, text in inner.items():
        with pytest.raises(KtirError, match=r"KT117.*inside a vectorised region is not supported") as caught:
            Module.parse(numbered(through, body.replace("{0}", text))).function().run([X, X.clone(), 0])
        assert caught.value.diagnostics[0].op == name


def test_lanes_stay_what_they_were(elementwise: Text) -> None:
    x = torch.arange(32.0).reshape(4, 8).half()
    plain = Module.parse(elementwise(4, 8, 1, 4)).function()
    body = "%y = scf.execute_region -> ({t}) {{\n%b = arith.addf %x, %x : {t}\nscf.yield %b : {t}\n}}"
    branch = Module.parse(elementwise(4, 8, 1, 4, body)).function()
    assert torch.equal(plain.run([x, x.clone()]).outputs[0], branch.run([x, x.clone()]).outputs[0])
    assert isinstance(plain.lanes, LaneProgram)
    assert branch.lanes is False
