"""What is said of an element that a tile reaches through an index: its coordinates in the view, and whose fault
it is.
"""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
ONE_EACH = [[7, 3, 0], [1, 2, 9], [11, 4, 5], [10, 8, 6]]


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Text:
    """Each of 4 cores scatters 3 rows of %in to the 12 rows of %out that its row of %index names."""

    def build(
        subscripts: str = "ind(%i[%core, %p]), (%q)",
        strides: str = "2, 1",
        pointer: str = "out",
        before: str = "",
        after: str = "",
        extents: tuple[int, int] = (3, 2),
    ) -> str:
        shape = f"{extents[0]}x{extents[1]}"
        space = f"(d0, d1) : (d0 >= 0, -d0 + {extents[0] - 1} >= 0, d1 >= 0, -d1 + {extents[1] - 1} >= 0)"
        return function(
            "\n".join(
                [
                    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c3 = arith.constant 3 : index",
                    view("i", "index", "4x3", "i32"),
                    view("s", "in", "12x2", "f32"),
                    before,
                    view("o", pointer, "12x2", "f32", strides),
                    "%r = arith.muli %core, %c3 : index",
                    tile("u", "s", "%r, %c0", shape, "12x2xf32"),
                    f"%x = ktdp.load %u : <{shape}xindex> -> tensor<{shape}xf32>",
                    f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %o[{subscripts}] {{variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = affine_set<{space}>}} : memref<12x2xf32>, memref<4x3xi32> -> !ktdp.access_tile<{shape}xindex>",
                    f"ktdp.store %x, %t : tensor<{shape}xf32>, <{shape}xindex>",
                    after,
                ]
            ),
            "%index: index, %in: index, %out: index",
            grid="[4]",
        )

    return build


def said(text: str, index: list[list[int]], elements: int = 24) -> list[Diagnostic]:
    args = [
        torch.tensor(index, dtype=torch.int32),
        torch.arange(24.0).reshape(12, 2),
        torch.zeros(elements),
    ]
    try:
        return list(Module.parse(text).function().run(args, check=False).diagnostics)
    except KtirError as error:
        return list(error.diagnostics)


def test_rows_that_are_all_different(rows: Text) -> None:
    args = [
        torch.tensor(ONE_EACH, dtype=torch.int32),
        torch.arange(24.0).reshape(12, 2),
        torch.zeros(12, 2),
    ]
    result = Module.parse(rows()).function().run(args)
    expected = torch.zeros(12, 2)
    expected[torch.tensor(ONE_EACH).flatten()] = args[1]
    assert not result.diagnostics
    assert torch.equal(result.outputs[0], expected)


@pytest.mark.parametrize(
    ("strides", "pointer", "before", "elements"),
    [
        ("2, 1", "out", "", 24),
        ("1, 12", "out", "", 24),
        ("-2, 1", "last", "%c22 = arith.constant 22 : index\n%last = arith.addi %out, %c22 : index", 24),
        ("2, 1", "later", "%c4 = arith.constant 4 : index\n%later = arith.addi %out, %c4 : index", 28),
        ("3, 1", "out", "", 36),
    ],
)
def test_a_row_that_two_cores_write(
    rows: Text, strides: str, pointer: str, before: str, elements: int
) -> None:
    text = rows(strides=strides, pointer=pointer, before=before)
    found = said(text, [ONE_EACH[0], [1, 2, 7], *ONE_EACH[2:]], elements)
    assert [(d.code, d.core, d.coordinates) for d in found] == [("KT205", 1, (7, 0))]


def test_a_row_that_one_core_writes_twice(rows: Text) -> None:
    found = said(rows(), [ONE_EACH[0], [1, 9, 9], *ONE_EACH[2:]])
    assert [(d.code, d.severity, d.core, d.coordinates) for d in found] == [("KT217", "warning", 1, (9, 0))]
    assert "2 elements are written twice" in found[0].message


