"""Rarely written forms: what each gives, and the code and line that its wrong neighbour gets."""
# ruff: noqa: E501

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]

GLOBAL = "memory_space = #ktdp.memory_space<global>"
FOUR = torch.arange(4.0)
ZERO = "%c0 = arith.constant 0 : index"


def run(text: str, *args: Any, name: str | None = None) -> torch.Tensor:
    found = Module.parse(text).function(name).run(list(args))
    assert found.diagnostics == ()
    return found.outputs[0]


def refused(text: str, *args: Any) -> tuple[str, str, str]:
    """Code, operation and source line of the first error."""
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run(list(args))
    first = error.value.diagnostics[0]
    return first.code, first.op, text.splitlines()[first.line - 1].split(" {")[0]


def message(text: str, *args: Any) -> str:
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run(list(args))
    return error.value.diagnostics[0].message


@pytest.fixture(name="copy")
def _copy(tile: Text) -> str:
    """4 elements from view %s to view %t."""
    return "\n".join(
        [
            tile("x", "s", "%c0", "4", "4xf32"),
            tile("y", "t", "%c0", "4", "4xf32"),
            "%d = ktdp.load %x : <4xindex> -> tensor<4xf32>\nktdp.store %d, %y : tensor<4xf32>, <4xindex>",
        ]
    )


# --- arguments


def test_views_are_arguments_of_called_functions_only(function: Text, view: Text, copy: str) -> None:
    body = f"{ZERO}\n{view('t', 'out', '4', 'f32')}\n{copy}"
    callee = f"func.func @inner(%s: memref<4xf32>, %out: index) {{\n{body}\nreturn\n}}"
    call = f"{view('s', 'in', '4', 'f32')}\nfunc.call @inner(%s, %out) : (memref<4xf32>, index) -> ()"
    text = function(call, "%in: index, %out: index").replace("module {", f"module {{\n{callee}", 1)
    assert torch.equal(run(text, FOUR, torch.zeros(4), name="kernel"), FOUR)

    alone = function(body, "%s: memref<4xf32>, %out: index")
    assert refused(alone, FOUR, torch.zeros(4)) == ("KT216", "func.func", "  func.func @kernel(%s: memref<4xf32>, %out: index) attributes")  # fmt: skip
    assert (
        message(alone)
        == "argument %s is memref<4xf32>: take index, and build views with construct_memory_view"
    )


RUNTIME = "!ktdp.runtime_arg<index, granularity = 4, upperbound = 16>"


@pytest.fixture(name="runtime")
def _runtime(function: Text, view: Text, tile: Text) -> str:
    """Every element is 1000 value + 100 granularity + upperbound."""
    return function(
        "\n".join(
            [
                ZERO + "\n%k = arith.constant 1000 : index\n%h = arith.constant 100 : index",
                view("t", "out", "4", "f32"),
                *(f"%{f[0]} = ktdp.runtime_arg_extract {f} from %n : {RUNTIME} -> index" for f in ("value", "granularity", "upperbound")),
                "%vk = arith.muli %v, %k : index\n%gh = arith.muli %g, %h : index",
                "%vg = arith.addi %vk, %gh : index\n%all = arith.addi %vg, %u : index",
                "%i = arith.index_cast %all : index to i32\n%f = arith.sitofp %i : i32 to f32",
                "%d = tensor.splat %f : tensor<4xf32>",
                tile("y", "t", "%c0", "4", "4xf32"),
                "ktdp.store %d, %y : tensor<4xf32>, <4xindex>",
            ]
        ),
        f"%out: index, %n: {RUNTIME}",
    )  # fmt: skip


