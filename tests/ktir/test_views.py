"""Distributed views over partitions of any shape."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
A, B = torch.arange(36.0).reshape(6, 6), 100 + torch.arange(36.0).reshape(6, 6)
INSIDE = "d0 >= 0, -d0 + 5 >= 0, d1 >= 0, -d1 + 5 >= 0"
LOWER, UPPER = f"(d0, d1) : ({INSIDE}, d0 - d1 >= 0)", f"(d0, d1) : ({INSIDE}, d1 - d0 - 1 >= 0)"


def copy(function: Text, view: Text, tile: Text, first: str, second: str, at: str = "%c0", n: int = 6) -> str:
    """A copy of `n` rows from `at` on of a view over %a and %b into %out."""
    whole = "6x6xf32"
    return function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index\n%c2 = arith.constant 2 : index",
                view("pa", "a", "6x6", "f32", extra=f"affine_set<{first}>"),
                view("pb", "b", "6x6", "f32", extra=f"affine_set<{second}>"),
                view("target", "out", "6x6", "f32"),
                f"%both = ktdp.construct_distributed_memory_view (%pa, %pb : memref<{whole}>, memref<{whole}>) : memref<{whole}>",
                tile("t", "both", f"{at}, %c0", f"{n}x6", whole),
                f"%x = ktdp.load %t : <{n}x6xindex> -> tensor<{n}x6xf32>",
                tile("o", "target", f"{at}, %c0", f"{n}x6", whole),
                f"ktdp.store %x, %o : tensor<{n}x6xf32>, <{n}x6xindex>",
            ]
        ),
        "%a: index, %b: index, %out: index",
    )


def triangles() -> torch.Tensor:
    # The upper partition starts at column 1, which is its column 0 in memory.
    want = torch.tril(A)
    rows, columns = torch.triu_indices(6, 6, offset=1)
    want[rows, columns] = B[rows, columns - 1]
    return want


@pytest.mark.parametrize(("at", "n"), [("%c0", 6), ("%c2", 3)])
def test_triangles(function: Text, view: Text, tile: Text, at: str, n: int) -> None:
    text = copy(function, view, tile, LOWER, UPPER, at, n)
    out = Module.parse(text).function().run([A, B, torch.zeros(6, 6)]).outputs[0]
    start = 2 if at == "%c2" else 0
    want = torch.zeros(6, 6)
    want[start : start + n] = triangles()[start : start + n]
    assert torch.equal(out, want)


def test_every_other_row(function: Text, view: Text, tile: Text) -> None:
    even, odd = f"(d0, d1) : ({INSIDE}, d0 mod 2 == 0)", f"(d0, d1) : ({INSIDE}, d0 mod 2 - 1 == 0)"
    text = copy(function, view, tile, even, odd)
    out = Module.parse(text).function().run([A, B, torch.zeros(6, 6)]).outputs[0]
    want = A.clone()
    want[1::2] = B[0:6:2]
    assert torch.equal(out, want)


def test_stores_go_to_the_partition_that_holds_an_element(function: Text, view: Text, tile: Text) -> None:
    text = copy(function, view, tile, LOWER, UPPER)
    text = text.replace("%t = ktdp.construct_access_tile %both", "%t = ktdp.construct_access_tile %target")
    text = text.replace("%o = ktdp.construct_access_tile %target", "%o = ktdp.construct_access_tile %both")
    x = torch.arange(1.0, 37.0).reshape(6, 6)
    function_ = Module.parse(text).function()
    a, b = function_.run([torch.zeros(6, 6), torch.zeros(6, 6), x]).outputs
    assert torch.equal(a, torch.tril(x))
    assert torch.equal(b, torch.cat([torch.triu(x, diagonal=1)[:, 1:], torch.zeros(6, 1)], dim=1))
    found = coverage(function_)
    assert found.uncovered_writes(0, (6, 6), (6, 1)).count == 15
    assert found.uncovered_writes(1, (6, 6), (6, 1)).count == 21


@pytest.mark.parametrize(
    ("first", "second", "words", "place"),
    [
        (LOWER, UPPER.replace("d1 - d0 - 1", "d1 - d0"), "two partitions", (0, 0)),
        (LOWER, f"(d0, d1) : ({INSIDE})", "two partitions", (0, 0)),
        (LOWER, UPPER.replace("d1 - d0 - 1", "d1 - d0 - 2"), "no partition", (0, 1)),
        (LOWER, UPPER.replace("-d1 + 5", "-d1 + 6"), "outside the view", None),
    ],
)
def test_overlaps_and_holes(
    function: Text, view: Text, tile: Text, first: str, second: str, words: str, place: tuple[int, int] | None
) -> None:
    text = copy(function, view, tile, first, second)
    with pytest.raises(KtirError, match=words) as caught:
        Module.parse(text).function().run([A, B, torch.zeros(6, 6)])
    found = caught.value.diagnostics[0]
    assert (found.code, found.coordinates) == ("KT220", place)
    assert found.line > 0


DIAGONAL = "(d0, d1) : (d0 >= 0, -d0 + 5 >= 0, d1 - d0 == 0)"


def diagonal(text: str) -> str:
    """The copy over the six elements of the diagonal, as a tile of 6 elements in one row."""
    box = "(d0, d1) : (d0 >= 0, -d0 + 5 >= 0, d1 >= 0, -d1 + 5 >= 0)>}"
    assert text.count(box) == 2
    return (
        text.replace(box, f"{DIAGONAL}>}}")
        .replace("6x6xindex", "1x6xindex")
        .replace("tensor<6x6", "tensor<1x6")
    )


def swapped(text: str) -> str:
    """The same with the distributed view as the target."""
    text = text.replace("%t = ktdp.construct_access_tile %both", "%t = ktdp.construct_access_tile %target")
    return text.replace("%o = ktdp.construct_access_tile %target", "%o = ktdp.construct_access_tile %both")


def rows(first: int, last: int) -> str:
    return f"(d0, d1) : (d0 - {first} >= 0, -d0 + {last} >= 0, d1 >= 0, -d1 + 5 >= 0)"


EVEN, ODD = f"(d0, d1) : ({INSIDE}, d0 mod 2 == 0)", f"(d0, d1) : ({INSIDE}, d0 mod 2 - 1 == 0)"
# The odd rows start at row 1, which is row 0 of their memory.
BOTH = [(0, 0, 0), (1, 0, 1), (0, 2, 2), (1, 2, 3), (0, 4, 4), (1, 4, 5)]


def test_a_tile_that_is_no_box_is_loaded_from_each_partition(function: Text, view: Text, tile: Text) -> None:
    text = diagonal(copy(function, view, tile, EVEN, ODD))
    out = Module.parse(text).function().run([A, B, torch.zeros(6, 6)]).outputs[0]
    assert out.diagonal().tolist() == [(A, B)[which][row, column].item() for which, row, column in BOTH]
    assert int((out != 0).sum()) == 5
    found = coverage(Module.parse(text).function())
    assert [found.unread(i, (6, 6), (6, 1)).count for i in (0, 1)] == [33, 33]


def test_a_tile_that_is_no_box_is_stored_to_each_partition(function: Text, view: Text, tile: Text) -> None:
    text = swapped(diagonal(copy(function, view, tile, EVEN, ODD)))
    x = torch.arange(1.0, 37.0).reshape(6, 6)
    outputs = Module.parse(text).function().run([torch.zeros(6, 6), torch.zeros(6, 6), x]).outputs
    want = torch.zeros(2, 6, 6)
    for i, place in enumerate(BOTH):
        want[place] = x[i, i]
    assert torch.equal(torch.stack(list(outputs)), want)


@pytest.mark.parametrize("store", [False, True])
def test_a_point_that_no_partition_holds(function: Text, view: Text, tile: Text, store: bool) -> None:
    text = diagonal(copy(function, view, tile, EVEN, f"(d0, d1) : ({INSIDE}, d0 mod 4 - 1 == 0)"))
    with pytest.raises(KtirError, match="no partition") as caught:
        Module.parse(swapped(text) if store else text).function().run([A, B, torch.zeros(6, 6)])
    found = caught.value.diagnostics[0]
    assert (found.code, found.coordinates) == ("KT220", (3, 3))


def test_a_point_beyond_the_memory_of_its_partition(function: Text, view: Text, tile: Text) -> None:
    text = diagonal(copy(function, view, tile, EVEN, ODD))
    with pytest.raises(KtirError) as caught:
        Module.parse(text).function().run([A, B[:4].clone(), torch.zeros(6, 6)])
    found = caught.value.diagnostics[0]
    assert (found.code, found.coordinates) == ("KT203", (4, 5))


def test_points_that_two_cores_store(function: Text, view: Text, tile: Text) -> None:
    text = swapped(diagonal(copy(function, view, tile, EVEN, ODD))).replace("grid = [1]", "grid = [2]")
    run = Module.parse(text).function().run
    found = run([torch.zeros(6, 6), torch.zeros(6, 6), A], check=False).errors
    assert [d.code for d in found] == ["KT205"]


def test_overlaps_as_in_the_public_simulator(function: Text, view: Text, tile: Text) -> None:
    # Values that the public simulator gives for these partitions.
    text = copy(function, view, tile, rows(0, 5), rows(2, 5))
    text = text.replace("memref<6x6xf32>, memref<6x6xf32>) :", "memref<6x6xf32>, memref<4x6xf32>) :")
    text = text.replace(
        "%pb = ktdp.construct_memory_view %b, sizes: [6, 6]",
        "%pb = ktdp.construct_memory_view %b, sizes: [4, 6]",
    )
    lines = [
        line.replace("memref<6x6", "memref<4x6") if line.startswith("%pb") else line
        for line in text.split("\n")
    ]
    text = "\n".join(lines)
    args = [A, B[:4], torch.zeros(6, 6)]
    with pytest.raises(KtirError, match="two partitions"):
        Module.parse(text).function().run(args)
    out = Module.parse(text).function().run(args, mode="ktir_cpu").outputs[0]
    assert torch.equal(out, torch.cat([A[:2], B[:4]]))
    x = 200 + A
    first, second = Module.parse(swapped(text)).function().run([A, B[:4], x], mode="ktir_cpu").outputs
    assert torch.equal(first, x)
    assert torch.equal(second, x[2:])


def test_gaps_as_in_the_public_simulator(function: Text, view: Text, tile: Text) -> None:
    text = copy(function, view, tile, EVEN, f"(d0, d1) : ({INSIDE}, d0 mod 4 - 1 == 0)")
    out = Module.parse(text).function().run([A, B, torch.full((6, 6), 7.0)], mode="ktir_cpu").outputs[0]
    want = torch.zeros(6, 6)
    want[0::2], want[1::4] = A[0::2], B[0::4][:2]
    assert torch.equal(out, want)
