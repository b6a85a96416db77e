"""Errors that another simulator makes without a word, in other dtypes, ranks, core counts and spellings.

Names of cases begin with the section of the catalogue of such errors (see test_catalogue.py, which has each
entry once). Right values come from NumPy, PyTorch or a plain enumeration of coordinates.
"""
# ruff: noqa: E501

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from tracer.ktir.coverage.findings import coverage_findings
from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
DTYPES = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "i1": torch.bool, "i32": torch.int32, "i64": torch.int64}  # fmt: skip
CORES = (
    "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index"
)


def ran(text: str, *args: Any) -> torch.Tensor:
    """The output, on lanes where they apply and core by core; both must agree, and say nothing."""
    function = Module.parse(text).function()
    fast = function.run(args)
    slow = function.run(args, trace=lambda *_: None)
    assert torch.equal(fast.outputs[0], slow.outputs[0])
    assert fast.diagnostics == slow.diagnostics == ()
    return fast.outputs[0]


def said(text: str, *args: Any) -> list[Diagnostic]:
    """Everything that parser, verifier, coverage and a run say."""
    found: list[Diagnostic] = []
    try:
        module = Module.parse(text, "file.ktir")
        function = module.function()
        found += [*module.warnings, *coverage_findings(function)]
        return [*found, *(function.run(args, check=False).diagnostics if args else ())]
    except KtirError as error:
        return [*found, *error.diagnostics]