@pytest.mark.parametrize("value", [0, 4, 16])
def test_a_runtime_argument_that_keeps_its_promise(runtime: str, value: int) -> None:
    assert run(runtime, torch.zeros(4), value).tolist() == [1000 * value + 416] * 4


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "argument n is 3, no multiple of its granularity 4"),
        (20, "argument n is 20, not between 0 and its upperbound 16"),
        (-4, "argument n is -4, not between 0 and its upperbound 16"),
        (8.0, "argument n is index, but a float is given"),
        (torch.tensor(8), f"argument n is {RUNTIME}, but a tensor is given"),
        ("8", "argument n: str is no tensor or number"),
    ],
)
def test_a_runtime_argument_that_breaks_its_promise(runtime: str, value: Any, words: str) -> None:
    assert refused(runtime, torch.zeros(4), value)[:2] == ("KT216", "func.func")
    assert message(runtime, torch.zeros(4), value) == words


@pytest.fixture(name="filled")
def _filled(view: Text, tile: Text) -> Callable[[str], str]:
    """A function of `%n` of a type that fills 4 elements with it; for index, of i64."""

    def text(kind: str) -> str:
        stored = "i64" if kind == "index" else kind
        n = "%m = arith.index_cast %n : index to i64" if kind == "index" else ""
        return "\n".join(
            [
                f"func.func @kernel(%out: index, %n: {kind}) attributes {{grid = [1]}} {{",
                f"{ZERO}\n{n}",
                view("t", "out", "4", stored),
                tile("y", "t", "%c0", "4", f"4x{stored}"),
                f"%d = tensor.splat {'%m' if n else '%n'} : tensor<4x{stored}>",
                f"ktdp.store %d, %y : tensor<4x{stored}>, <4xindex>\nreturn\n}}",
            ]
        )

    return text


DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "i32": torch.int32, "index": torch.int64,
    "f16": torch.float16, "f32": torch.float32, "f8E4M3FN": torch.float8_e4m3fn,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value", "want"),
    [
        ("i1", True, 1),
        ("i8", -128, -128),
        ("i8", 127, 127),
        # A signless number is read both ways, as `arith.constant 255 : i8` is.
        ("i8", 255, -1),
        ("i32", 2**32 - 1, -1),
        ("index", 2**63 - 1, 2**63 - 1),
        ("f16", 65504, 65504.0),
        ("f16", 65519.9, 65504.0),
        ("f16", -math.inf, -math.inf),
        ("f8E4M3FN", 448.0, 448.0),
        ("f32", np.float64(0.1), 0.10000000149011612),
    ],
)
def test_a_number_at_the_end_of_the_range_of_its_type(
    filled: Callable[[str], str], kind: str, value: Any, want: float
) -> None:
    assert run(filled(kind), torch.zeros(4, dtype=DTYPES[kind]), value).tolist() == [want] * 4


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("i1", 2, "argument n is 2, outside of i1, which holds -1 to 1"),
        ("i8", 300, "argument n is 300, outside of i8, which holds -128 to 255"),
        ("i8", -129, "argument n is -129, outside of i8, which holds -128 to 255"),
        ("i32", 2**40, f"argument n is {2**40}, outside of i32, which holds -{2**31} to {2**32 - 1}"),
        ("index", 2**70, f"argument n is {2**70}, outside of index, which holds -{2**63} to {2**63 - 1}"),
        ("f16", 1e9, "argument n is 1000000000.0, outside of f16, which holds -65504 to 65504"),
        ("f16", 65520, "argument n is 65520, outside of f16, which holds -65504 to 65504"),
        ("f32", 10**400, f"argument n is {10**400}, outside of f32, which holds -3.40282e+38 to 3.40282e+38"),
        ("f8E4M3FN", math.inf, "argument n is inf, outside of f8E4M3FN, which holds -448 to 448"),
    ],
)
def test_a_number_outside_of_its_type_does_not_wrap(
    filled: Callable[[str], str], kind: str, value: Any, words: str
) -> None:
    out = torch.zeros(4, dtype=DTYPES[kind])
    assert refused(filled(kind), out, value)[:2] == ("KT216", "func.func")
    assert message(filled(kind), out, value) == words


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.zeros(4, "U1"), "argument out is an array of <U1; no tensor shows it, pass a plain copy"),
        (np.zeros(4, ">i4"), "argument out is an array of >i4; its byte order is not the machine's, pass a plain copy"),
        (np.zeros(4, np.int32)[::-1], "argument out is an array of int32; a stride is negative, pass a plain copy"),
        (torch.zeros(4, dtype=torch.int32, device="meta"), "argument out is a meta tensor, which has no elements in a row; pass a dense one"),
        (torch.zeros(4, dtype=torch.int32).to_sparse(), "argument out is a sparse_coo tensor, which has no elements in a row; pass a dense one"),
    ],
)  # fmt: skip
def test_memory_that_a_run_cannot_use(filled: Callable[[str], str], out: Any, words: str) -> None:
    assert refused(filled("i32"), out, 1)[:2] == ("KT216", "func.func")
    assert message(filled("i32"), out, 1) == words


