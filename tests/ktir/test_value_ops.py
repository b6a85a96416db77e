"""Tests of floats, bits under another type, and padding: values, and what is refused."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module

Text = Callable[..., str]
TINY = {
    "f16": (torch.float16, 2.0**-24),
    "bf16": (torch.bfloat16, 2.0**-133),
    "f32": (torch.float32, 2.0**-149),
    "f64": (torch.float64, 2.0**-1074),
    "f8E4M3FN": (torch.float8_e4m3fn, 2.0**-9),
    "f8E5M2": (torch.float8_e5m2, 2.0**-16),
}
"""The dtype and its smallest subnormal."""


def outcome(text: str, x: torch.Tensor, y: torch.Tensor) -> list[float]:
    """What the function stores; its text is printed and parsed first, the same text each time."""
    printed = print_module(parse(text))
    assert print_module(parse(printed)) == printed
    (out,) = Module.parse(printed).function().run([x, y], check=False).outputs
    return out.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", TINY)
@pytest.mark.parametrize("scalar", [False, True])
def test_what_kind_of_number(through: Text, kind: str, scalar: bool) -> None:
    dtype, tiny = TINY[kind]
    answers = {
        "isnan": [0, 0, 0, 1],
        "isfinite": [1, 1, 1, 0],
        "isnormal": [1, 0, 0, 0],
        "isinf": [0, 0, 0, 0],
    }
    values = torch.tensor([-1.0, tiny, 0.0, float("nan")], dtype=torch.float64)
    infinite = values.clone()
    infinite[3] = float("inf")
    for name, want in answers.items():
        if scalar:
            lines = []
            for i in range(4):
                lines.append(f"%i{i} = arith.constant {i} : index")
                lines.append(f"%e{i} = tensor.extract %x[%i{i}] : tensor<4x{kind}>")
                lines.append(f"%q{i} = math.{name} %e{i} : {kind}\n%w{i} = arith.extui %q{i} : i1 to i8")
            lines.append("%y = tensor.from_elements %w0, %w1, %w2, %w3 : tensor<4xi8>")
            body = "\n".join(lines)
        else:
            body = f"%q = math.{name} %x fastmath<nnan> : tensor<4x{kind}>\n"
            body += "%y = arith.extui %q : tensor<4xi1> to tensor<4xi8>"
        text = through(body, 4, kind, "i8")
        y = torch.zeros(4, dtype=torch.int8)
        assert outcome(text, values.to(dtype), y) == want
        if kind != "f8E4M3FN":
            assert outcome(text, infinite.to(dtype), y) == [*want[:3], int(name == "isinf")]


def test_the_complement_keeps_its_digits(through: Text) -> None:
    text = through("%y = math.erfc %x : tensor<2xf64>", 2, "f64", "f64")
    out = outcome(text, torch.tensor([6.0, -6.0], dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
    assert out == pytest.approx([2.1519736712498913e-17, 2.0], rel=1e-15, abs=0)


def test_bits_under_another_type(through: Text) -> None:
    text = through("%y = tensor.bitcast %x : tensor<2xf32> to tensor<2xi32>", 2, "f32", "i32")
    assert outcome(text, torch.tensor([1.0, -0.0]), torch.zeros(2, dtype=torch.int32)) == [
        0x3F800000,
        -(2**31),
    ]


def padded(low: str, high: str, total: int = 7, body: str = "tensor.yield %z : f32", before: str = "") -> str:
    result = f"tensor<{total}xf32>" if total >= 0 else "tensor<?xf32>"
    return (
        f"%z = arith.constant 9.0 : f32\n{before}\n"
        f"%p = tensor.pad %x low[{low}] high[{high}] {{\n^bb0(%i: index):\n{body}\n}} : tensor<4xf32> to {result}\n"
        f"%y = tensor.extract_slice %p[0] [4] [1] : {result} to tensor<4xf32>"
    )


PLACE = "%k = arith.index_cast %i : index to i32\n%f = arith.sitofp %k : i32 to f32\ntensor.yield %f : f32"
ONE = "%one = arith.constant 1 : index\n%two = arith.addi %one, %one : index"


@pytest.mark.parametrize(
    ("body", "want"),
    [
        (padded("1", "2"), [9, 1, 2, 3]),
        (padded("0", "3"), [1, 2, 3, 4]),
        (padded("3", "0", body=PLACE), [0, 1, 2, 1]),
        (padded("%one", "2", before=ONE), [9, 1, 2, 3]),
        (padded("%two", "%one", before=ONE), [9, 9, 1, 2]),
        (padded("%two", "0", total=-1, before=ONE), [9, 9, 1, 2]),
        (padded("1", "2").replace("%x low", "%x nofold low"), [9, 1, 2, 3]),
    ],
)
def test_padding(through: Text, body: str, want: list[float]) -> None:
    assert outcome(through(body, 4, "f32", "f32"), torch.arange(1.0, 5.0), torch.zeros(4)) == want


def test_padding_along_two_axes(through: Text) -> None:
    body = (
        "%w = tensor.expand_shape %x [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>\n"
        "%z = arith.constant 0.0 : f32\n%p = tensor.pad %w low[0, 1] high[0, 0] {\n^bb0(%i: index, %j: index):\n"
        "tensor.yield %z : f32\n} : tensor<2x2xf32> to tensor<2x3xf32>\n"
        "%s = tensor.extract_slice %p[0, 0] [2, 2] [1, 1] : tensor<2x3xf32> to tensor<2x2xf32>\n"
        "%y = tensor.collapse_shape %s [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>"
    )
    assert outcome(through(body, 4, "f32", "f32"), torch.arange(1.0, 5.0), torch.zeros(4)) == [0, 1, 0, 3]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (padded("1", "1"), "KT102", "1 + 4 + 1 elements of axis 0, where tensor<7xf32> has 7"),
        (padded("-1", "4"), "KT102", "the low padding -1 is negative"),
        (padded("0, 0", "3"), "KT102", "2 low paddings of tensor<4xf32>"),
        (padded("1", "2", body="tensor.yield %i : index"), "KT102", "yields index, but the elements"),
        (padded("%one", "%one", before=ONE), "KT225", "a tile of shape [6] where [7] is needed"),
        (
            padded("%least", "2", total=-1, before="%least = arith.constant -1 : index"),
            "KT225",
            "a padding of -1 elements",
        ),
        (
            "%y = arith.negf %x : tensor<4xf32>\n%b = tensor.bitcast %x : tensor<4xf32> to tensor<4xi16>",
            "KT102",
            "elements of tensor<4xf32> and tensor<4xi16> differ in width",
        ),
        ("%y = arith.negf %x : tensor<4xf32>\n%b = tensor.bitcast %x : tensor<4xf32> to tensor<2x2xi32>", "KT102", "tensor<4xf32> and tensor<2x2xi32>"),
        ("%y = arith.negf %x : tensor<4xf32>\n%b = tensor.bitcast %x : tensor<4xf32> to tensor<4xindex>", "KT102", "tensor<4xf32> or tensor<4xindex>"),
        ("%n = arith.fptosi %x : tensor<4xf32> to tensor<4xi32>\n%y = arith.negf %x : tensor<4xf32>\n%b = math.isnan %n : tensor<4xi32>", "KT102", "takes floats, not tensor<4xi32>"),
        ('%y = arith.negf %x : tensor<4xf32>\n%b = "math.isnan"(%x) : (tensor<4xf32>) -> tensor<4xi8>', "KT102", "gives tensor<4xi1> for tensor<4xf32>, not tensor<4xi8>"),
    ],
)  # fmt: skip
def test_what_is_refused(through: Text, body: str, code: str, message: str) -> None:
    with pytest.raises(KtirError) as error:
        Module.parse(through(body, 4, "f32", "f32")).function().run([torch.zeros(4), torch.zeros(4)])
    found = error.value.diagnostics[0]
    assert (found.code, found.message[: len(message)]) == (code, message)