def first(text: str, *args: Any) -> Diagnostic:
    """The first error; it shows its own line."""
    error = next(d for d in said(text, *args) if d.severity == "error")
    assert error.filename == "file.ktir"
    assert error.source == text.splitlines()[error.line - 1]
    return error


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def shape_of(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


@pytest.fixture(name="rows")
def _rows(function: Text, view: Text, tile: Text) -> Text:
    """Row by row, dealt to `cores`: `%x` (n elements) from the first argument, `%y` to the second."""

    def build(
        body: str, rows: int, n: int, kind: str, out: str = "", m: int = 0, cores: int = 3, header: str = ""
    ) -> str:
        out, m = out or kind, m or n
        return function(
            "\n".join(
                [
                    f"{CORES}\n%rows = arith.constant {rows} : index\n%cores = arith.constant {cores} : index",
                    view("source", "in", f"{rows}x{n}", kind),
                    view("target", "out", f"{rows}x{m}", out),
                    "scf.for %row = %core to %rows step %cores {",
                    tile("tile_in", "source", "%row, %c0", f"1x{n}", f"{rows}x{n}x{kind}"),
                    f"%row_in = ktdp.load %tile_in : <1x{n}xindex> -> tensor<1x{n}x{kind}>",
                    f"%x = tensor.collapse_shape %row_in [[0, 1]] : tensor<1x{n}x{kind}> into tensor<{n}x{kind}>",
                    body,
                    f"%row_out = tensor.expand_shape %y [[0, 1]] output_shape [1, {m}] : tensor<{m}x{out}> into tensor<1x{m}x{out}>",
                    tile("tile_out", "target", "%row, %c0", f"1x{m}", f"{rows}x{m}x{out}"),
                    f"ktdp.store %row_out, %tile_out : tensor<1x{m}x{out}>, <1x{m}xindex>\n}}",
                ]
            ),
            "%in: index, %out: index",
            grid=f"[{cores}]",
            header=header,
        )

    return build


def sample(rows: int, n: int, kind: str) -> torch.Tensor:
    """Small whole numbers, exact in every dtype, none of them alike in a row."""
    return torch.arange(rows * n).sub(rows * n // 2).reshape(rows, n).to(DTYPES[kind])


def words(kind: str) -> tuple[str, str, str, str]:
    """Addition, subtraction, multiplication, and what makes a literal of the kind."""
    return ("arith.addi", "arith.subi", "arith.muli", "") if kind[0] == "i" else ("arith.addf", "arith.subf", "arith.mulf", ".0")  # fmt: skip


# --- 1.8 spelling


NAMES = ["%c-1", "%c-1_0", "%$a", "%_b", "%.d", "%a.b$c-d", "%0", "%-z", "%arith.mulf"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["f16", "i64"])
def test_1_8_names(rows: Text, name: str, kind: str) -> None:
    add, _, _, point = words(kind)
    body = f"%c = arith.constant dense<50{point}> : tensor<6x{kind}>\n{name} = arith.constant dense<-3{point}> : tensor<6x{kind}>\n%sum = {add} %x, {name} : tensor<6x{kind}>\n%y = {add} %sum, %c : tensor<6x{kind}>"
    x = sample(4, 6, kind)
    assert torch.equal(ran(rows(body, 4, 6, kind), x, x * 0), x + 47)
    # Without its definition the name is not another one's.
    wrong = rows(body.replace(f"{name} = arith", "%other = arith"), 4, 6, kind)
    found = first(wrong)
    assert (found.code, found.line) == ("KT103", line_of(wrong, "%sum = "))
    assert f"{name} is not defined" in found.message


@pytest.mark.parametrize(
    "layout",
    [
        lambda t: t.replace("\n", " "),
        lambda t: t.replace(" ", "\n"),
        lambda t: t.replace(" ", "\t").replace("\n", "\r\n\r\n"),
        lambda t: "\n".join(f"{line} // ) }} ] > : %x = arith.addf, \"open" for line in t.split("\n")),
        lambda t: t.replace("%in: index,", "%in: index // in)\n,"),
    ],
    ids=["one line", "a line for each word", "tabs and CRLF", "comments of brackets", "comment in the signature"],
)  # fmt: skip
def test_1_8_layout(rows: Text, layout: Callable[[str], str]) -> None:
    x = sample(4, 6, "f32")
    text = layout(rows("%y = arith.addf %x, %x : tensor<6xf32>", 4, 6, "f32"))
    assert torch.equal(ran(text, x, x * 0), 2 * x)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64", "i32"])
@pytest.mark.parametrize("cores", [1, 3])
def test_1_8_aliases_of_maps(rows: Text, kind: str, cores: int) -> None:
    add, _, multiply, point = words(kind)
    header = "#map = affine_map<(d0, d1) -> (d0, d1)>\n#map1 = affine_map<(d0, d1) -> (d1)>\n#m_out$ = affine_map<(a, b) -> (a)>"
    body = f"""%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 3] : tensor<6x{kind}> into tensor<2x3x{kind}>
%v = tensor.extract_slice %x[1] [3] [2] : tensor<6x{kind}> to tensor<3x{kind}>
%z = arith.constant dense<0{point}> : tensor<2x{kind}>
%y = linalg.generic {{indexing_maps = [#map, #map1, #m_out$], iterator_types = ["parallel", "reduction"]}} ins(%w, %v : tensor<2x3x{kind}>, tensor<3x{kind}>) outs(%z : tensor<2x{kind}>) {{
^bb7(%p: {kind}, %q: {kind}, %o: {kind}):
%m = {multiply} %p, %q : {kind}
%s = {add} %m, %o : {kind}
linalg.yield %s : {kind}
}} -> tensor<2x{kind}>"""
    x = sample(4, 6, kind)
    w = x.double().reshape(4, 2, 3)
    want = (w * x.double()[:, None, 1::2]).sum(2).to(DTYPES[kind])
    text = rows(body, 4, 6, kind, m=2, cores=cores, header=header)
    assert torch.equal(ran(text, x, torch.zeros_like(want)), want)


def test_1_8_one_of_several_results_everywhere(function: Text, view: Text, tile: Text) -> None:
    """As pointer, size, stride, subscript and bound, on three cores."""
    body = [
        CORES,
        "%c3 = arith.constant 3 : index\n%c2 = arith.constant 2 : index",
        "%r:4 = scf.for %i = %c0 to %c1 step %c1 iter_args(%p = %in, %q = %out, %n = %c3, %k = %core) -> (index, index, index, index) {\nscf.yield %p, %q, %n, %k : index, index, index, index\n}",
        "%t = arith.constant true\n%b:2 = scf.if %t -> (index, index) {\nscf.yield %c1, %c2 : index, index\n} else {\nscf.yield %c0, %c0 : index, index\n}",
        "%s = ktdp.construct_memory_view %r#0, sizes: [%r#2, 4], strides: [4, 1] {coordinate_set = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>} : memref<?x4xf32>",
        view("o", "r#1", "3x2", "f32", "%b#1, 1"),
        tile("st", "s", "%r#3, %b#1 - %b#0", "1x2", "?x4xf32"),
        tile("ot", "o", "%r#3 * 2 - %r#3, 0", "1x2", "3x2xf32"),
        "%x = ktdp.load %st : <1x2xindex> -> tensor<1x2xf32>\nktdp.store %x, %ot : tensor<1x2xf32>, <1x2xindex>",
    ]
    x = torch.arange(12.0).reshape(3, 4)
    text = function("\n".join(body), "%in: index, %out: index", "[3]")
    assert torch.equal(ran(text, x, torch.zeros(3, 2)), x[:, 1:3])


def test_1_8_a_letter_that_is_missing_is_told_or_changes_nothing(rows: Text) -> None:
    text = rows(
        "%z = arith.constant dense<0.0> : tensor<f32>\n%s = linalg.reduce { arith.addf } ins(%x : tensor<4xf32>) outs(%z : tensor<f32>) dimensions = [0]\n%e = tensor.extract %s[] : tensor<f32>\n%y = tensor.splat %e : tensor<4xf32>",
        2, 4, "f32", cores=2,
    )  # fmt: skip
    x, poison = sample(2, 4, "f32"), torch.full((2, 4), 99.0)
    want = x.sum(1, keepdim=True).expand(2, 4)
    places = [i for i, letter in enumerate(text) if not letter.isspace()]
    told = 0
    for i in places[::6]:
        shorter = text[:i] + text[i + 1 :]
        if found := said(shorter, x, poison):
            assert all(d.line for d in found), shorter
            told += 1
        else:
            assert torch.equal(ran(shorter, x, poison), want), shorter
    assert told > len(places) // 7


# --- 4.4.1 and 4.4.2 addresses


@pytest.mark.parametrize("kind", ["f16", "i32"])
@pytest.mark.parametrize("cores", [1, 3])
def test_4_4_1_subscripts_of_rank_3(function: Text, view: Text, tile: Text, kind: str, cores: int) -> None:
    body = [
        f"{CORES}\n%c3 = arith.constant 3 : index\n%cores = arith.constant {cores} : index",
        view("a", "in", "3x4x5", kind),
        view("b", "out", "3x2x2", kind),
        "scf.for %r = %core to %c3 step %cores {",
        tile("t", "a", "%r * 2 - %r, %c1 + 1, (%c3 - %c1) floordiv 2 + %c3 mod 2", "1x2x2", f"3x4x5x{kind}"),
        tile("u", "b", "%r + %c1 - 1, 0, %c1 floordiv 2", "1x2x2", f"3x2x2x{kind}"),
        f"%x = ktdp.load %t : <1x2x2xindex> -> tensor<1x2x2x{kind}>\nktdp.store %x, %u : tensor<1x2x2x{kind}>, <1x2x2xindex>\n}}",
    ]
    x = torch.arange(60).reshape(3, 4, 5).to(DTYPES[kind])
    text = function("\n".join(body), "%in: index, %out: index", f"[{cores}]")
    assert torch.equal(ran(text, x, torch.zeros(3, 2, 2).to(x.dtype)), x[:, 2:4, 2:4])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("kind", ["f16", "f64"])
def test_4_4_2_orders_of_rank_3(
    function: Text, view: Text, tile: Text, order: tuple[int, ...], kind: str
) -> None:
    """Points sorted by the map's image: of a load, of a store, and through a distributed view."""
    sizes = (2, 3, 4)
    turned = shape_of([sizes[axis] for axis in order])
    order_map = f"(d0, d1, d2) -> ({', '.join(f'd{axis}' for axis in order)})"
    x = torch.arange(24.0).reshape(sizes).to(DTYPES[kind])
    points = sorted(
        itertools.product(*map(range, sizes)), key=lambda point: tuple(point[axis] for axis in order)
    )
    want = torch.stack([x[point] for point in points]).reshape([sizes[axis] for axis in order])
    move = f"%v = ktdp.load %t : <{turned}xindex> -> tensor<{turned}x{kind}>\nktdp.store %v, %u : tensor<{turned}x{kind}>, <{turned}xindex>"

    def program(views: str, source: str, target: str, args: str = "%in: index, %out: index") -> str:
        return function(f"{views}\n{source}\n{target}\n{move}", args)

    whole = tile("t", "a", "0, 0, 0", "2x3x4", f"2x3x4x{kind}", order_map)
    flat = tile("u", "b", "0, 0, 0", turned, f"{turned}x{kind}")
    views = f"{view('a', 'in', '2x3x4', kind)}\n{view('b', 'out', turned, kind)}"
    assert torch.equal(ran(program(views, whole, flat), x, torch.zeros_like(want)), want)

    back = f"{view('b', 'in', turned, kind)}\n{view('a', 'out', '2x3x4', kind)}"
    text = program(back, flat.replace("%u =", "%t ="), whole.replace("%t =", "%u ="))
    assert torch.equal(ran(text, want, torch.zeros_like(x)), x)

    outer = "d0 >= 0, -d0 + 1 >= 0", "d2 >= 0, -d2 + 3 >= 0"
    parts = [
        f"affine_set<(d0, d1, d2) : ({outer[0]}, {axis}, {outer[1]})>"
        for axis in ("d1 == 0", "d1 - 1 >= 0, -d1 + 2 >= 0")
    ]
    split = "\n".join(
        [
            view("p", "in", "2x1x4", kind, extra=parts[0]),
            view("q", "more", "2x2x4", kind, extra=parts[1]),
            f"%a = ktdp.construct_distributed_memory_view (%p, %q : memref<2x1x4x{kind}>, memref<2x2x4x{kind}>) : memref<2x3x4x{kind}>",
            view("b", "out", turned, kind),
        ]
    )
    text = program(split, whole, flat, "%in: index, %more: index, %out: index")
    assert torch.equal(ran(text, x[:, :1].contiguous(), x[:, 1:].contiguous(), torch.zeros_like(want)), want)


# --- 4.4.5 constants


CONSTANTS = [
    ("f16", "[[1.0, 2.0], [3.0, 4.0]]", [1, 2, 3, 4]), ("i64", "[[1, -2], [3, 4]]", [1, -2, 3, 4]), ("i32", "0xFF", [255] * 4),
    ("f32", "0x7F800000", [torch.inf] * 4), ("f16", "0x7C00", [torch.inf] * 4), ("bf16", "0xFF80", [-torch.inf] * 4),
    ("f32", '"0x0000803F000000400000404000008040"', [1, 2, 3, 4]), ("f16", '"0x003C004000420044"', [1, 2, 3, 4]),
    ("i32", '"0x01000000FEFFFFFF0300000004000000"', [1, -2, 3, 4]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "literal", "want"), CONSTANTS)
def test_4_4_5_constants(rows: Text, kind: str, literal: str, want: list[float]) -> None:
    add, _, _, _ = words(kind)
    body = f"%k = arith.constant dense<{literal}> : tensor<2x2x{kind}>\n%f = tensor.collapse_shape %k [[0, 1]] : tensor<2x2x{kind}> into tensor<4x{kind}>\n%y = {add} %x, %f : tensor<4x{kind}>"
    zero = torch.zeros(3, 4, dtype=DTYPES[kind])
    assert torch.equal(ran(rows(body, 3, 4, kind), zero, zero), (zero + torch.tensor(want)).to(zero.dtype))


NO_CONSTANTS = [
    ("dense<[[1.0, 2.0], [3.0]]>", "tensor<2x2xf32>"), ("dense<[[1.0], [3.0]]>", "tensor<2x2xf32>"), ("dense<1.5>", "tensor<2x2xi32>"),
    ("dense<true>", "tensor<2x2xi32>"), ("dense<2>", "tensor<2x2xi1>"), ("dense<>", "tensor<2x2xf32>"), ("dense<1.0>", "f32"),
    ("tru", "i1"), ("1.0", "i32"), ("300", "i8"), ("1.0", "tensor<2xf32>"), ("", "f32"), ("nan", "f32"),
]  # fmt: skip


@pytest.mark.parametrize(("literal", "type_"), NO_CONSTANTS)
def test_4_4_5_constants_that_are_none(rows: Text, literal: str, type_: str) -> None:
    text = rows(
        f"%k = arith.constant {literal} : {type_}\n%y = arith.addf %x, %x : tensor<4xf32>", 3, 4, "f32"
    )
    found = first(text)
    assert (found.code, found.op, found.line) == ("KT101", "arith.constant", line_of(text, "%k = "))


# --- 4.4.6 outs


@pytest.mark.parametrize("kind", ["f16", "f32", "i32"])
@pytest.mark.parametrize("cores", [1, 3])
def test_4_4_6_a_place_in_outs_stays_as_it_is(rows: Text, kind: str, cores: int) -> None:
    add, subtract, _, point = words(kind)
    pair, square = f"tensor<2x{kind}>", f"tensor<2x2x{kind}>"
    head = f"%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4x{kind}> into {square}\n"
    flat = f"\n%y = tensor.collapse_shape %d [[0, 1]] : {square} into tensor<4x{kind}>"
    x = sample(3, 4, kind)
    w = x.double().reshape(3, 2, 2)
    bodies = [
        (
            f"%a = {add} %w, %w : {square}\n%l = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %a) -> ({square}) {{\n%m = linalg.matmul ins(%w, %w : {square}, {square}) outs(%a : {square}) -> {square}\n%n = {add} %s, %m : {square}\nscf.yield %n : {square}\n}}\n%d = {subtract} %l, %a : {square}{flat}",
            3 * (w @ w + 2 * w),
        ),
        (
            f"%q = linalg.transpose ins(%w : {square}) outs(%w : {square}) permutation = [1, 0]\n%d = {subtract} %q, %w : {square}{flat}",
            w.mT - w,
        ),
        (
            f"%e = tensor.extract %x[%c1] : tensor<4x{kind}>\n%k = tensor.splat %e : {pair}\n%s = linalg.reduce {{ {add} }} ins(%w : {square}) outs(%k : {pair}) dimensions = [1]\n%t = linalg.reduce {{ {add} }} ins(%w : {square}) outs(%k : {pair}) dimensions = [0]\n%u = {subtract} %t, %k : {pair}\n%y = tensor.concat dim(0) %s, %u : ({pair}, {pair}) -> tensor<4x{kind}>",
            torch.cat([w.sum(2) + w[:, :1, 1], w.sum(1)], 1),
        ),
        (
            f"%two = arith.constant 2{point} : {kind}\n%q = linalg.fill ins(%two : {kind}) outs(%w : {square}) -> {square}\n%i = tensor.insert %two into %w[%c0, %c1] : {square}\n%p = {add} %q, %i : {square}\n%d = {subtract} %p, %w : {square}{flat}",
            2 + torch.tensor([[0.0, 1.0], [0.0, 0.0]]) * (2 - w),
        ),
    ]
    for body, want in bodies:
        text = rows(head + body, 3, 4, kind, cores=cores)
        assert torch.equal(ran(text, x, torch.zeros_like(x)), want.reshape(3, 4).to(x.dtype)), body


# --- 4.4.8 and 4.4.9 memory


@pytest.fixture(name="moved")
def _moved(function: Text, view: Text, tile: Text) -> Text:
    """Three cores move a row of four each between 3x4 views, the first of static or dynamic extent."""

    def build(
        kind: str, load: str = "%core, 0", store: str = "%core, 0", dynamic: bool = False, rest: str = ""
    ) -> str:
        source = view("a", "in", "3x4", kind, extra=rest)
        if dynamic:
            source = f"%a = ktdp.construct_memory_view %in, sizes: [%n, 4], strides: [4, 1] {{coordinate_set = affine_set<(d0, d1)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0, d1 >= 0, -d1 + 3 >= 0)>, memory_space = #ktdp.memory_space<global>}} : memref<?x4x{kind}>"
        body = [
            CORES,
            source,
            view("b", "out", "3x4", kind),
            tile("t", "a", load, "1x4", f"{'?' if dynamic else 3}x4x{kind}"),
            tile("u", "b", store, "1x4", f"3x4x{kind}"),
            f"%x = ktdp.load %t : <1x4xindex> -> tensor<1x4x{kind}>\nktdp.store %x, %u : tensor<1x4x{kind}>, <1x4xindex>",
        ]
        return function("\n".join(body), "%in: index, %out: index" + ", %n: index" * dynamic, "[3]")

    return build


OUTSIDE = [("%core + 1, 0", (3, 0), 2), ("%core, 1", (0, 4), 0), ("%core - 1, 0", (-1, 0), 0), ("%core * 500, 0", (500, 0), 1), ("%core, -1", (0, -1), 0)]  # fmt: skip


@pytest.mark.parametrize(("at", "where", "core"), OUTSIDE)
@pytest.mark.parametrize("kind", ["f16", "i64"])
@pytest.mark.parametrize("access", ["ktdp.load", "ktdp.store", "dynamic"])
def test_4_4_8_an_access_outside_its_view(
    moved: Text, at: str, where: tuple[int, int], core: int, kind: str, access: str
) -> None:
    """The buffers go on after their views: only views say what may be reached."""
    dynamic, op = access == "dynamic", access.replace("dynamic", "ktdp.load")
    memory = torch.arange(4096).to(DTYPES[kind]), torch.zeros(4096).to(DTYPES[kind])
    args = (*memory, 3) if dynamic else memory
    right = moved(kind, dynamic=dynamic)
    assert torch.equal(ran(right, *args)[:12], memory[0][:12])
    text = moved(kind, dynamic=dynamic, **{"store" if op == "ktdp.store" else "load": at})
    found = [d for d in said(text, *args) if d.severity == "error"][-1]
    assert (found.code, found.op, found.line) == ("KT201", op, line_of(text, op))
    assert (found.coordinates, found.core) == (where, core)


@pytest.mark.parametrize("kind", ["f16", "i64"])
def test_4_4_8_fewer_rows_than_cores(moved: Text, kind: str) -> None:
    memory = torch.arange(4096).to(DTYPES[kind]), torch.zeros(12).to(DTYPES[kind])
    found = first(moved(kind, dynamic=True), *memory, 2)
    assert (found.code, found.coordinates, found.core) == ("KT201", (2, 0), 2)
    half = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 1 >= 0, d1 >= 0, -d1 + 3 >= 0)>"
    found = first(moved(kind, rest=half), *memory)
    assert (found.code, found.op, found.coordinates, found.core) == ("KT202", "ktdp.load", (2, 0), 2)


@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_4_4_9_scratchpads(function: Text, view: Text, tile: Text, kind: str) -> None:
    """A row stored to LX and read again; from half a row further, and from another core's."""

    def text(pointer: str = "c0", owner: str = "ct_local") -> str:
        def local(name: str, at: str, space: str) -> str:
            built = view(name, at, "1x8", kind).replace("memory_space<global>", f"memory_space<{space}>")
            return f"{built}\n{tile(name + 't', name, '0, 0', '1x8', f'1x8x{kind}')}"

        body = [
            f"{CORES}\n%c4 = arith.constant 4 : index",
            view("a", "in", "3x8", kind),
            view("b", "out", "3x8", kind),
            local("l", "c0", "ct_local"),
            local("m", pointer, owner),
            tile("t", "a", "%core, 0", "1x8", f"3x8x{kind}"),
            tile("u", "b", "%core, 0", "1x8", f"3x8x{kind}"),
            f"%x = ktdp.load %t : <1x8xindex> -> tensor<1x8x{kind}>\nktdp.store %x, %lt : tensor<1x8x{kind}>, <1x8xindex>",
            f"%y = ktdp.load %mt : <1x8xindex> -> tensor<1x8x{kind}>\nktdp.store %y, %u : tensor<1x8x{kind}>, <1x8xindex>",
        ]
        return function("\n".join(body), "%in: index, %out: index", "[3]")

    x = sample(3, 8, kind)
    assert torch.equal(ran(text(), x, x * 0), x)
    for changed, code, op in ((text(pointer="c4"), "KT204", "%y = ktdp.load"), (text(owner="ct_local, ct_id = 0"), "KT206", "%y = ktdp.load"), (text(owner="ct_local, ct_id = 3"), "KT215", "%m = ")):  # fmt: skip
        found = first(changed, x, x * 0)
        assert (found.code, found.line) == (code, line_of(changed, op)), str(found)


# --- 5.2 gathers and 5.3 collectives


@pytest.fixture(name="gather")
def _gather(function: Text, view: Text, tile: Text) -> Text:
    """Rows of a 5x2 table by a 4x3 index, a row of the index at a time, dealt to the cores."""

    def build(kind: str, index: str, cores: int) -> str:
        body = [
            f"{CORES}\n%c4 = arith.constant 4 : index\n%cores = arith.constant {cores} : index",
            view("i", "ids", "4x3", index),
            view("s", "table", "5x2", kind),
            view("o", "out", "12x2", kind),
            "scf.for %r = %core to %c4 step %cores {",
            f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%p, %q) %s[ind(%i[%r, %p]), (%q)] {{variables_space_order = affine_map<(d0, d1) -> (d0, d1)>, variables_space_set = affine_set<(d0, d1) : (d0 >= 0, -d0 + 2 >= 0, d1 >= 0, -d1 + 1 >= 0)>}} : memref<5x2x{kind}>, memref<4x3x{index}> -> !ktdp.access_tile<3x2xindex>",
            tile("u", "o", "%r * 3, 0", "3x2", f"12x2x{kind}"),
            f"%x = ktdp.load %t : <3x2xindex> -> tensor<3x2x{kind}>\nktdp.store %x, %u : tensor<3x2x{kind}>, <3x2xindex>\n}}",
        ]
        return function("\n".join(body), "%ids: index, %table: index, %out: index", f"[{cores}]")

    return build