@pytest.mark.parametrize("inplace", [False, True])
def test_numpy_arrays_come_back_as_numpy_arrays(filled: Callable[[str], str], inplace: bool) -> None:
    function = Module.parse(filled("i32")).function()
    given = np.zeros(4, np.int32)
    (found,) = function.run([given, 7], inplace=inplace).outputs
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.int32
    assert found.tolist() == [7] * 4
    assert given.tolist() == ([7] * 4 if inplace else [0] * 4)
    assert isinstance(function.run([torch.from_numpy(given), 7]).outputs[0], torch.Tensor)


@pytest.mark.parametrize("grid", ["x", 4, [1.5], ("2",)])
def test_what_is_no_grid(filled: Callable[[str], str], grid: Any) -> None:
    function = Module.parse(filled("i32")).function()
    with pytest.raises(
        KtirError, match=r"is no list of whole numbers of cores; write \(4,\) or \(8, 4\)"
    ) as error:
        function.run([torch.zeros(4, dtype=torch.int32), 1], grid=grid)
    assert error.value.code == "KT111"
    assert (
        function.run([torch.zeros(4, dtype=torch.int32), 1], grid=[np.int64(1)]).outputs[0].tolist()
        == [1] * 4
    )


@pytest.mark.parametrize(
    ("declared", "code", "words"),
    [
        ("upperbound = 16", "KT102", "the argument has no granularity"),
        ("granularity = 4", "KT102", "the argument has no upperbound"),
        ("granularity = 0, upperbound = 16", "KT101", "granularity must be positive"),
        ("granularity = 4, granularity = 4", "KT101", "granularity is given twice"),
    ],
)
def test_a_runtime_argument_that_promises_nothing(runtime: str, declared: str, code: str, words: str) -> None:
    text = runtime.replace("granularity = 4, upperbound = 16", declared)
    assert refused(text)[0] == code
    assert message(text) == words


def test_the_order_of_promises_is_free(runtime: str) -> None:
    text = runtime.replace("granularity = 4, upperbound = 16", "upperbound = 16, granularity = 4")
    assert run(text, torch.zeros(4), 8).tolist() == [8416] * 4


# --- named operations with maps of their own


@pytest.fixture(name="square")
def _square(function: Text, view: Text, tile: Text) -> Text:
    def build(attributes: str = "") -> str:
        return function(
            "\n".join(
                [
                    ZERO,
                    view("a", "in", "2x2", "f32"),
                    view("b", "out", "2x2", "f32"),
                    tile("ta", "a", "%c0, %c0", "2x2", "2x2xf32"),
                    tile("tb", "b", "%c0, %c0", "2x2", "2x2xf32"),
                    "%x = ktdp.load %ta : <2x2xindex> -> tensor<2x2xf32>",
                    "%z = arith.constant dense<0.0> : tensor<2x2xf32>",
                    f"%y = linalg.matmul {attributes}ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%z : tensor<2x2xf32>) -> tensor<2x2xf32>",
                    "ktdp.store %y, %tb : tensor<2x2xf32>, <2x2xindex>",
                ]
            ),
            "%in: index, %out: index",
        )

    return build


