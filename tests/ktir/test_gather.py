"""Indirect access tiles and distributed views."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
ROWS = torch.arange(48.0).half().reshape(6, 8)


@pytest.fixture(name="gather")
def _gather(function: Text, view: Text, tile: Text) -> Text:
    """Load a 4x8 tile of a 6x8 buffer with the subscripts given, store it to a 4x8 output."""

    def build(
        subscripts: str,
        order: str = "(d0, d1) -> (d0, d1)",
        space: str = "(d0, d1) : (d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 7 >= 0)",
        shape: str = "4x8",
        element: str = "i32",
        views: int = 1,
        scatter: bool = False,
    ) -> str:
        types = ", ".join(["memref<6x8xf16>", *[f"memref<4x{element}>"] * views])
        direct = tile("b", "target", "%c0, %c0", shape, f"{shape}xf16")
        indirect = (
            f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %source[{subscripts}] "
            f"{{variables_space_order = affine_map<{order}>, variables_space_set = affine_set<{space}>}} : {types} -> "
            f"!ktdp.access_tile<{shape}xindex>"
        )
        source, target = ("b", "t") if scatter else ("t", "b")
        return function(
            "\n".join(
                [
                    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index",
                    view("index", "i", "4", element),
                    view("source", "s", "6x8", "f16"),
                    view("target", "o", shape, "f16"),
                    indirect,
                    direct,
                    f"%x = ktdp.load %{source} : <{shape}xindex> -> tensor<{shape}xf16>",
                    f"ktdp.store %x, %{target} : tensor<{shape}xf16>, <{shape}xindex>",
                ]
            ),
            "%i: index, %s: index, %o: index",
        )

    return build


def run(
    text: str, index: list[int], shape: tuple[int, ...] = (4, 8), dtype: torch.dtype = torch.int32
) -> torch.Tensor:
    args = [torch.tensor(index, dtype=dtype), ROWS, torch.zeros(shape).half()]
    return Module.parse(text).function().run(args, check=False).outputs[0]


@pytest.mark.parametrize(("element", "dtype"), [("i32", torch.int32), ("i64", torch.int64)])
def test_rows_by_index(gather: Text, element: str, dtype: torch.dtype) -> None:
    out = run(gather("ind(%index[%p]), (%q)", element=element), [5, 0, 0, 3], dtype=dtype)
    assert torch.equal(out, ROWS[[5, 0, 0, 3]])


def test_bare_variables_and_arithmetic(gather: Text) -> None:
    out = run(gather("ind(%index[3 - %p]), %q"), [5, 0, 1, 3])
    assert torch.equal(out, ROWS[[3, 1, 0, 5]])
    out = run(gather("(%p + %c1), (%q mod 4)", views=0), [0, 0, 0, 0])
    assert torch.equal(out, ROWS[1:5][:, [0, 1, 2, 3, 0, 1, 2, 3]])


def test_pages(gather: Text) -> None:
    out = run(gather("ind(%index[%q floordiv 2]), (%p * 2 + %q mod 2)"), [5, 0, 1, 3])
    expected = torch.stack(
        [torch.stack([ROWS[[5, 0, 1, 3][q // 2], 2 * p + q % 2] for q in range(8)]) for p in range(4)]
    )
    assert torch.equal(out, expected)


def test_one_index_view_twice(gather: Text) -> None:
    out = run(gather("ind(%index[%p]), ind(%index[%q floordiv 2])", views=2), [5, 0, 1, 3])
    expected = ROWS[[5, 0, 1, 3]][:, [5, 5, 0, 0, 1, 1, 3, 3]]
    assert torch.equal(out, expected)


def test_order_sorts_by_its_image(gather: Text) -> None:
    out = run(
        gather("ind(%index[%p]), (%q)", order="(d0, d1) -> (d1, d0)", shape="8x4"), [5, 0, 1, 3], (8, 4)
    )
    assert torch.equal(out, ROWS[[5, 0, 1, 3]].T)


def test_a_space_that_is_no_box(gather: Text) -> None:
    triangle = "(d0, d1) : (d0 >= 0, d1 >= 0, -d0 - d1 + 1 >= 0)"
    text = gather("ind(%index[%p]), (%q)", space=triangle, shape="3x1")
    assert run(text, [5, 0, 1, 3], (3, 1)).flatten().tolist() == [ROWS[5, 0], ROWS[5, 1], ROWS[0, 0]]


@pytest.mark.parametrize("bad", [-1, 6])
def test_an_index_outside_the_view(gather: Text, bad: int) -> None:
    with pytest.raises(KtirError) as error:
        run(gather("ind(%index[%p]), (%q)"), [5, 0, bad, 3])
    (found,) = error.value.diagnostics
    assert (found.code, found.coordinates) == ("KT201", (bad, 0))


def test_scatter(gather: Text) -> None:
    args = [torch.tensor([5, 0, 1, 3], dtype=torch.int32), torch.zeros(6, 8).half(), ROWS[:4].clone()]
    out = Module.parse(gather("ind(%index[%p]), (%q)", scatter=True)).function().run(args).outputs[0]
    assert torch.equal(out[[5, 0, 1, 3]], ROWS[:4])
    assert not out[[2, 4]].any()


def test_duplicate_targets_keep_the_last_and_warn(gather: Text) -> None:
    args = [torch.tensor([5, 5, 1, 3], dtype=torch.int32), torch.zeros(6, 8).half(), ROWS[:4].clone()]
    result = Module.parse(gather("ind(%index[%p]), (%q)", scatter=True)).function().run(args)
    assert torch.equal(result.outputs[0][5], ROWS[1])
    assert [(d.code, d.severity) for d in result.diagnostics] == [("KT217", "warning")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("intermediate_variables(%p, %q)", "intermediate_variables(%p)"),
        ("intermediate_variables(%p, %q)", "intermediate_variables(%p, %p)"),
        ("memref<6x8xf16>, memref<4xi32> ->", "memref<6x8xf16> ->"),
        ("ind(%index[%p]), (%q)", "ind(%index[%p])"),
        ("ind(%index[%p])", "ind(%index[%p, %q])"),
        ("ind(%index[%p])", "%index[%p]"),
        ("(%q)]", "(%q * %p)]"),
        ("(%q)]", "(%q mod 0)]"),
    ],
)
def test_malformed_tiles(gather: Text, old: str, new: str) -> None:
    text = gather("ind(%index[%p]), (%q)")
    assert old in text
    with pytest.raises(KtirError):
        Module.parse(text.replace(old, new))


@pytest.fixture(name="joined")
def _joined(function: Text, view: Text, tile: Text) -> Text:
    """A 4x8 view of two 2x8 buffers, read or written through a window of it."""

    def build(
        subscripts: str = "%c0, %c0", lower: int = 2, order: str | None = None, store: bool = False
    ) -> str:
        top = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 7 >= 0)>"
        bottom = f"affine_set<(d0, d1) : (d0 - {lower} >= 0, -d0 + {lower + 1} >= 0, d1 >= 0, -d1 + 7 >= 0)>"
        shape = "4x2" if order else "2x4"
        whole = tile("t", "joined", subscripts, "2x4", "4x8xf16", order)
        plain = tile("u", "other", "%c0, %c0", shape, f"{shape}xf16")
        source, target = ("u", "t") if store else ("t", "u")
        return function(
            "\n".join(
                [
                    "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%c3 = arith.constant 3 : index",
                    view("first", "a", "2x8", "f16", extra=top),
                    view("second", "b", "2x8", "f16", strides="1, 2", extra=bottom),
                    view("other", "o", shape, "f16"),
                    "%joined = ktdp.construct_distributed_memory_view (%first, %second : memref<2x8xf16>, memref<2x8xf16>) : memref<4x8xf16>",
                    whole,
                    plain,
                    f"%x = ktdp.load %{source} : <{shape}xindex> -> tensor<{shape}xf16>",
                    f"ktdp.store %x, %{target} : tensor<{shape}xf16>, <{shape}xindex>",
                ]
            ),
            "%a: index, %b: index, %o: index",
        )

    return build


TOP, BOTTOM = ROWS[:2].contiguous(), ROWS[2:4].T.contiguous()


def test_a_window_over_two_partitions(joined: Text) -> None:
    out = Module.parse(joined("%c1, %c3")).function().run([TOP, BOTTOM, torch.zeros(2, 4).half()]).outputs[0]
    assert torch.equal(out, ROWS[1:3, 3:7])


def test_order_is_honoured_on_a_distributed_view(joined: Text) -> None:
    text = joined("%c1, %c3", order="(d0, d1) -> (d1, d0)")
    out = Module.parse(text).function().run([TOP, BOTTOM, torch.zeros(4, 2).half()]).outputs[0]
    assert torch.equal(out, ROWS[1:3, 3:7].T)


def test_storing_to_two_partitions(joined: Text) -> None:
    data = torch.arange(8.0).half().reshape(2, 4)
    result = Module.parse(joined("%c1, %c3", store=True)).function().run([TOP, BOTTOM, data])
    top, bottom = result.outputs
    assert result.written == (0, 1)
    assert torch.equal(top[1, 3:7], data[0])
    assert torch.equal(bottom.T[0, 3:7], data[1])


def test_an_element_that_no_partition_holds(joined: Text) -> None:
    text = (
        joined("%c1, %c3", lower=3)
        .replace("memref<4x8xf16>\n", "memref<5x8xf16>\n", 1)
        .replace(": memref<4x8xf16> ->", ": memref<5x8xf16> ->")
    )
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run([TOP, BOTTOM, torch.zeros(2, 4).half()])
    (found,) = error.value.diagnostics
    assert (found.code, found.coordinates) == ("KT220", (2, 3))


def test_partitions_of_other_types(joined: Text) -> None:
    with pytest.raises(KtirError) as error:
        Module.parse(joined().replace("memref<4x8xf16>", "memref<4x8xf32>"))
    assert error.value.code == "KT102"


def test_rows_by_an_index_that_the_function_stored(function: Text, view: Text, tile: Text) -> None:
    """The accesses of a stored buffer are tracked, those by single elements as well as boxes."""
    body = [
        "%c0 = arith.constant 0 : index",
        view("source", "a", "4x2", "f16"),
        view("given", "g", "2", "i32"),
        view("index", "i", "2", "i32"),
        view("target", "o", "2x2", "f16"),
        tile("gt", "given", "%c0", "2", "2xi32"),
        tile("it", "index", "%c0", "2", "2xi32"),
        tile("ot", "target", "%c0, %c0", "2x2", "2x2xf16"),
        "%n = ktdp.load %gt : <2xindex> -> tensor<2xi32>\nktdp.store %n, %it : tensor<2xi32>, <2xindex>",
        "%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %source[ind(%index[%p]), (%q)] {"
        "variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = affine_set<(d0, d1) : "
        "(d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 1 >= 0)>} : memref<4x2xf16>, memref<2xi32> -> !ktdp.access_tile<2x2xindex>",
        "%x = ktdp.load %t : <2x2xindex> -> tensor<2x2xf16>\nktdp.store %x, %ot : tensor<2x2xf16>, <2x2xindex>",
    ]
    text = function("\n".join(body), "%a: index, %g: index, %i: index, %o: index")
    rows = torch.arange(8.0).half().reshape(4, 2)
    given = torch.tensor([3, 1], dtype=torch.int32)
    args = [rows, given, torch.zeros(2, dtype=torch.int32), torch.zeros(2, 2).half()]
    index, out = Module.parse(text).function().run(args).outputs
    assert index.tolist() == [3, 1]
    assert torch.equal(out, rows[[3, 1]])
