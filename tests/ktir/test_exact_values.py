"""Single values, most of which were wrong once, operations without a result, reductions, contractions, constants."""
# ruff: noqa: E501

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from exact import BITS, DTYPES, FLOATS, Bench, Case, Text, binary, bitwise, cast, held, wrapped

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

DIVISIONS = ("divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui")
SHIFTS = ("shli", "shrui", "shrsi")


@pytest.mark.parametrize(
    ("text", "kinds", "values", "result", "want"),
    [
        (cast("arith.sitofp"), ["i32"], [269484033], "bf16", 270532608.0),
        (cast("arith.sitofp"), ["i64"], [4611686293305294849], "f32", 4611686568183201792.0),
        (cast("arith.uitofp"), ["i64"], [4611686293305294849], "f32", 4611686568183201792.0),
        (cast("arith.uitofp"), ["i64"], [-1], "bf16", 2.0**64),
        (cast("arith.sitofp"), ["i64"], [2**62 + 2**54 + 1], "bf16", 2.0**62 + 2.0**55),
        (cast("arith.sitofp"), ["i1"], [1], "f8E5M2", -1.0),
        (cast("arith.truncf"), ["f64"], [1.1250000000009095], "f8E5M2", 1.25),
        (cast("arith.truncf"), ["f64"], [1.00390625 + 2.0**-40], "bf16", 1.0078125),
        (cast("arith.truncf"), ["f64"], [1.00048828125 + 2.0**-40], "f16", 1.0009765625),
        (cast("arith.truncf"), ["f32"], [464.0], "f8E4M3FN", 448.0),
        (cast("arith.truncf"), ["f32"], [465.0], "f8E4M3FN", math.nan),
        (cast("arith.truncf"), ["f32"], [-math.inf], "f8E4M3FN", math.nan),
        (binary("arith.mulf"), ["f8E4M3FN", "f8E4M3FN"], [448.0, 2.0], "f8E4M3FN", math.nan),
        ("math.sqrt {0} : {T0}", ["f32"], [7.300000190734863], "f32", 2.7018513679504395),
        ("math.sqrt {0} : {T0}", ["f64"], [1 - 2.0**-53], "f64", 1 - 2.0**-53),
        (
            "math.fma {0}, {1}, {2} : {T0}",
            ["f64"] * 3,
            [1 + 2.0**-52, 1 - 2.0**-52, -1.0],
            "f64",
            -(2.0**-104),
        ),
        ("math.fma {0}, {1}, {2} : {T0}", ["bf16"] * 3, [1.0078125, 1.5, 2.0**-100], "bf16", 1.515625),
        ("math.cbrt {0} : {T0}", ["f64"], [27.0], "f64", 3.0),
        ("math.erf {0} : {T0}", ["bf16"], [2.0**-126], "bf16", 1.3223e-38),
        ("math.round {0} : {T0}", ["f64"], [0.49999999999999994], "f64", 0.0),
        ("math.round {0} : {T0}", ["f64"], [4503599627370497.0], "f64", 4503599627370497.0),
        ("math.ceil {0} : {T0}", ["f32"], [-0.5], "f32", -0.0),
        ("math.roundeven {0} : {T0}", ["f32"], [-0.5], "f32", -0.0),
        ("math.cosh {0} : {T0}", ["f32"], [89.0], "f32", 2.2448063889081578e38),
        (binary("arith.maximumf"), ["f64"] * 2, [0.0, -0.0], "f64", 0.0),
        (binary("arith.minimumf"), ["f64"] * 2, [-0.0, 0.0], "f64", -0.0),
        (binary("arith.addi"), ["index"] * 2, [2**63 - 1, 1], "index", -(2**63)),
        (binary("arith.subi"), ["index"] * 2, [-(2**63), 1], "index", 2**63 - 1),
        (binary("arith.muli"), ["index"] * 2, [2**62, 6], "index", -(2**63)),
        (binary("arith.remsi"), ["i32"] * 2, [-(2**31), -1], "i32", 0),
        (binary("arith.divsi"), ["i1"] * 2, [0, 1], "i1", 0),
        (binary("arith.shli"), ["i1"] * 2, [1, 0], "i1", 1),
        (binary("math.ipowi"), ["i32"] * 2, [-1, -2], "i32", 1),
        (binary("math.ipowi"), ["i64"] * 2, [3, 2**40], "i64", pow(3, 2**40, 2**64)),
        ("math.fpowi {0}, {1} : {T0}, {T1}", ["f32", "i32"], [-1.0, 2**24 + 1], "f32", -1.0),
    ],
)
def test_single_values(
    bench: Bench, text: str, kinds: list[str], values: list[Any], result: str, want: Any
) -> None:
    # Nine elements take torch's vector path and its rest.
    columns = [[v] * 9 for v in values]
    if kinds == ["bf16"] and "erf" in text:
        want = float(torch.tensor(want).to(torch.bfloat16))
    elif result == "f32" and isinstance(want, float):
        want = float(np.float32(want))
    want = wrapped(want, result) if result in BITS else want
    bench.check(kinds, columns, [Case(text, (result,), ([want] * 9,), bitwise)])


