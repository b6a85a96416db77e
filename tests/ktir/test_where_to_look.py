"""A finding names the lines that its cause may be in: conditions, other views, the other core's access."""

# ruff: noqa: E501
from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


def line_of(text: str, start: str) -> int:
    (line,) = (i for i, row in enumerate(text.splitlines(), 1) if row.strip().startswith(start))
    return line


@pytest.fixture(name="halves")
def _halves(function: Text, view: Text, tile: Text) -> Text:
    """Core by core y[4 core:] = x[4 core:], from one branch below core 2, from the other above; both in a loop."""

    def copy(name: str) -> str:
        return "\n".join(
            [
                tile(f"t{name}", "vx", "%at", "4", "16xf32"),
                f"%x{name} = ktdp.load %t{name} : <4xindex> -> tensor<4xf32>",
                tile(f"u{name}", "vy", "%at", "4", "16xf32"),
                f"ktdp.store %x{name}, %u{name} : tensor<4xf32>, <4xindex>",
            ]
        )

    def build(other: bool = True, last: int = 2) -> str:
        lines = [
            f"%core = ktdp.get_compute_tile_id : index\n%c4 = arith.constant 4 : index\n%two = arith.constant {last} : index",
            view("vx", "x", "16", "f32"),
            view("vy", "y", "16", "f32"),
            "%at = arith.muli %core, %c4 : index\n%low = arith.cmpi slt, %core, %two : index",
            f"scf.if %low {{\n{copy('a')}\n}}" + (f" else {{\n{copy('b')}\n}}" if other else ""),
        ]
        return function("\n".join(lines), "%x: index, %y: index", grid="[4]")

    return build


def test_a_condition_that_leaves_elements_out(halves: Text) -> None:
    assert coverage_findings(Module.parse(halves()).function()) == []
    text = halves(other=False)
    (found,) = coverage_findings(Module.parse(text).function())
    asked = (
        f"the condition of scf.if in line {line_of(text, 'scf.if')} (%low of line {line_of(text, '%low')})"
    )
    assert (found.code, found.coordinates) == ("KT302", (8,))
    assert asked in found.message
    with pytest.raises(KtirError, match="KT211") as error:
        Module.parse(text).function().run([torch.zeros(16), torch.zeros(16)], uninitialized=[1])
    assert asked in str(error.value)


def raced(text: str, *args: torch.Tensor) -> Diagnostic:
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run(list(args))
    return error.value.diagnostics[0]


@pytest.fixture(name="shared")
def _shared(function: Text, view: Text, tile: Text) -> Text:
    """Cores store to element core + `first` of y and load element core + `second`; then to z."""

    def build(first: str, second: str, turned: bool = False) -> str:
        store = f"{tile('u', 'vy', first, '1', '8xf32')}\nktdp.store %one, %u : tensor<1xf32>, <1xindex>"
        load = f"{tile('t', 'vy', second, '1', '8xf32')}\n%x = ktdp.load %t : <1xindex> -> tensor<1xf32>"
        lines = [
            "%core = ktdp.get_compute_tile_id : index\n%one = arith.constant dense<1.0> : tensor<1xf32>",
            view("vy", "y", "8", "f32"),
            view("vz", "z", "8", "f32"),
            *([load, store] if turned else [store, load]),
            tile("s", "vz", "%core", "1", "8xf32"),
            "ktdp.store %x, %s : tensor<1xf32>, <1xindex>",
        ]
        return function("\n".join(lines), "%y: index, %z: index", grid="[2]")

    return build


def test_the_line_of_the_other_cores_access(shared: Text) -> None:
    y, z = torch.zeros(8), torch.zeros(8)
    Module.parse(shared("%core", "%core")).function().run([y, z])
    reads = shared("%core", "%core - %core")
    found = raced(reads, y, z)
    assert found.code == "KT206"
    assert f"y: core 0 writes this element in line {line_of(reads, 'ktdp.store %one')};" in found.message
    writes = shared("%core", "%core + 1", turned=True)
    found = raced(writes, y, z)
    assert (found.code, found.line) == ("KT206", line_of(writes, "ktdp.store %one"))
    assert f"y: another core reads this element in line {line_of(writes, '%x = ktdp')};" in found.message