@pytest.mark.parametrize("kind", ["f16", "i64"])
@pytest.mark.parametrize("index", ["i32", "i64"])
@pytest.mark.parametrize("cores", [1, 3])
def test_5_2_gathers_over_cores(gather: Text, kind: str, index: str, cores: int) -> None:
    ids = torch.tensor([[3, 0, 4], [1, 1, 2], [0, 2, 3], [4, 0, 1]], dtype=DTYPES[index])
    table = torch.arange(4096).to(DTYPES[kind])
    text, out = gather(kind, index, cores), torch.zeros(12, 2).to(table.dtype)
    assert torch.equal(ran(text, ids, table, out), table[:10].reshape(5, 2)[ids.flatten().long()])
    for wrong in (-1, 5, 1 << 20, -(1 << 30)):
        ids[2, 1] = wrong
        found = first(text, ids, table, out)
        assert (found.code, found.line) == ("KT201", line_of(text, "%t = "))
        assert (found.coordinates, found.core) == ((wrong, 0), 2 % cores)


FOLDS = [
    ("f32", "arith.addf", "0.0", lambda x: x.sum(0)), ("i32", "arith.muli", "1", lambda x: x.prod(0)),
    ("f16", "arith.maximumf", "0xFC00", lambda x: x.amax(0)), ("i64", "arith.minsi", "9223372036854775807", lambda x: x.amin(0)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "combine", "identity", "fold"), FOLDS)