@pytest.mark.parametrize(
    ("text", "kinds", "values", "result", "code"),
    [
        *((binary(f"arith.{n}"), [k, k], [5 if k != "i1" else 1, 0], k, "KT214") for n in DIVISIONS for k in ("i1", "i32")),
        *((binary(f"arith.{n}"), [k, k], [low, 1 if k == "i1" else -1], k, "KT215") for n in ("divsi", "floordivsi", "ceildivsi") for k, low in (("i1", 1), ("i8", -128), ("i32", -(2**31)), ("i64", -(2**63)))),
        *((binary(f"arith.{n}"), [k, k], [1, count], k, "KT215") for n in SHIFTS for k, count in (("i1", 1), ("i8", 8), ("i32", -1), ("i64", 64))),
        *((cast(f"arith.{n}"), ["f32"], [v], "i16", "KT215") for n, v in (("fptosi", 32768.0), ("fptoui", 65536.0), ("fptoui", -1.0), ("fptosi", math.nan), ("fptosi", math.inf))),
        (binary("math.ipowi"), ["i32"] * 2, [0, -1], "i32", "KT214"),
    ],
)  # fmt: skip
def test_undefined_results(
    bench: Bench, text: str, kinds: list[str], values: list[Any], result: str, code: str
) -> None:
    with pytest.raises(KtirError) as error:
        bench.run(kinds, [[v] for v in values], [Case(text, (result,), ([],), bitwise)])
    assert (error.value.code, error.value.diagnostics[0].op) == (code, text.split(" ")[0])


def stored(
    function: Text,
    view: Text,
    tile: Text,
    inputs: list[torch.Tensor],
    kinds: list[str],
    body: str,
    shape: str,
    kind: str,
) -> torch.Tensor:
    """`body` computes `%y` of that shape and type from `%x0`, `%x1` ..."""
    lines = ["%c0 = arith.constant 0 : index"]
    for i, (x, k) in enumerate(zip(inputs, kinds, strict=True)):
        box = "x".join(map(str, x.shape))
        zeros = ", ".join(["%c0"] * x.dim())
        lines += [view(f"v{i}", f"a{i}", box, k), tile(f"t{i}", f"v{i}", zeros, box, f"{box}x{k}")]
        lines.append(f"%x{i} = ktdp.load %t{i} : <{box}xindex> -> tensor<{box}x{k}>")
    extents = [int(n) for n in shape.split("x")]
    lines += [
        body,
        view("w", "out", shape, kind),
        tile("u", "w", ", ".join(["%c0"] * len(extents)), shape, f"{shape}x{kind}"),
    ]
    lines.append(f"ktdp.store %y, %u : tensor<{shape}x{kind}>, <{shape}xindex>")
    arguments = ", ".join([*(f"%a{i}: index" for i in range(len(inputs))), "%out: index"])
    out = torch.zeros(extents, dtype=DTYPES[kind])
    return (
        Module.parse(function("\n".join(lines), arguments))
        .function()
        .run([*inputs, out], check=False)
        .outputs[0]
    )


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize(
    ("name", "rows", "want"),
    [
        ("maximumf", [[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0], [-1.0, -0.0], [math.nan, 1.0]], [0.0, 0.0, -0.0, -0.0, math.nan]),
        ("minimumf", [[-0.0, 0.0], [0.0, -0.0], [0.0, 0.0], [1.0, 0.0], [math.nan, 1.0]], [-0.0, -0.0, 0.0, 0.0, math.nan]),
        ("maxnumf", [[-1.0, math.nan], [math.nan, math.nan], [2.0, 1.0], [math.nan, -3.0], [1.0, 1.0]], [-1.0, math.nan, 2.0, -3.0, 1.0]),
        ("minnumf", [[-1.0, math.nan], [math.nan, math.nan], [2.0, 1.0], [math.nan, -3.0], [1.0, 1.0]], [-1.0, math.nan, 1.0, -3.0, 1.0]),
    ],
)  # fmt: skip
def test_reductions_of_zeros_and_nan(
    function: Text, view: Text, tile: Text, name: str, rows: list[list[float]], want: list[float], kind: str
) -> None:
    x = torch.stack([held(row * 9, kind) for row in rows])
    first = f"%i = tensor.extract_slice %x0[0, 0] [5, 1] [1, 1] : tensor<5x18x{kind}> to tensor<5x{kind}>"
    body = f"{first}\n%y = linalg.reduce {{ arith.{name} }} ins(%x0 : tensor<5x18x{kind}>) outs(%i : tensor<5x{kind}>) dimensions = [1]"
    got = stored(function, view, tile, [x], [kind], body, "5", kind).double().tolist()
    assert all(bitwise(a, b, kind) for a, b in zip(got, want, strict=True)), got


