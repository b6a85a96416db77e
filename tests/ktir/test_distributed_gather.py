"""Indirect access tiles over distributed views, as base and as index tensor."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
ROWS = torch.arange(48.0).half().reshape(6, 8)
TOP, BOTTOM = ROWS[:2].contiguous(), ROWS[2:].T.contiguous()  # the lower rows are stored column by column
LOWER = "affine_set<(d0, d1) : (d0 - 2 >= 0, -d0 + 5 >= 0, d1 >= 0, -d1 + 7 >= 0)>"
ODD = "affine_set<(d0, d1) : (d0 mod 2 - 1 == 0, d0 >= 0, -d0 + 5 >= 0, d1 >= 0, -d1 + 7 >= 0)>"
EVEN = ODD.replace("mod 2 - 1", "mod 2")


@pytest.fixture(name="pages")
def _pages(function: Text, view: Text) -> Text:
    """4 rows of 6x8 elements, chosen by an index tensor, moved between a distributed view and a 4x8 buffer."""

    def build(
        order: str = "(d0, d1) -> (d0, d1)",
        shape: str = "4x8",
        store: bool = False,
        sets: tuple[str, str] = ("", LOWER),
        split: bool = False,
    ) -> str:
        parts = ("2x8", "4x8") if sets[1] == LOWER else ("5x8", "5x8")
        steps = "1, 4" if sets[1] == LOWER else "8, 1"
        views = [
            view("first", "a", parts[0], "f16", extra=sets[0]),
            view("second", "b", parts[1], "f16", strides=steps, extra=sets[1]),
            view("index", "i", "4", "i32"),
            f"%base = ktdp.construct_distributed_memory_view (%first, %second : memref<{parts[0]}xf16>, memref<{parts[1]}xf16>) : memref<6x8xf16>",
        ]
        index = "index"
        if split:
            low, high = "affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>", "affine_set<(d0) : (d0 - 2 >= 0, -d0 + 3 >= 0)>"  # fmt: skip
            views += [
                "%two = arith.constant 2 : index\n%later = arith.addi %i, %two : index",
                view("i1", "i", "2", "i32", extra=low),
                view("i2", "later", "2", "i32", extra=high),
                "%joined = ktdp.construct_distributed_memory_view (%i1, %i2 : memref<2xi32>, memref<2xi32>) : memref<4xi32>",
            ]
            index = "joined"
        indirect = (
            f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %base[ind(%{index}[%p]), (%q)] "
            f"{{variables_space_order = affine_map<{order}>, variables_space_set = affine_set<(d0, d1) : (d0 >= 0, "
            f"-d0 + 3 >= 0, d1 >= 0, -d1 + 7 >= 0)>}} : memref<6x8xf16>, memref<4xi32> -> !ktdp.access_tile<{shape}xindex>"
        )
        m, n = shape.split("x")
        plain = (
            f"%u = ktdp.construct_access_tile %other[%c0, %c0] {{access_tile_order = affine_map<(d0, d1) -> (d0, d1)>, "
            f"access_tile_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + {int(m) - 1} >= 0, d1 >= 0, -d1 + {int(n) - 1} >= 0)>}} : "
            f"memref<{shape}xf16> -> !ktdp.access_tile<{shape}xindex>"
        )
        source, target = ("u", "t") if store else ("t", "u")
        return function(
            "\n".join(
                [
                    "%c0 = arith.constant 0 : index",
                    *views,
                    view("other", "o", shape, "f16"),
                    indirect,
                    plain,
                    f"%x = ktdp.load %{source} : <{shape}xindex> -> tensor<{shape}xf16>",
                    f"ktdp.store %x, %{target} : tensor<{shape}xf16>, <{shape}xindex>",
                ]
            ),
            "%i: index, %a: index, %b: index, %o: index",
        )

    return build


def loaded(text: str, index: list[int], shape: tuple[int, ...] = (4, 8), *, sanitize: bool = True) -> torch.Tensor:  # fmt: skip
    args = [torch.tensor(index, dtype=torch.int32), TOP, BOTTOM, torch.zeros(shape).half()]
    return Module.parse(text).function().run(args, sanitize=sanitize).outputs[0]


@pytest.mark.parametrize("split", [False, True])
def test_rows_by_index(pages: Text, split: bool) -> None:
    assert torch.equal(loaded(pages(split=split), [5, 0, 1, 3]), ROWS[[5, 0, 1, 3]])


def test_an_order_map(pages: Text) -> None:
    out = loaded(pages(order="(d0, d1) -> (d1, d0)", shape="8x4"), [5, 0, 1, 3], (8, 4))
    assert torch.equal(out, ROWS[[5, 0, 1, 3]].T)
    # No permutation: rows backwards.
    out = loaded(pages(order="(d0, d1) -> (-d0, d1)"), [5, 0, 1, 3])
    assert torch.equal(out, ROWS[[3, 1, 0, 5]])


def test_partitions_that_are_no_boxes(pages: Text) -> None:
    text = pages(sets=(EVEN, ODD))
    even, odd = torch.zeros(5, 8).half(), torch.zeros(5, 8).half()
    even[::2], odd[::2] = ROWS[::2], ROWS[1::2]
    args = [torch.tensor([5, 0, 1, 4], dtype=torch.int32), even, odd, torch.zeros(4, 8).half()]
    assert torch.equal(Module.parse(text).function().run(args).outputs[0], ROWS[[5, 0, 1, 4]])


def scattered(text: str, index: list[int], check: bool = True) -> tuple[torch.Tensor, list[str]]:
    args = [
        torch.tensor(index, dtype=torch.int32),
        torch.zeros(2, 8).half(),
        torch.zeros(8, 4).half(),
        ROWS[:4],
    ]
    found = Module.parse(text).function().run(args, check=check)
    return torch.cat([found.outputs[0], found.outputs[1].T]), [d.code for d in found.diagnostics]


def test_a_scatter(pages: Text) -> None:
    out, codes = scattered(pages(store=True), [5, 0, 1, 3])
    expected = torch.zeros(6, 8).half()
    expected[[5, 0, 1, 3]] = ROWS[:4]
    assert torch.equal(out, expected)
    assert codes == []


def test_duplicate_targets_of_a_scatter(pages: Text) -> None:
    out, codes = scattered(pages(store=True), [5, 0, 5, 3])
    assert torch.equal(out[5], ROWS[2])
    assert codes == ["KT217"]


@pytest.mark.parametrize(("index", "where"), [(6, (6, 0)), (-1, (-1, 0))])
@pytest.mark.parametrize("store", [False, True])
def test_an_index_that_no_partition_holds(
    pages: Text, index: int, where: tuple[int, int], store: bool
) -> None:
    with pytest.raises(KtirError) as error:
        (scattered if store else loaded)(pages(store=store), [5, index, 1, 3])
    found = error.value.diagnostics[-1]
    assert (found.code, found.coordinates, found.core) == ("KT220", where, 0)
    assert found.op == ("ktdp.store" if store else "ktdp.load")


def test_an_index_tensor_that_no_partition_holds(pages: Text) -> None:
    text = pages(split=True).replace("%base[ind(%joined[%p])", "%base[ind(%joined[%p + 1])")
    with pytest.raises(KtirError) as error:
        loaded(text, [5, 0, 1, 3])
    assert (error.value.code, error.value.diagnostics[-1].coordinates) == ("KT220", (4,))
    assert error.value.diagnostics[-1].op == "ktdp.construct_indirect_access_tile"


def test_coverage_names_the_elements_of_each_partition(pages: Text) -> None:
    index = torch.tensor([5, 0, 1, 3], dtype=torch.int32)
    seen = coverage(Module.parse(pages()).function(), [index, None, None, None])
    assert not seen.unread(1, (2, 8), (8, 1))
    # Rows 2 and 4 of the view are rows 0 and 2 of the second partition.
    missing = seen.unread(2, (4, 8), (1, 4))
    assert (missing.count, missing.first) == (16, (0, 0))
