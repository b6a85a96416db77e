"""What a run takes for an argument's memory: from its first element to its last, and one tensor once."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


@pytest.fixture(name="shift")
def _shift(function: Text, view: Text, tile: Text) -> Text:
    """y[0:4] = x[start:start + 4], over a view of `size` elements of x."""

    def build(size: int = 8, start: int = 0, grid: str = "[1]") -> str:
        return function(
            "\n".join(
                [
                    f"%c0 = arith.constant 0 : index\n%start = arith.constant {start} : index",
                    view("source", "x", f"{size}", "f32"),
                    view("target", "y", "4", "f32"),
                    tile("a", "source", "%start", "4", f"{size}xf32"),
                    tile("b", "target", "%c0", "4", "4xf32"),
                    "%v = ktdp.load %a : <4xindex> -> tensor<4xf32>",
                    "ktdp.store %v, %b : tensor<4xf32>, <4xindex>",
                ]
            ),
            "%x: index, %y: index",
            grid=grid,
        )

    return build


def codes(error: KtirError) -> list[str]:
    return [d.code for d in error.diagnostics]


@pytest.mark.parametrize("whole", [torch.arange(8.0), np.arange(8, dtype=np.float32)])
def test_a_slice_is_all_that_was_given(shift: Text, whole: torch.Tensor | np.ndarray) -> None:
    function = Module.parse(shift(start=4)).function()
    assert function.run([whole, torch.zeros(4)]).outputs[0].tolist() == [4, 5, 6, 7]
    with pytest.raises(
        KtirError, match="elements 4 to 7 of x, which has 4 elements; %source is memref<8xf32> of line 6"
    ) as error:
        function.run([whole[:4], torch.zeros(4)])
    assert codes(error.value) == ["KT203"]
    # A large view of which only the given part is read is right.
    assert Module.parse(shift(start=0)).function().run([whole[:4], torch.zeros(4)]).outputs[0].tolist() == [
        0,
        1,
        2,
        3,
    ]


def test_rows_with_gaps_end_at_the_last_element(shift: Text) -> None:
    columns = torch.arange(12.0).reshape(3, 4)[:, :1]
    assert Module.parse(shift(9, start=5)).function().run([columns, torch.zeros(4)]).outputs[0].tolist() == [
        5,
        6,
        7,
        8,
    ]
    with pytest.raises(KtirError) as error:
        Module.parse(shift(10, start=6)).function().run([columns, torch.zeros(4)])
    # The column's own layout explains why its elements are not where the view looks for them.
    assert codes(error.value) == ["KT203", "KT226"]


@pytest.mark.parametrize("cores", [1, 32])
def test_one_tensor_given_twice_is_one_memory_in_place(elementwise: Text, cores: int) -> None:
    function = Module.parse(elementwise(64, 8, 1, cores)).function()
    both = torch.arange(512.0).half().reshape(64, 8) % 37
    twice = both * 2
    found = function.run([both, both], inplace=True)
    assert torch.equal(both, twice)
    assert found.outputs[0].data_ptr() == both.data_ptr()
    # Without `inplace`, what is stored is a copy.
    kept = both.clone()
    assert torch.equal(function.run([both, both]).outputs[0], twice * 2)
    assert torch.equal(both, kept)


def test_a_core_that_reads_what_another_writes_through_the_other_pointer(
    function: Text, view: Text, tile: Text
) -> None:
    text = function(
        "\n".join(
            [
                "%core = ktdp.get_compute_tile_id : index\n%one = arith.constant 1 : index",
                "%next = arith.subi %one, %core : index",
                view("source", "x", "2", "f32"),
                view("target", "y", "2", "f32"),
                tile("a", "source", "%next", "1", "2xf32"),
                tile("b", "target", "%core", "1", "2xf32"),
                "%v = ktdp.load %a : <1xindex> -> tensor<1xf32>",
                "ktdp.store %v, %b : tensor<1xf32>, <1xindex>",
            ]
        ),
        "%x: index, %y: index",
        grid="[2]",
    )
    swap = Module.parse(text).function()
    assert swap.run([torch.tensor([1.0, 2.0]), torch.zeros(2)], inplace=True).outputs[0].tolist() == [2, 1]
    same = torch.tensor([1.0, 2.0])
    with pytest.raises(KtirError) as error:
        swap.run([same, same], inplace=True)
    assert set(codes(error.value)) <= {"KT205", "KT206"}


def test_tensors_that_share_a_part_are_refused_in_place(shift: Text) -> None:
    function = Module.parse(shift()).function()
    whole = torch.arange(10.0)
    with pytest.raises(
        KtirError, match="arguments x and y share a part of their memory, and y is stored in place"
    ) as error:
        function.run([whole[:8], whole[6:]], inplace=True)
    assert codes(error.value) == ["KT216"]
    assert function.run([whole[:8], whole[6:]]).outputs[0].tolist() == [0, 1, 2, 3]
    assert whole.tolist() == list(range(10))
    apart = torch.arange(12.0)
    function.run([apart[:8], apart[8:]], inplace=True)
    assert apart.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("lx", "message"),
    [
        ({0: {0: torch.ones(4)}, 1: {(1 << 19) - 4: torch.ones(4)}}, ""),
        ({2: {0: torch.ones(4)}}, "lx names core 2, but the cores are 0 to 1"),
        ({-1: {0: torch.ones(4)}}, "lx names core -1, but the cores are 0 to 1"),
        (
            {1: {(1 << 19) - 3: torch.ones(4)}},
            "lx: 4 elements of 4 bytes at element 524285 of core 1 leave 2097152 bytes",
        ),
        ({1: {-1: torch.ones(4)}}, "lx[1]: element address -1 is negative"),
    ],
)
def test_tensors_placed_in_scratchpads(
    function: Text, lx: dict[int, dict[int, torch.Tensor]], message: str
) -> None:
    run = Module.parse(function("", grid="[2]")).function().run
    if not message:
        assert run([], lx=lx).errors == ()
        return
    with pytest.raises(KtirError) as error:
        run([], lx=lx)
    assert codes(error.value) == ["KT216"]
    assert error.value.diagnostics[0].message == message


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("%r = arith.addi %p, %c : index\n%s = arith.subi %r, %p : index", 1),
        ("%r = arith.addi %p, %c : index\n%u = arith.addi %c, %p : index\n%s = arith.cmpi eq, %r, %u : index", True),
        ("%r = arith.addi %p, %c : index\n%s = arith.cmpi ne, %r, %p : index", True),
        ("%s = arith.cmpi eq, %p, %q : index", False),
        ("%s = arith.cmpi eq, %p, %c : index", "argument p is a pointer, but is used as a number"),
        ("%s = arith.cmpi ne, %c, %p : index", "argument p is a pointer, but is used as a number"),
        ("%s = arith.remsi %p, %c : index", "a pointer is used where a number is needed"),
        ("%s = arith.shli %p, %c : index", "a pointer is used where a number is needed"),
        ("%s = arith.xori %c, %p : index", "a pointer is used where a number is needed"),
        ("%s = scf.index_switch %p -> index\ncase 1 {\nscf.yield %c : index\n}\ndefault {\nscf.yield %c : index\n}", "argument p is a pointer, but is used as a number"),
    ],
)  # fmt: skip
def test_a_pointer_is_no_number(function: Text, body: str, want: int | str) -> None:
    text = function(f"%c = arith.constant 1 : index\n{body}", "%p: index, %q: index")
    run = Module.parse(text).function().run
    seen = []
    if not isinstance(want, str):
        run([torch.zeros(4), torch.zeros(4)], trace=lambda _, __, values: seen.append(values[0]))
        assert (seen[-1], type(seen[-1])) == (want, type(want))
        return
    with pytest.raises(KtirError) as error:
        run([torch.zeros(4), torch.zeros(4)])
    assert [(d.code, d.message) for d in error.value.diagnostics] == [("KT216", want)]
