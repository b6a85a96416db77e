"""`math.clampf`, `math.sincos`, `tensor.gather` and `tensor.scatter`: values, texts, and what is refused."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]
NAN, INF = float("nan"), float("inf")


def outcome(text: str, *args: torch.Tensor) -> torch.Tensor:
    printed = print_module(parse(text))
    assert print_module(parse(printed)) == printed
    return Module.parse(printed).function().run(list(args)).outputs[-1]


def each(body: str, kind: str, n: int) -> str:
    """`body` of every element `%e` as a scalar, whose result `%r` is an element of `%y`."""
    lines = []
    for i in range(n):
        lines.append(
            f"%i{i} = arith.constant {i} : index\n%e{i} = tensor.extract %x[%i{i}] : tensor<{n}x{kind}>"
        )
        lines.append(body.replace("%e", f"%e{i}").replace("%r", f"%r{i}").replace("%q", f"%q{i}"))
    lines.append(f"%y = tensor.from_elements {', '.join(f'%r{i}' for i in range(n))} : tensor<{n}x{kind}>")
    return "\n".join(lines)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("scalar", [False, True])
def test_a_clamp(through: Text, kind: str, scalar: bool) -> None:
    bounds = f"%lo = arith.constant -1.5 : {kind}\n%hi = arith.constant 2.0 : {kind}\n"
    if scalar:
        body = bounds + each(f"%r = math.clampf %e to [%lo, %hi] fastmath<nnan> : {kind}", kind, 5)
    else:
        body = (
            bounds + f"%a = tensor.splat %lo : tensor<5x{kind}>\n%b = tensor.splat %hi : tensor<5x{kind}>\n"
        )
        body += f"%y = math.clampf %x to [%a, %b] : tensor<5x{kind}>"
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[kind]
    x = torch.tensor([-INF, -1.25, 0.5, 7.0, 2.0], dtype=dtype)
    assert outcome(through(body, 5, kind, kind), x, torch.zeros(5, dtype=dtype)).tolist() == [
        -1.5,
        -1.25,
        0.5,
        2.0,
        2.0,
    ]


def test_a_clamp_of_nan_and_of_bounds_that_cross(through: Text) -> None:
    body = "%a = arith.constant dense<[3.0, 0.0]> : tensor<2xf32>\n%b = arith.constant dense<[1.0, 1.0]> : tensor<2xf32>\n%y = math.clampf %x to [%a, %b] : tensor<2xf32>"
    out = outcome(through(body, 2, "f32", "f32"), torch.tensor([2.0, NAN]), torch.zeros(2))
    assert out[0] == 3.0
    assert out[1].isnan()


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("scalar", [False, True])
def test_sine_and_cosine(through: Text, kind: str, scalar: bool) -> None:
    line = f"%q, %p = math.sincos %e : {kind}\n%r = arith.subf %q, %p : {kind}"
    body = each(line.replace("%p", "%qc"), kind, 3)
    if not scalar:
        body = f"%s, %c = math.sincos %x : tensor<3x{kind}>\n%y = arith.subf %s, %c : tensor<3x{kind}>"
    dtype = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64}[kind]
    x = torch.tensor([0.0, 0.5, 3.0], dtype=dtype)
    out = outcome(through(body, 3, kind, kind), x, torch.zeros(3, dtype=dtype))
    assert torch.equal(out, torch.sin(x) - torch.cos(x))


@pytest.fixture(name="taken")
def _taken(function: Text, view: Text, tile: Text) -> Text:
    """`%y` of `%x` and of indices `%i`, by shapes like `4x5`; `%d` is a tile of `base`, where it is given."""

    def build(body: str, x: str, i: str, y: str, base: str = "") -> str:
        sides = [("x", x, "f32"), ("i", i, "i32"), *([("d", base, "f32")] if base else [])]
        lines = ["%c0 = arith.constant 0 : index"]
        for name, shape, kind in [*sides, ("y", y, "f32")]:
            zeros = ", ".join(["%c0"] * len(shape.split("x")))
            lines += [
                view(f"v{name}", f"p{name}", shape, kind),
                tile(f"t{name}", f"v{name}", zeros, shape, f"{shape}x{kind}"),
            ]
        lines += [f"%{n} = ktdp.load %t{n} : <{s}xindex> -> tensor<{s}x{k}>" for n, s, k in sides]
        lines += [body, f"ktdp.store %y, %ty : tensor<{y}xf32>, <{y}xindex>"]
        return function("\n".join(lines), ", ".join(f"%p{n}: index" for n, *_ in [*sides, ("y",)]))

    return build


X = torch.arange(60.0).reshape(3, 4, 5)
ROWS = torch.tensor([[2], [0]], dtype=torch.int32)
POINTS = torch.tensor([[2, 4], [0, 1]], dtype=torch.int32)


@pytest.mark.parametrize("kept", [False, True])
def test_slices_along_an_axis(taken: Text, kept: bool) -> None:
    shape = "2x3x1x5" if kept else "2x3x5"
    body = f"%y = tensor.gather %x[%i] gather_dims([1]) unique : (tensor<3x4x5xf32>, tensor<2x1xi32>) -> tensor<{shape}xf32>"
    want = torch.stack([X[:, 2], X[:, 0]])
    out = outcome(
        taken(body, "3x4x5", "2x1", shape), X, ROWS, torch.zeros([int(n) for n in shape.split("x")])
    )
    assert torch.equal(out, want.unsqueeze(2) if kept else want)


def test_slices_at_points_of_two_axes(taken: Text) -> None:
    body = "%y = tensor.gather %x[%i] gather_dims([0, 2]) : (tensor<3x4x5xf32>, tensor<2x2xi32>) -> tensor<2x4xf32>"
    out = outcome(taken(body, "3x4x5", "2x2", "2x4"), X, POINTS, torch.zeros(2, 4))
    assert torch.equal(out, torch.stack([X[2, :, 4], X[0, :, 1]]))


@pytest.mark.parametrize("kept", [False, True])
def test_slices_put_along_an_axis(taken: Text, kept: bool) -> None:
    shape = "2x3x1x5" if kept else "2x3x5"
    body = f"%y = tensor.scatter %x into %d[%i] scatter_dims([1]) unique : (tensor<{shape}xf32>, tensor<3x4x5xf32>, tensor<2x1xi32>) -> tensor<3x4x5xf32>"
    parts = -torch.arange(30.0).reshape([int(n) for n in shape.split("x")])
    out = outcome(taken(body, shape, "2x1", "3x4x5", "3x4x5"), parts, ROWS, X, torch.zeros(3, 4, 5))
    want = X.clone()
    want[:, 2], want[:, 0] = parts.reshape(2, 3, 5)
    assert torch.equal(out, want)


GATHER = (
    "%y = tensor.gather %x[%i] gather_dims([1]) : (tensor<3x4x5xf32>, tensor<2x1xi32>) -> tensor<2x3x5xf32>"
)
SCATTER = "%y = tensor.scatter %x into %d[%i] scatter_dims([1]) unique : (tensor<2x3x5xf32>, tensor<3x4x5xf32>, tensor<2x1xi32>) -> tensor<3x4x5xf32>"


@pytest.mark.parametrize(
    ("rows", "code", "text"),
    [
        ([4, 0], "KT215", "index 4 of axis 1, which has 4 elements"),
        ([0, -1], "KT215", "index -1 of axis 1"),
        ([1, 1], "KT217", "coordinates [1] come more than once"),
    ],
)
def test_coordinates_that_are_wrong(taken: Text, rows: list[int], code: str, text: str) -> None:
    indices = torch.tensor(rows, dtype=torch.int32).reshape(2, 1)
    runs = [
        (
            taken(GATHER.replace("([1])", "([1]) unique"), "3x4x5", "2x1", "2x3x5"),
            [X, indices, torch.zeros(2, 3, 5)],
        ),
        (
            taken(SCATTER, "2x3x5", "2x1", "3x4x5", "3x4x5"),
            [torch.zeros(2, 3, 5), indices, X, torch.zeros(3, 4, 5)],
        ),
    ]
    for source, args in runs:
        with pytest.raises(KtirError, match=code) as error:
            Module.parse(source).function().run(args)
        assert text in str(error.value)
        assert error.value.diagnostics[0].op.startswith("tensor.")


def test_rows_that_may_come_again(taken: Text) -> None:
    indices = torch.tensor([[3], [3]], dtype=torch.int32)
    out = outcome(taken(GATHER, "3x4x5", "2x1", "2x3x5"), X, indices, torch.zeros(2, 3, 5))
    assert torch.equal(out, torch.stack([X[:, 3]] * 2))


def unused(body: str, other: str = "") -> str:
    """The body under a name that nothing uses, so that its own types are all that is wrong."""
    kept = f"%y = arith.addf {other}, {other}" if other else "%y = arith.constant dense<0.0>"
    return f"{body.replace('%y', '%wrong')}\n{kept} : tensor<{'3x4x5' if other else '2x3x5'}xf32>"


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("gather_dims([1])", "gather_dims([3])", "gather_dims names axis 3 of"),
        ("gather_dims([1])", "gather_dims([])", "gather_dims must be axes in order, not []"),
        ("gather_dims([1])", "gather_dims([0, 1])", "must have 2 elements, one for each of gather_dims"),
        (
            "-> tensor<2x3x5xf32>",
            "-> tensor<2x4x5xf32>",
            "the slices must have shape 2x3x1x5 or 2x3x5, not tensor<2x4x5xf32>",
        ),
        ("-> tensor<2x3x5xf32>", "-> tensor<2x3x5xf16>", "differ in element type"),
        ("tensor<2x1xi32>) ->", "tensor<2x1xi32>, index) ->", "the types of 2 operands and of one result"),
    ],
)
def test_a_gather_that_does_not_fit(taken: Text, old: str, new: str, text: str) -> None:
    assert old in GATHER
    with pytest.raises(KtirError) as error:
        Module.parse(taken(unused(GATHER.replace(old, new)), "3x4x5", "2x1", "2x3x5"))
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (SCATTER.replace(" unique", ""), "its coordinates must differ; say so: unique"),
        ("%y = math.clampf %d to [%d, %d] : tensor<3x4x5xi32>", "%d is used as tensor<3x4x5xi32>"),
        ("%n = arith.constant 1 : i32\n%y = math.clampf %n to [%n, %n] : i32", "takes floats, not i32"),
        ("%n = arith.constant 1 : i32\n%y, %z = math.sincos %n : i32", "takes floats, not i32"),
    ],
)
def test_what_else_does_not_fit(taken: Text, body: str, text: str) -> None:
    with pytest.raises(KtirError) as error:
        Module.parse(taken(unused(body, "%d"), "2x3x5", "2x1", "3x4x5", "3x4x5"))
    assert text in str(error.value)