@pytest.mark.parametrize("cores", [1, 3, 6])
def test_5_3_reductions_over_cores(
    function: Text, view: Text, tile: Text, kind: str, combine: str, identity: str,
    fold: Callable[[torch.Tensor], torch.Tensor], cores: int,
) -> None:  # fmt: skip
    row, everyone = f"tensor<1x4x{kind}>", f"affine_set<(i)[g] : (i >= 0, -i + {cores - 1} >= 0, g == 0)>"
    future = f"!ktdp.tile_future<{row}, groups = affine_set<(g) : (g == 0)>>"
    body = [
        CORES,
        view("a", "in", f"{cores}x4", kind),
        view("b", "out", f"{cores}x4", kind),
        tile("t", "a", "%core, 0", "1x4", f"{cores}x4x{kind}"),
        tile("u", "b", "%core, 0", "1x4", f"{cores}x4x{kind}"),
        f"%x = ktdp.load %t : <1x4xindex> -> {row}\n%id = arith.constant dense<{identity}> : {row}",
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {everyone} : {row} -> {future} {{\n^bb0(%group: index):\nktdp.yield_partial %x : {row}\n}}",
        f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {everyone}, identity(%id : {row}) : {future} -> {row} {{\n^bb0(%p: {row}, %q: {row}):\n%s = {combine} %p, %q : {row}\nktdp.yield_reduced %s : {row}\n}}",
        f"ktdp.store %r, %u : {row}, <1x4xindex>",
    ]
    text = function("\n".join(body), "%in: index, %out: index", f"[{cores}]")
    x = sample(cores, 4, kind)
    want = fold(x.double() if kind[0] == "f" else x.long()).to(x.dtype).expand(cores, 4)
    assert torch.equal(ran(text, x, torch.zeros_like(x)), want)
    if cores == 1:
        return
    # Whoever does not consume has no value; cores of two groups are told, and so is a core that never comes.
    alone = text.replace(f"consumer_tiles_per_group = {everyone}", "consumer_tiles_per_group = affine_set<(i)[g] : (i == 0, g == 0)>")  # fmt: skip
    assert (first(alone, x, x).code, first(alone, x, x).core) == ("KT218", 1)
    both = text.replace("g == 0)>", "g >= 0, -g + 1 >= 0)>")
    assert (first(both, x, x).code, first(both, x, x).line) == ("KT213", line_of(both, "%f = "))
    some = text.replace("%f = ", "%go = arith.cmpi eq, %core, %c0 : index\nscf.if %go {\n%f = ").replace("    return", "}\n    return")  # fmt: skip
    assert (first(some, x, x).code, first(some, x, x).op) == ("KT212", "ktdp.inter_tile_reduce")