@pytest.mark.parametrize("first", ["(i, k)", "(k, i)"])
def test_a_matmul_has_no_maps(square: Text, first: str) -> None:
    args = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(2, 2)
    assert run(square(), *args).tolist() == [[7, 10], [15, 22]]
    maps = ", ".join(f"affine_map<(i, j, k) -> {m}>" for m in (first, "(k, j)", "(i, j)"))
    text = square(f"{{indexing_maps = [{maps}]}} ")
    assert refused(text) == ("KT102", "linalg.matmul", "%y = linalg.matmul")
    assert message(text) == "has its own indexing maps; write linalg.generic for others"


# --- values that a function returns


@pytest.mark.parametrize("cores", [1, 3])
def test_every_core_returns_its_value(function: Text, view: Text, tile: Text, cores: int) -> None:
    """Lanes hold no values to give back, so such a function runs core by core."""
    body = ["%core = ktdp.get_compute_tile_id : index", view("s", "in", "4", "f32")]
    body += [tile("x", "s", "%core", "1", "4xf32"), "%d = ktdp.load %x : <1xindex> -> tensor<1xf32>"]
    text = function("\n".join(body), "%in: index", f"[{cores}]")
    text = text.replace(") attributes", ") -> (tensor<1xf32>, index) attributes")
    text = text.replace("    return\n", "    return %d, %core : tensor<1xf32>, index\n")
    kernel = Module.parse(text).function()
    returned = kernel.run([FOUR + 5]).counters["returned"]
    assert [(d.tolist(), core) for d, core in returned] == [([5.0 + c], c) for c in range(cores)]
    assert kernel.lanes is False

    short = text.replace("return %d, %core : tensor<1xf32>, index", "return %d : tensor<1xf32>")
    assert refused(short, FOUR) == ("KT102", "func.return", "    return %d : tensor<1xf32>")
    assert message(short).endswith("expected [tensor<1xf32>, index], got [tensor<1xf32>]")


# --- rank 0


@pytest.fixture(name="scalar")
def _scalar(function: Text) -> str:
    """One element through views and tiles of rank 0."""
    body = [
        f"%{v} = ktdp.construct_memory_view %{p}, sizes: [], strides: [] {{coordinate_set = affine_set<() : ()>, {GLOBAL}}} : memref<f32>\n"
        f"%{v}t = ktdp.construct_access_tile %{v}[] {{access_tile_order = affine_map<() -> ()>, access_tile_set = affine_set<() : ()>}} : memref<f32> -> !ktdp.access_tile<index>"
        for v, p in (("a", "in"), ("b", "out"))
    ]  # fmt: skip
    body += ["%x = ktdp.load %at : <index> -> tensor<f32>\nktdp.store %x, %bt : tensor<f32>, <index>"]
    return function("\n".join(body), "%in: index, %out: index")


@pytest.mark.parametrize("spaced", [False, True])
def test_tiles_of_rank_0(scalar: str, spaced: bool) -> None:
    text = scalar.replace("sizes:", "sizes :").replace("strides:", "strides :") if spaced else scalar
    assert run(text, torch.tensor([3.0, 4.0]), torch.zeros(1)).tolist() == [3.0]
    assert run(text, torch.tensor(3.0), torch.zeros(())).item() == 3.0


@pytest.mark.parametrize(
    ("old", "new", "op", "words"),
    [
        ("sizes: []", "sizes: [1]", "construct_memory_view", "1 sizes but 0 strides"),
        ("strides: []", "strides: [1]", "construct_memory_view", "0 sizes but 1 strides"),
        ("sizes: [], strides: []", "sizes: [1], strides: [1]", "construct_memory_view", "the memref has rank 0 but there are 1 sizes"),
        ("%a[]", "%a[%in]", "construct_access_tile", "1 subscripts for a base of rank 0"),
    ],
)  # fmt: skip
def test_ranks_that_differ(scalar: str, old: str, new: str, op: str, words: str) -> None:
    text = scalar.replace(old, new, 1)
    assert refused(text)[:2] == ("KT102", f"ktdp.{op}")
    assert message(text) == words


