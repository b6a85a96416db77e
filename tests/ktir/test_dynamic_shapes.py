"""Tiles whose extents are known at run time only: right values, and errors where extents do not agree."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency.model import latency
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


def generic(
    maps: str, kinds: str, operands: str, body: str, args: str = "%p: f32, %q: f32", result: str = D
) -> str:
    """`%z`: a generic with these operands (`ins(...) outs(...)`)."""
    maps = ", ".join(f"affine_map<{m}>" for m in maps.split("; "))
    return (
        f"%z = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} {operands} {{\n"
        f"^bb0({args}):\n{body}\nlinalg.yield %w : f32\n}} -> {result}\n"
    )


LINE, PARALLEL, REDUCED = "(d0) -> (d0)", '"parallel"', '"parallel", "reduction"'
ADD = "%w = arith.addf %p, %q : f32"
ZERO = "%f0 = arith.constant 0.0 : f32\n"
ROWS = "%a = tensor.expand_shape %x [[0, 1]] output_shape [%rows, %n] : tensor<12xf32> into tensor<?x?xf32>\n"
KEPT = "%k = tensor.dim %z, %c0 : tensor<?xf32>\n%y = tensor.insert_slice %z into %x[0] [%k] [1] : tensor<?xf32> into tensor<12xf32>"
NUMBER = "%i = linalg.index 0 : index\n%j = arith.index_cast %i : index to i32\n%f = arith.sitofp %j : i32 to f32\n"


@pytest.mark.parametrize("n", [0, 1, 5, 12])
@pytest.mark.parametrize(
    ("body", "want"),
    [
        (generic(f"{LINE}; {LINE}", PARALLEL, f"ins(%s : {D}) outs(%s : {D})", ADD), lambda x: 2 * x),
        (generic(f"{LINE}; {LINE}", PARALLEL, f"ins(%s : {D}) outs(%s : {D})", NUMBER + "%w = arith.addf %p, %f : f32"), lambda x: x + torch.arange(len(x))),
        (generic(f"(d0) -> (); {LINE}", PARALLEL, f"ins(%one : f32) outs(%s : {D})", ADD).replace("%z =", "%one = arith.constant 1.0 : f32\n%z =", 1), lambda x: x + 1),
        (f"%z = linalg.map ins(%s, %s : {D}, {D}) outs(%s : {D}) (%p: f32, %q: f32) {{\n%w = arith.mulf %p, %q : f32\nlinalg.yield %w : f32\n}}\n", lambda x: x * x),
        (f"%z = linalg.map ins(%s : {D}) outs(%s : {D}) (%p: f32) {{\n%w = arith.constant 7.0 : f32\nlinalg.yield %w : f32\n}}\n", lambda x: torch.full_like(x, 7)),
        (f"%z = tensor.generate %n {{\n^bb0(%i: index):\n%j = arith.index_cast %i : index to i32\n%f = arith.sitofp %j : i32 to f32\ntensor.yield %f : f32\n}} : {D}\n", lambda x: torch.arange(float(len(x)))),
    ],
)  # fmt: skip
def test_regions(through: Text, body: str, want: Callable[[torch.Tensor], torch.Tensor], n: int) -> None:
    assert torch.equal(run(program(through, CUT + body + BACK), n), front(n, want(X[:n])))


@pytest.mark.parametrize("n", [1, 3, 12])
@pytest.mark.parametrize("body", [ADD, "%d = arith.mulf %p, %p : f32\n%w = arith.addf %d, %q : f32", "%d = arith.addf %q, %q : f32\n%w = arith.addf %d, %p : f32"])  # fmt: skip
def test_a_generic_that_reduces(through: Text, body: str, n: int) -> None:
    text = "%c12 = arith.constant 12 : index\n%rows = arith.divui %c12, %n : index\n" + ROWS + ZERO
    text += f"%e = tensor.splat %f0[%rows] : {D}\n"
    text += generic("(d0, d1) -> (d0, d1); (d0, d1) -> (d0)", REDUCED, f"ins(%a : tensor<?x?xf32>) outs(%e : {D})", body)  # fmt: skip
    rows = X.reshape(-1, n)
    want = torch.zeros(12 // n)
    for column in rows.T:
        want = want + column if body == ADD else want + column**2 if "%p, %p" in body else 2 * want + column
    assert torch.equal(run(program(through, text + KEPT), n), front(12 // n, want))


WINDOW = "(d0, d1) -> (d0 + d1); (d0, d1) -> (d1); (d0, d1) -> (d0)"


def window(outputs: str) -> str:
    """Sums of neighbours: the input of `%n` elements holds `outputs` windows of two."""
    text = CUT + ZERO + f"%pair = arith.constant dense<1.0> : tensor<2xf32>\n%e = tensor.splat %f0[{outputs}] : {D}\n"  # fmt: skip
    text += generic(WINDOW, REDUCED, f"ins(%s, %pair : {D}, tensor<2xf32>) outs(%e : {D})", "%d = arith.mulf %p, %r : f32\n%w = arith.addf %q, %d : f32", "%p: f32, %r: f32, %q: f32")  # fmt: skip
    return text + KEPT


def test_subscripts_that_are_no_plain_loop(through: Text) -> None:
    text = program(through, window("%m"))
    assert torch.equal(run(text, 5, 4), front(4, X[:4] + X[1:5]))
    with pytest.raises(KtirError, match=r"KT225.*subscripts 0 to 5 of axis 0, which has 5") as caught:
        run(text, 5, 5)
    assert caught.value.diagnostics[0].op == "linalg.generic"


S5 = "tensor<5xf32>"


@pytest.mark.parametrize(
    "body",
    [
        f"%z = linalg.square ins(%s : {D}) outs(%five : {S5}) -> {S5}\n",
        f"%z = linalg.map ins(%s : {D}) outs(%five : {S5}) (%p: f32) {{\n%w = arith.mulf %p, %p : f32\nlinalg.yield %w : f32\n}}\n",
        generic(f"{LINE}; {LINE}", PARALLEL, f"ins(%s : {D}) outs(%five : {S5})", "%w = arith.mulf %p, %p : f32", result=S5),
    ],
)  # fmt: skip
def test_a_number_beside_a_question_mark(through: Text, body: str) -> None:
    text = CUT + f"%five = arith.constant dense<0.0> : {S5}\n" + body
    text = program(
        through, text + f"%y = tensor.insert_slice %z into %x[0] [5] [1] : {S5} into tensor<12xf32>"
    )
    assert torch.equal(run(text, 5), front(5, X[:5] ** 2))
    with pytest.raises(KtirError, match="KT225"):
        run(text, 4)


def test_a_contraction_of_number_and_question_mark(through: Text) -> None:
    text = MATMUL.replace("tensor<?x?xf32>) outs", "tensor<?x3xf32>) outs")
    text = text.replace("%zero =", "%b3 = tensor.cast %b : tensor<?x?xf32> to tensor<?x3xf32>\n%zero =")
    text = program(through, text.replace("ins(%a, %b ", "ins(%a, %b3 "))
    want = (X.reshape(3, 4) @ torch.ones(4, 3)).reshape(-1)
    assert torch.equal(run(text, 4, 3), front(9, want))
    with pytest.raises(KtirError, match="KT225"):
        run(text, 4, 2)
    wrong = "%u = linalg.add ins(%x, %x : tensor<12xf32>, tensor<12xf32>) outs(%x : tensor<12xf32>) -> tensor<12xf32>\n%q = linalg.square ins(%u : tensor<12xf32>) outs(%v : tensor<5xf32>) -> tensor<5xf32>\n"
    with pytest.raises(KtirError, match="differs in shape"):
        Module.parse(program(through, "%v = arith.constant dense<0.0> : tensor<5xf32>\n" + wrong + "%y = arith.addf %x, %x : tensor<12xf32>"))  # fmt: skip


def test_the_latency_of_a_generic_over_dynamic_tiles_takes_a_run(through: Text) -> None:
    body = generic(f"{LINE}; {LINE}", PARALLEL, f"ins(%s : {D}) outs(%s : {D})", ADD)
    function = Module.parse(program(through, CUT + body + BACK)).function()
    assert latency(function, [X, torch.zeros(12), 4, 3]).flops == 4
    with pytest.raises(KtirError, match="known at run time only") as caught:
        latency(function, [None, torch.zeros(12), 4, 3])
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == ("KT117", "linalg.generic")
    assert "linalg.generic" in found.source
