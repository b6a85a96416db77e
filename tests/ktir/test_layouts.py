"""Arguments whose shape or strides no view of them has, each beside one that has them in other words."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tracer.ktir.simulator import Module

Text = Callable[..., str]


@pytest.fixture(name="reader")
def _reader(function: Text, view: Text, tile: Text) -> Text:
    """Copies the first 2x2 elements of a view of %in."""

    def build(shape: str, strides: str | None = None, before: str = "", pointer: str = "in") -> str:
        body = [
            "%c0 = arith.constant 0 : index",
            before,
            view("source", pointer, shape, "f32", strides),
            view("target", "out", "2x2", "f32"),
            tile("a", "source", "%c0, %c0", "2x2", f"{shape}xf32"),
            tile("b", "target", "%c0, %c0", "2x2", "2x2xf32"),
            "%x = ktdp.load %a : <2x2xindex> -> tensor<2x2xf32>",
            "ktdp.store %x, %b : tensor<2x2xf32>, <2x2xindex>",
        ]
        return function("\n".join(body), "%in: index, %out: index")

    return build


def said(text: str, argument: object) -> list[str]:
    """What a run on this argument says of its layout."""
    found = Module.parse(text).function().run([argument, torch.zeros(2, 2)]).diagnostics
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "%source = ktdp.construct_memory" in row)
    assert all((d.severity, d.line, d.op) == ("warning", line, "ktdp.construct_memory_view") for d in found)
    assert {d.code for d in found} <= {"KT226"}
    return [d.message for d in found]


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(float(np.prod(shape))).reshape(shape)


WRONG = [
    ("4x8", None, numbers(8, 4), "the axes are in another order"),
    ("4x8", None, numbers(8, 4).t(), "the strides differ; pass in.contiguous()"),
    ("8x8", None, numbers(8, 8).t(), "it takes the axes in another order; pass in.contiguous()"),
    ("4x8", "1, 4", numbers(4, 8), "the strides differ"),
    ("4x8", None, numbers(4, 16)[:, :8], "the strides differ; pass in.contiguous()"),
    ("4x6", None, numbers(5, 16)[:, :8], "it takes what lies between the array's elements"),
    ("4x8", None, numbers(8, 16), "it goes on from one row to the middle of another"),
    ("4x8", None, numbers(6, 8), "48 elements; its largest view is 4x8, 32 elements"),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "strides", "argument", "reason"), WRONG)
@pytest.mark.parametrize("array", [False, True])
def test_a_layout_that_no_view_has(
    reader: Text, shape: str, strides: str | None, argument: torch.Tensor, reason: str, array: bool
) -> None:
    (message,) = said(reader(shape, strides), argument.numpy() if array else argument)
    assert message.startswith(f"argument in is {'x'.join(map(str, argument.shape))}")
    assert reason in message


MEANT = [
    ("4x8", None, numbers(4, 8)),
    ("4x8", None, numbers(32)),
    ("4x8", None, numbers(64)),
    ("4x8", None, numbers(1, 40)),
    ("4x8", None, numbers(2, 2, 8)),
    ("4x8", None, numbers(4, 2, 4)),
    ("4x8", None, numbers(2, 16)),
    ("4x8", "1, 4", numbers(8, 4)),
    ("4x8", "1, 4", numbers(8, 4).t()),
    ("4x8", None, numbers(4, 8).t()),
    ("8x8", "1, 8", numbers(8, 8)),
    ("4x8", "16, 1", numbers(4, 16)[:, :8]),
    ("4x8", "16, 1", numbers(4, 16)),
    ("4x8", "16, 1", numbers(9, 16)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "strides", "argument"), MEANT)
def test_a_layout_in_other_words(
    reader: Text, shape: str, strides: str | None, argument: torch.Tensor
) -> None:
    assert said(reader(shape, strides), argument) == []


@pytest.mark.parametrize(
    ("shape", "strides", "elements", "told"),
    [
        ("4x8", "0, 1", 32, True),
        ("4x8", "8, 0", 32, True),
        ("4x8", "7, 1", 32, True),
        ("4x8", "8, 1", 32, False),
        ("4x8", "1, 4", 32, False),
        # One row for all, and windows that slide: the memory is as long as they reach.
        ("4x8", "0, 1", 8, False),
        ("4x8", "1, 1", 11, False),
        ("4x8", "7, 1", 64, False),
    ],
)
def test_a_view_that_folds_all_of_an_argument(
    reader: Text, shape: str, strides: str, elements: int, told: bool
) -> None:
    found = said(reader(shape, strides), numbers(elements))
    want = (
        f"argument in is 32, and this view is 4x8, as many elements; but strides [{strides}] take some twice"
    )
    assert [message[: len(want)] for message in found] == ([want] if told else [])


@pytest.mark.parametrize(
    ("shape", "strides", "told"),
    [
        # Windows of 4, 2 apart: 3 of them fit a row of 8.
        ("3x4", "2, 1", False),
        ("4x4", "2, 1", True),
        # Windows of 3 rows, 1 apart: 2 of them fit 4 rows.
        ("2x3", "8, 8", False),
        ("2x8", "0, 1", False),
        ("2x8", "4, 1", True),
    ],
)
def test_windows_that_slide_stay_in_rows(reader: Text, shape: str, strides: str, told: bool) -> None:
    found = said(reader(shape, strides), numbers(4, 8))
    assert [m.endswith("it goes on from one row to the middle of another") for m in found] == [True] * told


def test_a_part_of_an_argument_is_meant(reader: Text) -> None:
    before = "%c16 = arith.constant 16 : index\n%later = arith.addi %in, %c16 : index"
    text = reader("2x8", before=before, pointer="later")
    assert said(text, numbers(4, 8)) == []
    (message,) = said(text, numbers(8, 16)[:, :4])
    assert "it takes what lies between" in message


def test_extents_that_are_arguments(function: Text, view: Text, tile: Text) -> None:
    source = (
        "%s = ktdp.construct_memory_view %in, sizes: [%n, %m], strides: [%m, 1] {coordinate_set = "
        "affine_set<(d0, d1)[s0, s1] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + s1 - 1 >= 0)>, "
        "memory_space = #ktdp.memory_space<global>} : memref<?x?xf32>"
    )
    body = [
        "%c0 = arith.constant 0 : index",
        source,
        view("target", "out", "2x2", "f32"),
        tile("a", "s", "%c0, %c0", "2x2", "?x?xf32"),
        tile("b", "target", "%c0, %c0", "2x2", "2x2xf32"),
        "%x = ktdp.load %a : <2x2xindex> -> tensor<2x2xf32>",
        "ktdp.store %x, %b : tensor<2x2xf32>, <2x2xindex>",
    ]
    run = (
        Module.parse(function("\n".join(body), "%in: index, %out: index, %n: index, %m: index"))
        .function()
        .run
    )

    def codes(argument: torch.Tensor, *extents: int) -> list[str]:
        return [d.code for d in run([argument, torch.zeros(2, 2), *extents]).diagnostics]

    assert codes(numbers(4, 8), 4, 8) == []
    assert codes(numbers(4, 8), 8, 4) == ["KT226"]


def test_without_the_sanitizer_nothing_is_said(reader: Text) -> None:
    function = Module.parse(reader("4x8")).function()
    assert function.run([numbers(8, 4), torch.zeros(2, 2)], sanitize=False).diagnostics == ()
