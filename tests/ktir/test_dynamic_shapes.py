"""Tiles whose extents are known at run time only: right values, and errors where extents do not agree."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]
X = torch.arange(1.0, 13.0)
D = "tensor<?xf32>"
CUT = f"%s = tensor.extract_slice %x[0] [%n] [1] : tensor<12xf32> to {D}\n"
BACK = f"%y = tensor.insert_slice %z into %x[0] [%n] [1] : {D} into tensor<12xf32>"


def program(through: Text, body: str) -> str:
    """`%n` is an argument: how much of `%x` takes part."""
    text = through(body, 12, "f32", "f32")
    return text.replace("%in: index, %out: index", "%in: index, %out: index, %n: index, %m: index")


def run(text: str, n: int, m: int = 3) -> torch.Tensor:
    return Module.parse(text).function().run([X, torch.zeros(12), n, m]).outputs[0]


def front(n: int, value: torch.Tensor) -> torch.Tensor:
    return torch.cat([value, X[n:]])


@pytest.mark.parametrize("n", [0, 1, 5, 12])
@pytest.mark.parametrize(
    ("body", "want"),
    [
        (f"%z = arith.addf %s, %s : {D}\n", lambda x: x + x),
        (f"%z = math.sqrt %s : {D}\n", torch.sqrt),
        (f"%two = arith.constant 2.0 : f32\n%e = tensor.empty(%n) : {D}\n%t = linalg.fill ins(%two : f32) outs(%e : {D}) -> {D}\n%z = arith.mulf %s, %t : {D}\n", lambda x: 2 * x),
        (f"%two = arith.constant 2.0 : f32\n%t = tensor.splat %two[%n] : {D}\n%z = linalg.sub ins(%s, %t : {D}, {D}) outs(%t : {D}) -> {D}\n", lambda x: x - 2),
        (f"%d = tensor.dim %s, %c0 : {D}\n%i = arith.index_cast %d : index to i32\n%f = arith.sitofp %i : i32 to f32\n%z = tensor.splat %f[%d] : {D}\n", lambda x: torch.full_like(x, len(x))),
        (f"%z = tensor.cast %s : {D} to {D}\n", lambda x: x),
    ],
)  # fmt: skip
def test_elementwise(through: Text, body: str, want: Callable[[torch.Tensor], torch.Tensor], n: int) -> None:
    assert torch.equal(run(program(through, CUT + body + BACK), n), front(n, want(X[:n])))


@pytest.mark.parametrize("n", [1, 4, 12])
def test_reduce_and_broadcast(through: Text, n: int) -> None:
    body = CUT + (
        "%zero = arith.constant dense<0.0> : tensor<f32>\n"
        f"%r = linalg.reduce {{ arith.addf }} ins(%s : {D}) outs(%zero : tensor<f32>) dimensions = [0]\n"
        f"%e = tensor.empty(%n) : {D}\n"
        f"%z = linalg.broadcast ins(%r : tensor<f32>) outs(%e : {D}) dimensions = [0]\n"
    )
    assert torch.equal(run(program(through, body + BACK), n), front(n, X[:n].sum().expand(n)))


MATMUL = """%c12 = arith.constant 12 : index
%rows = arith.divui %c12, %n : index
%a = tensor.expand_shape %x [[0, 1]] output_shape [%rows, %n] : tensor<12xf32> into tensor<?x?xf32>
%e = tensor.empty(%n, %m) : tensor<?x?xf32>
%one = arith.constant 1.0 : f32
%b = linalg.fill ins(%one : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
%zero = arith.constant 0.0 : f32
%f = tensor.empty(%rows, %m) : tensor<?x?xf32>
%c = linalg.fill ins(%zero : f32) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
%p = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
%z = tensor.collapse_shape %p [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
%k = tensor.dim %z, %c0 : tensor<?xf32>
%y = tensor.insert_slice %z into %x[0] [%k] [1] : tensor<?xf32> into tensor<12xf32>"""


@pytest.mark.parametrize(("n", "m"), [(4, 3), (2, 2), (12, 5)])
def test_matmul_and_reshapes(through: Text, n: int, m: int) -> None:
    rows = 12 // n
    want = (X.reshape(rows, n) @ torch.ones(n, m)).reshape(-1)
    assert torch.equal(run(program(through, MATMUL), n, m), front(rows * m, want))


def tile(n: str) -> str:
    return (
        f"%t = ktdp.construct_access_tile %source[%c0] symbols({n}) {{access_tile_order = affine_map<(d0) -> (d0)>, "
        "access_tile_set = affine_set<(d0)[s0] : (d0 >= 0, -d0 + s0 - 1 >= 0)>} : memref<12xf32> -> !ktdp.access_tile<?xindex>\n"
        f"%s = ktdp.load %t : <?xindex> -> {D}\n"
    )


@pytest.mark.parametrize("n", [1, 7, 12])
def test_access_tiles(through: Text, n: int) -> None:
    store = tile("%n").replace("%source", "%target").replace("%t =", "%u =").split("%s =")[0]
    body = tile("%n") + f"%z = arith.addf %s, %s : {D}\n{store}ktdp.store %z, %u : {D}, <?xindex>\n{BACK}"
    assert torch.equal(run(program(through, body), n), front(n, 2 * X[:n]))


CUT_M = f"%o = tensor.extract_slice %x[0] [%m] [1] : tensor<12xf32> to {D}\n"


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize(
    ("body", "op"),
    [
        (f"%z = arith.addf %s, %o : {D}\n", "arith.addf"),
        (f"%z = linalg.add ins(%s, %s : {D}, {D}) outs(%o : {D}) -> {D}\n", "linalg.add"),
        (f"%w = tensor.cast %s : {D} to tensor<3xf32>\n%z = tensor.cast %w : tensor<3xf32> to {D}\n", "tensor.cast"),
        (f"%z = tensor.insert_slice %o into %s[0] [%n] [1] : {D} into {D}\n", "tensor.insert_slice"),
        (f"%w = tensor.expand_shape %s [[0, 1]] output_shape [1, %m] : {D} into tensor<1x?xf32>\n%z = tensor.collapse_shape %w [[0, 1]] : tensor<1x?xf32> into {D}\n", "tensor.expand_shape"),
    ],
)  # fmt: skip
def test_extents_that_differ(through: Text, body: str, op: str, n: int) -> None:
    text = program(through, CUT + CUT_M + body + BACK)
    assert run(text, 3, 3).shape == (12,)
    with pytest.raises(KtirError) as caught:
        run(text, n, 3)
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == ("KT225", op)
    assert op in found.source


def test_an_access_tile_beyond_its_view(through: Text) -> None:
    with pytest.raises(KtirError, match="KT201"):
        run(program(through, tile("%n") + f"%z = arith.addf %s, %s : {D}\n" + BACK), 13)


def test_a_generic_over_dynamic_tiles_is_refused(through: Text) -> None:
    body = CUT + (
        "%z = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], "
        f'iterator_types = ["parallel"]}} ins(%s : {D}) outs(%s : {D}) {{\n^bb0(%p: f32, %q: f32):\n'
        f"%w = arith.addf %p, %p : f32\nlinalg.yield %w : f32\n}} -> {D}\n"
    )
    with pytest.raises(KtirError, match=r"KT117.*use a named operation"):
        run(program(through, body + BACK), 4)