@pytest.mark.parametrize(
    ("kinds", "a", "b", "want"),
    [
        (("i8", "i32"), [[-128, 127]], [[-128], [127]], 32513),
        (("i8", "i8"), [[100, 1]], [[2], [0]], -56),
        (("i64", "i64"), [[2**62, 3]], [[4], [5]], 15),
        (("i1", "i1"), [[1, 1]], [[1], [1]], 1),
        (("i1", "i32"), [[1, 1]], [[1], [1]], 2),
        (("f16", "f32"), [[256.0, 1.0]], [[256.0], [2.0**-7]], 65536.0078125),
        (("f64", "f64"), [[1.0, 1.0]], [[1.0], [2.0**-40]], 1 + 2.0**-40),
        (("f16", "f8E4M3FN"), [[20.0, 1.0]], [[20.0], [100.0]], math.nan),
        (("f16", "f8E4M3FN"), [[20.0, 1.0]], [[20.0], [60.0]], 448.0),
    ],
)  # fmt: skip
def test_contractions(
    function: Text, view: Text, tile: Text, kinds: tuple[str, str], a: list[Any], b: list[Any], want: Any
) -> None:
    source, target = kinds
    left, right = held(a[0], source).reshape(1, 2), held([v[0] for v in b], source).reshape(2, 1)
    zero = "0.0" if target in FLOATS else "false" if target == "i1" else "0"
    body = f"%z = arith.constant dense<{zero}> : tensor<1x1x{target}>\n%y = linalg.matmul ins(%x0, %x1 : tensor<1x2x{source}>, tensor<2x1x{source}>) outs(%z : tensor<1x1x{target}>) -> tensor<1x1x{target}>"
    got = stored(function, view, tile, [left, right], [source, source], body, "1x1", target)
    assert bitwise(got.double().item() if target in FLOATS else int(got.item()), want, target)


@pytest.mark.parametrize(
    ("name", "kind", "values", "want"),
    [
        ("round", "f32", [[0.5, -2.5, 0.4999999701976776]], [1.0, -3.0, 0.0]),
        ("abs", "f16", [[-0.0, -2.0, 3.0]], [0.0, 2.0, 3.0]),
        ("max", "f32", [[-0.0, 0.0, -0.0], [0.0, -0.0, -0.0]], [0.0, 0.0, -0.0]),
        ("max", "i8", [[-1, 2, -128], [1, -2, 127]], [1, 2, 127]),
        ("div", "i32", [[-7, 7, 8], [2, -2, 3]], [-3, -3, 2]),
        ("div_unsigned", "i32", [[-7, 7, 8], [2, 2, 3]], [2147483644, 3, 2]),
        ("add", "i1", [[1, 1, 0], [1, 0, 0]], [1, 1, 0]),
        ("mul", "f8E4M3FN", [[448.0, 2.0, 1.0], [2.0, 2.0, 1.0]], [math.nan, 4.0, 1.0]),
        ("sqrt", "f32", [[7.300000190734863] * 3], [2.7018513679504395] * 3),
    ],
)
def test_named_operations(
    function: Text, view: Text, tile: Text, name: str, kind: str, values: list[list[Any]], want: list[Any]
) -> None:
    inputs = [held(v, kind) for v in values]
    names, types = (
        ", ".join(f"%x{i}" for i in range(len(values))),
        ", ".join([f"tensor<3x{kind}>"] * len(values)),
    )
    body = f"%e = tensor.empty() : tensor<3x{kind}>\n%y = linalg.{name} ins({names} : {types}) outs(%e : tensor<3x{kind}>) -> tensor<3x{kind}>"
    got = stored(function, view, tile, inputs, [kind] * len(values), body, "3", kind)
    numbers = got.double().tolist() if kind in FLOATS else got.to(torch.int64).tolist()
    assert all(bitwise(a, b, kind) for a, b in zip(numbers, want, strict=True)), numbers


def test_named_operations_cast_nothing(function: Text, view: Text, tile: Text) -> None:
    body = "%e = tensor.empty() : tensor<3xf32>\n%y = linalg.add ins(%x0, %x0 : tensor<3xf16>, tensor<3xf16>) outs(%e : tensor<3xf32>) -> tensor<3xf32>"
    with pytest.raises(KtirError) as error:
        stored(function, view, tile, [held([1.0, 2.0, 3.0], "f16")], ["f16"], body, "3", "f32")
    assert error.value.diagnostics[0].op == "linalg.add"
    assert "f16" in str(error.value)


@pytest.mark.parametrize(
    ("kind", "spelled", "want"),
    [
        ("bf16", "1.001", 1.0),
        ("f8E5M2", "1.3", 1.25),
        ("f8E4M3FN", "0.3", 0.3125),
        ("f16", "0.1", 0.0999755859375),
    ],
)
def test_constants_are_rounded(
    function: Text, view: Text, tile: Text, kind: str, spelled: str, want: float
) -> None:
    body = f"%s = arith.constant {spelled} : {kind}\n%q = arith.extf %s : {kind} to f64\n%d = arith.constant dense<{spelled}> : tensor<1x{kind}>\n%v = arith.extf %d : tensor<1x{kind}> to tensor<1xf64>\n%h = tensor.splat %q : tensor<1xf64>\n%y = tensor.concat dim(0) %h, %v : (tensor<1xf64>, tensor<1xf64>) -> tensor<2xf64>"
    assert stored(function, view, tile, [], [], body, "2", "f64").tolist() == [want, want]