@pytest.mark.parametrize("kind", ["direct", "indirect"])
def test_a_row_that_one_core_reads_and_another_writes(rows: Text, tile: Text, kind: str) -> None:
    if kind == "direct":
        after = tile("v", "o", "%c3, %c0", "1x2", "12x2xf32") + "\n"
    else:
        after = (
            "%v = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %o[ind(%i[%c0, %p + 1]), (%q)] {variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, "
            "variables_space_set = affine_set<(d0, d1) : (d0 >= 0, -d0 >= 0, d1 >= 0, -d1 + 1 >= 0)>} : memref<12x2xf32>, memref<4x3xi32> -> !ktdp.access_tile<1x2xindex>\n"
        )
    after += "%back = ktdp.load %v : <1x2xindex> -> tensor<1x2xf32>"
    found = said(rows(after=after), ONE_EACH)
    assert [(d.code, d.op, d.coordinates) for d in found] == [("KT206", "ktdp.load", (3, 0))]


def test_an_index_tensor_that_is_left(rows: Text) -> None:
    (found,) = said(rows(subscripts="ind(%i[%core, %p + 1]), (%q)"), ONE_EACH)
    assert (found.code, found.coordinates) == ("KT201", (0, 3))
    assert found.message.startswith("in index tensor %i: axis 1: coordinate 3 is not in [0, 3)")


def test_an_index_that_leaves_the_view(rows: Text) -> None:
    (found,) = said(rows(), [ONE_EACH[0], [1, 12, 9], *ONE_EACH[2:]])
    assert (found.code, found.coordinates) == ("KT201", (12, 0))
    assert found.message.startswith("axis 0: coordinate 12 is not in [0, 12), where %i[1, 1] = 12; ")


def test_an_index_that_leaves_the_buffer(rows: Text) -> None:
    (found,) = said(rows(), [ONE_EACH[0], [1, 9, 11], *ONE_EACH[2:]], elements=20)
    assert (found.code, found.core, found.coordinates) == ("KT203", 1, (11, 0))
    assert found.message.startswith("outside out, which has 20 elements, where %i[1, 2] = 11; ")


def test_a_coordinate_that_no_index_tensor_holds(rows: Text) -> None:
    """Only the index tensor of the axis that is left is named."""
    (found,) = said(rows(subscripts="ind(%i[%core, %p]), (%q + 1)"), ONE_EACH)
    assert (found.code, found.coordinates) == ("KT201", (ONE_EACH[0][0], 2))
    assert found.message.startswith("axis 1: coordinate 2 is not in [0, 2); ")


@pytest.mark.parametrize(
    ("subscripts", "unused"), [("ind(%i[%core, %c0]), (%q)", "p"), ("ind(%i[%core, %p]), (%c0)", "q")]
)
def test_a_variable_that_no_subscript_uses(rows: Text, subscripts: str, unused: str) -> None:
    text = rows(subscripts=subscripts)
    (found,) = [d for d in Module.parse(text).warnings if d.code == "KT122"]
    assert f"no subscript uses %{unused}:" in found.message
    assert "construct_indirect_access_tile" in text.splitlines()[found.line - 1]


def test_a_variable_of_one_value_needs_no_subscript(rows: Text) -> None:
    text = rows(subscripts="ind(%i[%core, %c0]), (%q)", extents=(1, 2))
    assert not [d for d in Module.parse(text).warnings if d.code == "KT122"]


def test_a_coordinate_set_larger_than_its_view(rows: Text) -> None:
    text = rows()
    set_ = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 11 >= 0, d1 >= 0, -d1 + 1 >= 0)>"
    assert text.count(set_) == 2
    wide = text.replace(set_, set_.replace("-d1 + 1", "-d1 + 2"), 1)
    (found,) = Module.parse(wide).warnings
    assert (found.code, found.severity) == ("KT113", "warning")
    assert "from 0 to 2 along axis 1, the view from 0 to 1" in found.message
    # A smaller one says which elements may be touched.
    assert not Module.parse(text.replace(set_, set_.replace("-d0 + 11", "-d0 + 10"), 1)).warnings
    assert not coverage_findings(Module.parse(text).function(), [torch.tensor(ONE_EACH).int(), None, None])