def test_a_tile_of_rank_0_in_an_empty_buffer(scalar: str) -> None:
    code, op, line = refused(scalar, torch.zeros(0), torch.zeros(1))
    assert (code, op, line) == ("KT203", "ktdp.load", "%x = ktdp.load %at : <index> -> tensor<f32>")


def test_a_set_of_rank_0_without_its_point(scalar: str) -> None:
    text = scalar.replace(
        "access_tile_set = affine_set<() : ()>", "access_tile_set = affine_set<() : (1 == 0)>"
    )
    with pytest.raises(KtirError):
        run(text, torch.tensor(3.0), torch.zeros(()))


def test_cores_that_store_one_element(scalar: str) -> None:
    text = scalar.replace("grid = [1]", "grid = [2]")
    args = torch.tensor(3.0), torch.zeros(())
    assert refused(text, *args)[:2] == ("KT205", "ktdp.store")


# --- spellings of views


def test_empty_sizes_of_a_view_that_has_some(function: Text, view: Text, copy: str) -> None:
    text = function(f"{ZERO}\n{view('s', 'in', '4', 'f32')}\n{view('t', 'out', '4', 'f32')}\n{copy}", "%in: index, %out: index")  # fmt: skip
    spaced = text.replace("sizes:", "sizes :").replace("strides:", "strides :")
    assert torch.equal(run(spaced, FOUR, torch.zeros(4)), FOUR)
    assert message(spaced.replace("sizes : [4]", "sizes : []", 1)) == "0 sizes but 1 strides"
    missing = spaced.replace("sizes : [4]", "sizes :", 1)
    assert refused(missing)[:2] == ("KT101", "ktdp.construct_memory_view")
    assert message(missing) == "'[' expected"


def test_the_type_of_a_pointer_is_index(function: Text, view: Text, copy: str) -> None:
    views = [view("s", "in", "4", "f32"), view("t", "out", "4", "f32")]
    arrows = [v.replace(": memref<4xf32>", ": index -> memref<4xf32>") for v in views]
    text = function("\n".join([ZERO, *arrows, copy]), "%in: index, %out: index")
    assert torch.equal(run(text, FOUR, torch.zeros(4)), FOUR)
    assert refused(text.replace(": index -> memref", ": f32 -> memref", 1))[0] == "KT101"
    assert refused(text.replace(": index -> memref<4xf32>", ": index", 1))[0] == "KT104"
    other = text.replace("%in: index", "%in: i64")
    assert refused(other)[:2] == ("KT104", "ktdp.construct_memory_view")
    assert message(other) == "%in is used as index here, but it is an argument of type i64"


# --- indirect tiles without variables


@pytest.fixture(name="element")
def _element(function: Text, view: Text) -> Text:
    """One element of %s, at the index that element `at` of %i holds."""

    def build(at: str, store: bool = False, order: str = "() -> ()") -> str:
        source, target = ("bt", "a") if store else ("a", "bt")
        return function(
            "\n".join(
                [
                    "%c2 = arith.constant 2 : index",
                    view("s", "in", "4", "f32"),
                    view("i", "idx", "4", "i32"),
                    "%b = ktdp.construct_memory_view %out, sizes: [], strides: [] : memref<f32>",
                    f"%a = ktdp.construct_indirect_access_tile intermediate_variables() %s[ind(%i[{at}])] {{variables_space_order = affine_map<{order}>, variables_space_set = affine_set<() : ()>}} : memref<4xf32>, memref<4xi32> -> !ktdp.access_tile<index>",
                    "%bt = ktdp.construct_access_tile %b[] {access_tile_set = affine_set<() : ()>} : memref<f32> -> !ktdp.access_tile<index>",
                    f"%x = ktdp.load %{source} : <index> -> tensor<f32>\nktdp.store %x, %{target} : tensor<f32>, <index>",
                ]
            ),
            "%in: index, %idx: index, %out: index",
        )

    return build