def test_one_store_for_all_cores_names_no_other_line(shared: Text) -> None:
    text = shared("%core - %core", "%core")
    found = raced(text, torch.zeros(8), torch.zeros(8))
    assert found.code == "KT205"
    assert "y: core 0 writes this element too; %vy is" in found.message


def test_views_that_stand_for_one_that_nothing_uses(function: Text, view: Text, tile: Text) -> None:
    def build(pointer: str, taken: str) -> tuple[str, list[str]]:
        lines = [
            "%c0 = arith.constant 0 : index",
            view("va", "a", "4", "f32"),
            view("vb", pointer, "4", "f32"),
            view("vy", "y", "4", "f32"),
            tile("ta", "va", "%c0", "4", "4xf32"),
            tile("tb", "vb", "%c0", "4", "4xf32"),
            tile("ty", "vy", "%c0", "4", "4xf32"),
            f"%p = ktdp.load %ta : <4xindex> -> tensor<4xf32>\n%q = ktdp.load {taken} : <4xindex> -> tensor<4xf32>",
            "%s = arith.addf %p, %q : tensor<4xf32>\nktdp.store %s, %ty : tensor<4xf32>, <4xindex>",
        ]
        text = function("\n".join(lines), "%a: index, %b: index, %y: index")
        return text, [d.message for d in Module.parse(text).warnings if d.code == "KT122"]

    assert build("b", "%tb")[1] == []
    text, said = build("a", "%tb")
    views = f"%va of line {line_of(text, '%va')} and %vb of line {line_of(text, '%vb')}"
    assert said == [f"nothing uses argument %b, but %a has several views: {views}"]
    text, said = build("b", "%ta")
    assert said == [
        f"nothing is loaded or stored through %tb; several times through %ta of line {line_of(text, '%ta')}"
    ]


def test_a_nan_in_memory_at_a_literal_address(function: Text, view: Text, tile: Text) -> None:
    """y = 1 / x - 1 / x at elements 64 and 128, which is NaN at a zero."""
    lines = [
        "%c0 = arith.constant 0 : index\n%p = arith.constant 64 : index\n%q = arith.constant 128 : index",
        view("vx", "p", "4", "f32"),
        view("vy", "q", "4", "f32"),
        tile("tx", "vx", "%c0", "4", "4xf32"),
        tile("ty", "vy", "%c0", "4", "4xf32"),
        "%x = ktdp.load %tx : <4xindex> -> tensor<4xf32>\n%one = arith.constant dense<1.0> : tensor<4xf32>",
        "%r = arith.divf %one, %x : tensor<4xf32>\n%y = arith.subf %r, %r : tensor<4xf32>",
        "ktdp.store %y, %ty : tensor<4xf32>, <4xindex>",
    ]
    run = Module.parse(function("\n".join(lines))).function().run

    def codes(x: list[float], y: torch.Tensor) -> list[tuple[str, str, tuple[int, ...] | None]]:
        found = run([], memory={64: torch.tensor(x), 128: y}, check=False).diagnostics
        return [(d.code, d.op, d.coordinates) for d in found]

    assert codes([1.0, 2.0, 4.0, 8.0], torch.zeros(4)) == []
    assert codes([1.0, 2.0, 0.0, 8.0], torch.zeros(4)) == [("KT210", "arith.subf", (2,))]
    # What was infinite before explains it, and what was NaN and is not stored to is no result.
    assert codes([1.0, float("nan"), 0.0, 8.0], torch.zeros(4)) == []
    assert codes([1.0, 2.0, 4.0, 8.0], torch.tensor([float("nan")] * 4)) == []


def test_a_nan_behind_a_store_in_place_is_traced_with_what_was_there(
    function: Text, view: Text, tile: Text
) -> None:
    """x = (x - 1) / (x - 1), in place: the second run must see x as it was."""
    lines = [
        "%c0 = arith.constant 0 : index\n%p = arith.constant 64 : index",
        view("vx", "p", "2", "f32"),
        tile("tx", "vx", "%c0", "2", "2xf32"),
        "%x = ktdp.load %tx : <2xindex> -> tensor<2xf32>\n%one = arith.constant dense<1.0> : tensor<2xf32>",
        "%d = arith.subf %x, %one : tensor<2xf32>\n%y = arith.divf %d, %d : tensor<2xf32>",
        "ktdp.store %y, %tx : tensor<2xf32>, <2xindex>",
    ]
    placed = torch.tensor([3.0, 1.0])
    found = (
        Module.parse(function("\n".join(lines)))
        .function()
        .run([], memory={64: placed}, check=False)
        .diagnostics
    )
    assert [(d.code, d.op, d.coordinates) for d in found] == [("KT210", "arith.divf", (1,))]
    assert placed[0] == 1.0
    assert placed[1].isnan()


