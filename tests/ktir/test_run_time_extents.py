"""Extents that only a run knows, in operations that move elements: a tile of as many elements is not enough."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import Diagnostic, KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.simulator.lanes_run import LaneProgram
from tracer.ktir.text.module import parse

Text = Callable[..., str]
X = torch.arange(1.0, 13.0)
Q = "tensor<?x?xf32>"
S12 = "tensor<12xf32>"
TAKE = f"%s = tensor.extract_slice %x[0] [6] [1] : {S12} to tensor<6xf32>\n"
WIDE = f"{TAKE}%q = tensor.expand_shape %s [[0, 1]] output_shape [%n, %m] : tensor<6xf32> into {Q}\n"
ALL = f"%w = tensor.expand_shape %x [[0, 1]] output_shape [3, 4] : {S12} into tensor<3x4xf32>\n"
FLAT = f"%y = tensor.collapse_shape %z [[0, 1]] : tensor<3x4xf32> into {S12}"
PAIR = "%p = tensor.from_elements %n, %m : tensor<2xindex>\n"


def back(kind: str) -> str:
    """`%y` from `%z`, of six elements."""
    return f"%f = tensor.collapse_shape %z [[0, 1]] : {kind} into tensor<?xf32>\n%g = tensor.cast %f : tensor<?xf32> to tensor<6xf32>\n%y = tensor.concat dim(0) %g, %s : (tensor<6xf32>, tensor<6xf32>) -> {S12}"


def run(through: Text, body: str, n: int, m: int) -> torch.Tensor:
    text = through(body, 12, "f32", "f32").replace(
        "%in: index, %out: index", "%in: index, %out: index, %n: index, %m: index"
    )
    return Module.parse(text).function().run([X, torch.zeros(12), n, m]).outputs[0]


def refused(through: Text, body: str, n: int, m: int) -> Diagnostic:
    with pytest.raises(KtirError) as caught:
        run(through, body, n, m)
    return caught.value.diagnostics[0]


SIX = X[:6].reshape(2, 3)
INTO = X.reshape(3, 4).clone()
INTO[:2, :3] = SIX


@pytest.mark.parametrize(
    ("body", "want", "wrong", "op", "message"),
    [
        (WIDE + ALL + f"%z = tensor.insert_slice %q into %w[0, 0] [2, 3] [1, 1] : {Q} into tensor<3x4xf32>\n" + FLAT, INTO.reshape(-1), (3, 2), "tensor.insert_slice", "a tile of shape [3, 2] for a slice of sizes [2, 3]"),
        (ALL + "%v = tensor.extract_slice %w[0, 0] [%n, %m] [1, 1] : tensor<3x4xf32> to tensor<2x3xf32>\n%z = tensor.insert_slice %v into %w[1, 1] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<3x4xf32>\n" + FLAT, torch.tensor([1.0, 2, 3, 4, 5, 1, 2, 3, 9, 5, 6, 7]), (3, 2), "tensor.extract_slice", "a tile of shape [2, 3] for a slice of sizes [3, 2]"),
        (ALL + WIDE + f"%z = scf.forall (%i) in (1) shared_outs(%o = %w) -> (tensor<3x4xf32>) {{\nscf.forall.in_parallel {{\ntensor.parallel_insert_slice %q into %o[0, 0] [2, 3] [1, 1] : {Q} into tensor<3x4xf32>\n}}\n}}\n" + FLAT, INTO.reshape(-1), (3, 2), "tensor.parallel_insert_slice", "a tile of shape [3, 2] for a slice of sizes [2, 3]"),
        (TAKE + PAIR + f"%z = tensor.reshape %s(%p) : (tensor<6xf32>, tensor<2xindex>) -> {Q}\n" + back(Q), torch.cat([X[:6], X[:6]]), (2, 4), "tensor.reshape", "the shape operand says [2, 4] for a tile of shape [6]"),
        (TAKE + PAIR + f"%z = tensor.reshape %s(%p) : (tensor<6xf32>, tensor<2xindex>) -> {Q}\n" + back(Q), torch.cat([X[:6], X[:6]]), (-2, -3), "tensor.reshape", "the shape operand says [-2, -3]"),
        (TAKE + PAIR + "%z = tensor.reshape %s(%p) : (tensor<6xf32>, tensor<2xindex>) -> tensor<2x3xf32>\n" + back("tensor<2x3xf32>").replace("tensor<?xf32>\n", "tensor<6xf32>\n").replace("%f : tensor<?xf32>", "%f : tensor<6xf32>"), torch.cat([X[:6], X[:6]]), (3, 2), "tensor.reshape", "a tile of shape [3, 2] where [2, 3] is needed"),
        (WIDE + f"%c = arith.constant dense<[3, 2]> : tensor<2xi32>\n%z = tensor.reshape %q(%c) : ({Q}, tensor<2xi32>) -> tensor<3x2xf32>\n%f = tensor.collapse_shape %z [[0, 1]] : tensor<3x2xf32> into tensor<6xf32>\n%y = tensor.concat dim(0) %s, %f : (tensor<6xf32>, tensor<6xf32>) -> {S12}", torch.cat([X[:6], X[:6]]), None, "", ""),
        (f"%s = tensor.extract_slice %x[0] [%n] [1] : {S12} to tensor<?xf32>\n%c = arith.constant dense<[2]> : tensor<1xi32>\n%z = tensor.reshape %s(%c) : (tensor<?xf32>, tensor<1xi32>) -> tensor<2xf32>\n%y = tensor.insert_slice %z into %x[10] [2] [1] : tensor<2xf32> into {S12}", torch.cat([X[:10], X[:2]]), (3, 3), "tensor.reshape", "the shape operand says [2] for a tile of shape [3]"),
        (TAKE + "%z = tensor.expand_shape %s [[0, 1]] output_shape [%n, 3] : tensor<6xf32> into tensor<2x3xf32>\n%f = tensor.collapse_shape %z [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>\n" + f"%y = tensor.concat dim(0) %s, %f : (tensor<6xf32>, tensor<6xf32>) -> {S12}", torch.cat([X[:6], X[:6]]), (3, 3), "tensor.expand_shape", "a tile of shape [3, 3] where [2, 3] is needed"),
    ],
)  # fmt: skip
def test_shapes_of_as_many_elements(
    through: Text, body: str, want: torch.Tensor, wrong: tuple[int, int] | None, op: str, message: str
) -> None:
    assert torch.equal(run(through, body, 2, 3), want)
    if wrong is not None:
        found = refused(through, body, *wrong)
        assert (found.code, found.op) == ("KT225", op)
        assert message in found.message


COLUMNS = f"{TAKE}%a = tensor.expand_shape %s [[0, 1]] output_shape [%n, 3] : tensor<6xf32> into tensor<?x3xf32>\n%b = tensor.extract_slice %w[0, 0] [%m, 3] [1, 1] : tensor<3x4xf32> to tensor<?x3xf32>\n"


@pytest.mark.parametrize(
    ("dim", "result", "rows", "columns", "want"),
    [
        (0, "?x3", 4, 3, torch.cat([SIX, X.reshape(3, 4)[:2, :3]])),
        (1, "?x6", 2, 6, torch.cat([SIX, X.reshape(3, 4)[:2, :3]], dim=1)),
    ],
)
def test_concat(through: Text, dim: int, result: str, rows: int, columns: int, want: torch.Tensor) -> None:
    body = ALL + COLUMNS + f"%z = tensor.concat dim({dim}) %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<{result}xf32>\n%k = tensor.cast %z : tensor<{result}xf32> to tensor<{rows}x{columns}xf32>\n%y = tensor.collapse_shape %k [[0, 1]] : tensor<{rows}x{columns}xf32> into {S12}"  # fmt: skip
    assert torch.equal(run(through, body, 2, 2), want.reshape(-1))
    found = refused(through, body, 2, 3)
    text = "operand 1 has shape [3, 3], operand 0 [2, 3]; they may differ along axis 1 only"
    where = (
        ("tensor.concat", text) if dim else ("tensor.cast", "a tile of shape [5, 3] where [4, 3] is needed")
    )
    assert (found.code, found.op, found.message) == ("KT225", *where)


def test_concat_into_numbers(through: Text) -> None:
    body = ALL + COLUMNS + f"%z = tensor.concat dim(0) %a, %b : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>\n%y = tensor.collapse_shape %z [[0, 1]] : tensor<4x3xf32> into {S12}"  # fmt: skip
    assert torch.equal(run(through, body, 2, 2), torch.cat([SIX, X.reshape(3, 4)[:2, :3]]).reshape(-1))
    found = refused(through, body, 2, 1)
    assert (found.code, found.op) == ("KT225", "tensor.concat")
    assert found.message == "a tile of shape [3, 3] where [4, 3] is needed"


def rows(elementwise: Text, body: str) -> str:
    """Six rows of six, two at a time, on three cores; `%k` is an argument."""
    return elementwise(6, 6, 2, 3, body).replace("%out: index", "%out: index, %k: index")


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("%q = tensor.from_elements %k, %extent : tensor<2xindex>\n%r = tensor.reshape %x(%q) : ({t}, tensor<2xindex>) -> tensor<6x2xf16>\n%e = tensor.empty() : {t}\n%y = linalg.transpose ins(%r : tensor<6x2xf16>) outs(%e : {t}) permutation = [1, 0]", "tensor.reshape"),
        # the shape differs from lane to lane, by nothing
        ("%nil = arith.muli %t, %c0 : index\n%k2 = arith.addi %k, %nil : index\n%q = tensor.from_elements %k2, %extent : tensor<2xindex>\n%z = arith.constant dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0], [10.0, 11.0]]> : tensor<6x2xf16>\n%two = arith.constant dense<[2, 6]> : tensor<2xindex>\n%r = tensor.reshape %x(%q) : ({t}, tensor<2xindex>) -> tensor<6x2xf16>\n%h = arith.addf %r, %z : tensor<6x2xf16>\n%y = tensor.reshape %h(%two) : (tensor<6x2xf16>, tensor<2xindex>) -> {t}", "tensor.reshape"),
        ("%h = tensor.extract_slice %x[0, 0] [1, %k] [1, 1] : {t} to tensor<6xf16>\n%y = tensor.insert_slice %h into %x[1, 0] [1, 6] [1, 1] : tensor<6xf16> into {t}", "tensor.extract_slice"),
        ("%h = tensor.extract_slice %x[0, 0] [1, 6] [1, 1] : {t} to tensor<6xf16>\n%y = tensor.insert_slice %h into %x[1, 0] [1, %k] [1, 1] : tensor<6xf16> into {t}", "tensor.insert_slice"),
    ],
)  # fmt: skip
def test_lanes(elementwise: Text, body: str, op: str) -> None:
    x = torch.arange(36.0).reshape(6, 6).half()
    fast, slow = (Module.parse(rows(elementwise, body)).function() for _ in range(2))
    slow.lanes = False
    got = fast.run([x, torch.zeros_like(x), 6]).outputs[0]
    assert isinstance(fast.lanes, LaneProgram)
    assert torch.equal(got, slow.run([x, torch.zeros_like(x), 6]).outputs[0])
    for function in (fast, slow):
        with pytest.raises(KtirError) as caught:
            function.run([x, torch.zeros_like(x), 4])
        found = caught.value.diagnostics[0]
        assert (found.code, found.op, found.core) == ("KT225", op, 0)


STATIC = """func.func @f(%n: index, %x: tensor<{source}xf32>, %p: tensor<{length}>) -> tensor<{result}xf32> attributes {{grid = [1]}} {{
  {constant}
  %y = tensor.reshape %x(%p) : (tensor<{source}xf32>, tensor<{length}>) -> tensor<{result}xf32>
  return %y : tensor<{result}xf32>
}}
"""


@pytest.mark.parametrize(
    ("source", "length", "result", "said", "message"),
    [
        ("6", "2xi32", "2x3", None, ""),
        ("6", "2xi32", "2x2", None, "tensor<6xf32> has 6 elements, tensor<2x2xf32> 4"),
        ("6", "3xi32", "2x3", None, "a shape of tensor<3xi32> for tensor<2x3xf32>, which has rank 2"),
        ("6", "1x2xi32", "2x3", None, "a shape of tensor<1x2xi32>"),
        ("6", "?xi32", "2x3", None, "a shape of tensor<?xi32>"),
        ("?x2", "2xi32", "?x?", None, ""),
        ("?", "2xi32", "2x3", None, ""),
        ("6", "2xindex", "?x3", "2, 3", ""),
        ("6", "2xindex", "?x3", "2, 2", "the shape operand says [2, 2]"),
        ("6", "2xindex", "?x?", "2, 2", "the shape operand says [2, 2] for tensor<6xf32>"),
        ("6", "2xindex", "?x?", "-2, -3", "the shape operand says [-2, -3]"),
    ],
)  # fmt: skip
def test_types_of_a_reshape(source: str, length: str, result: str, said: str | None, message: str) -> None:
    constant = f"%q = arith.constant dense<[{said}]> : tensor<{length}>" if said else ""
    text = STATIC.format(source=source, length=length, result=result, constant=constant)
    text = text.replace("%x(%p)", "%x(%q)") if said else text
    if not message:
        parse(text)
        return
    with pytest.raises(KtirError, match="KT102") as caught:
        parse(text)
    found = caught.value.diagnostics[0]
    assert (found.op, found.line) == ("tensor.reshape", 3)
    assert message in found.message


@pytest.mark.parametrize(
    ("n", "message"),
    [
        (5, ""),
        (1 << 47, "a tile is larger than the memory of this machine"),
        (1 << 49, "a tile of shape [562949953421312] has more elements than any memory"),
        ((1 << 63) - 1, "a tile of shape [9223372036854775807] has more elements than any memory"),
    ],
)
def test_tiles_that_no_machine_holds(through: Text, n: int, message: str) -> None:
    body = f"%one = arith.constant 1.0 : f64\n%e = tensor.empty(%n) : tensor<?xf64>\n%t = linalg.fill ins(%one : f64) outs(%e : tensor<?xf64>) -> tensor<?xf64>\n%s = arith.addf %t, %t : tensor<?xf64>\n%y = arith.addf %x, %x : {S12}"  # fmt: skip
    if not message:
        assert torch.equal(run(through, body, n, 0), X + X)
        return
    found = refused(through, body, n, 0)
    assert (found.code, found.message) == ("KT207", message)