INDEX = torch.tensor([0, 0, 1, 7], dtype=torch.int32)


def test_an_indirect_tile_without_variables(element: Text) -> None:
    assert run(element("%c2"), FOUR + 5, INDEX, torch.zeros(())).item() == 6.0
    assert run(element("%c2", store=True), torch.zeros(4), INDEX, torch.tensor(5.0)).tolist() == [0, 5, 0, 0]


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("%c2 + 1", "axis 0: coordinate 7 is not in [0, 4)"),
        ("%c2 + 2", "in index tensor %i: axis 0: coordinate 4 is not in [0, 4)"),
    ],
)
def test_an_indirect_tile_without_variables_that_leaves(element: Text, at: str, found: str) -> None:
    """First the index is outside the base, then the place of the index outside its tensor."""
    text, args = element(at), (FOUR, INDEX, torch.zeros(()))
    assert refused(text, *args)[:2] == ("KT201", "ktdp.construct_indirect_access_tile")
    assert message(text, *args).startswith(found)


def test_an_order_of_variables_that_are_not_there(element: Text) -> None:
    text = element("%c2", order="(d0) -> (d0)")
    assert refused(text)[:2] == ("KT102", "ktdp.construct_indirect_access_tile")
    assert message(text) == "variables_space_order must be square, of the rank of variables_space_set"


# --- tiles of tensors


PAIR, ENDS = "(d0) : (d0 >= 0, -d0 + 1 >= 0)", "(d0) : (d0 >= 0, -d0 + 2 >= 0, d0 mod 2 == 0)"


@pytest.mark.parametrize(
    ("points", "order", "expected"),
    [
        (PAIR, "(d0) -> (d0)", [1.0, 2.0]),
        (ENDS, "(d0) -> (d0)", [1.0, 3.0]),
        (PAIR, "(d0) -> (-d0)", [2.0, 1.0]),
    ],
)
def test_a_tile_of_a_tensor_is_loaded_and_never_stored_to(
    function: Text, view: Text, tile: Text, points: str, order: str, expected: list[float]
) -> None:
    body = [
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index",
        view("s", "in", "4", "f32"),
        view("t", "out", "2", "f32"),
        tile("x", "s", "%c0", "4", "4xf32"),
        tile("y", "t", "%c0", "2", "2xf32"),
        "%d = ktdp.load %x : <4xindex> -> tensor<4xf32>",
        f"%u = ktdp.construct_access_tile %d[%c1] {{access_tile_order = affine_map<{order}>, access_tile_set = affine_set<{points}>}} : tensor<4xf32> -> !ktdp.access_tile<2xindex>",
        "%e = ktdp.load %u : <2xindex> -> tensor<2xf32>",
        "ktdp.store %e, %y : tensor<2xf32>, <2xindex>",
    ]
    text = function("\n".join(body), "%in: index, %out: index")
    assert run(text, FOUR, torch.zeros(2)).tolist() == expected
    # One element before the first, which must not be the last, and one behind the last.
    for start in (-1, 3):
        beyond = text.replace("%c1 = arith.constant 1 :", f"%c1 = arith.constant {start} :")
        assert refused(beyond, FOUR, torch.zeros(2))[:2] == ("KT201", "ktdp.load")
    wrong = text.replace("ktdp.store %e, %y :", "ktdp.store %e, %u :")
    args = FOUR, torch.zeros(2)
    assert refused(wrong, *args) == ("KT216", "ktdp.store", "ktdp.store %e, %u : tensor<2xf32>, <2xindex>")
    assert message(wrong, *args) == "a tile of a tensor cannot be stored to"