def test_what_is_infinite_before_a_nan(through: Text) -> None:
    body = "%one = arith.constant dense<1.0> : tensor<4xf32>\n%r = arith.divf %one, %x : tensor<4xf32>\n%y = arith.mulf %r, %x : tensor<4xf32>"
    text = through(body, 4, "f32", "f32")
    (found,) = (
        Module.parse(text)
        .function()
        .run([torch.tensor([1.0, 0.0, 2.0, 4.0]), torch.zeros(4)], check=False)
        .diagnostics
    )
    assert (found.code, found.op, found.coordinates) == ("KT210", "arith.mulf", (1,))
    assert (
        found.message
        == f"NaN from finite input; arith.divf in line {line_of(text, '%r')}, which is behind it, is infinite"
    )
    root = through("%y = math.log %x : tensor<4xf32>", 4, "f32", "f32")
    (found,) = (
        Module.parse(root)
        .function()
        .run([torch.tensor([1.0, -2.0, 2.0, 4.0]), torch.zeros(4)], check=False)
        .diagnostics
    )
    assert found.message == "NaN from finite input"


@pytest.mark.parametrize(
    ("taken", "said"),
    [("%x, %z", []), ("%x, %x", ["; arith.addf in line {} takes %x twice"]), ("%x, %w", [""])],
)
def test_who_takes_a_value_twice(through: Text, taken: str, said: list[str]) -> None:
    body = f"%z = arith.constant dense<1.0> : tensor<4xf32>\n%w = arith.negf %x : tensor<4xf32>\n%v = arith.mulf %w, %x : tensor<4xf32>\n%u = arith.addf {taken} : tensor<4xf32>\n%y = arith.subf %u, %v : tensor<4xf32>"
    text = through(body, 4, "f32", "f32")
    want = [f"nothing uses %z, the result of this operation{s.format(line_of(text, '%u'))}" for s in said]
    assert [d.message for d in Module.parse(text).warnings] == want


def test_a_condition_that_lets_an_access_be_made(halves: Text) -> None:
    text = halves().replace("%at = arith.muli %core, %c4", "%at = arith.muli %core, %two")
    found = raced(text, torch.zeros(16), torch.zeros(16))
    assert found.code == "KT205"
    assert (
        f"under scf.if in line {line_of(text, 'scf.if')} (%low of line {line_of(text, '%low')}, %core of line"
        in found.message
    )


def test_a_body_that_ignores_the_result_so_far(function: Text, view: Text, tile: Text) -> None:
    def build(operand: str) -> str:
        lines = [
            "%c0 = arith.constant 0 : index\n%k = arith.constant 1.0 : f32\n%z = arith.constant dense<0.0> : tensor<f32>",
            view("vx", "x", "4", "f32"),
            view("vy", "y", "1", "f32"),
            tile("tx", "vx", "%c0", "4", "4xf32"),
            tile("ty", "vy", "%c0", "1", "1xf32"),
            "%x_ = ktdp.load %tx : <4xindex> -> tensor<4xf32>",
            "%s = linalg.reduce ins(%x_ : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]",
            f"(%in: f32, %out: f32) {{\n%a = arith.addf %in, {operand} : f32\nlinalg.yield %a : f32\n}}",
            "%r = tensor.expand_shape %s [] output_shape [1] : tensor<f32> into tensor<1xf32>",
            "ktdp.store %r, %ty : tensor<1xf32>, <1xindex>",
        ]
        return function("\n".join(lines), "%x: index, %y: index")

    assert not Module.parse(build("%out")).warnings
    text = build("%k")
    (found,) = Module.parse(text).warnings
    assert found.message.endswith(
        f"only the last element counts; it ends with arith.addf in line {line_of(text, '%a')}"
    )
