"""Extents that are known at run time only beside numbers: what reductions, broadcasts and transposes accept."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse

Text = Callable[..., str]
X = torch.arange(1.0, 13.0)
TILE = "%a = tensor.expand_shape %x [[0, 1]] output_shape [%n, 3] : tensor<12xf32> into tensor<?x3xf32>\n"


def program(through: Text, ops: str, out: str, count: int) -> str:
    """`%z` of type `out` and `count` elements, from `%a`: `%x` as `%n` rows of three."""
    flat = f"%w = tensor.collapse_shape %z [[0, 1]] : {out} into tensor<{count}xf32>\n" if "x" in out.split("<")[1].replace("xf32", "") else f"%w = tensor.cast %z : {out} to {out}\n"  # fmt: skip
    body = TILE + f"%i = arith.constant dense<0.0> : {out}\n" + ops + flat
    body += f"%y = tensor.insert_slice %w into %x[0] [{count}] [1] : tensor<{count}xf32> into tensor<12xf32>"
    return through(body, 12, "f32", "f32").replace(
        "%in: index, %out: index", "%in: index, %out: index, %n: index"
    )


REDUCE = "%z = linalg.reduce {{ arith.addf }} ins(%a : tensor<?x3xf32>) outs(%i : {out}) dimensions = [{d}]\n"
TURN = "%z = linalg.transpose ins(%a : tensor<?x3xf32>) outs(%i : {out}) permutation = [{d}]\n"


@pytest.mark.parametrize(
    ("ops", "out", "right", "wrong", "count", "want"),
    [
        (REDUCE, "tensor<4xf32>", "1", "0", 4, X.reshape(4, 3).sum(1)),
        (TURN, "tensor<3x4xf32>", "1, 0", "0, 1", 12, X.reshape(4, 3).T.reshape(-1)),
    ],
)  # fmt: skip
def test_a_number_where_the_input_has_a_question_mark(
    through: Text, ops: str, out: str, right: str, wrong: str, count: int, want: torch.Tensor
) -> None:
    text = program(through, ops.format(out=out, d=right), out, count)
    got = Module.parse(text).function().run([X, torch.zeros(12), 4]).outputs[0]
    assert torch.equal(got, torch.cat([want, X[count:]]))
    with pytest.raises(KtirError) as caught:
        Module.parse(program(through, ops.format(out=out, d=wrong), out, count))
    assert caught.value.code == "KT102"
    assert caught.value.diagnostics[0].op == ops.split()[2]


SHAPES = """func.func @f(%n: index) attributes {{grid = [1]}} {{
  %x = tensor.empty(%n) : tensor<?x8xf32>
  %y = tensor.empty() : tensor<{out}>
  %z = linalg.{op} ins(%x : tensor<?x8xf32>) outs(%y : tensor<{out}>) {key} = [{dims}]
  return
}}
"""


@pytest.mark.parametrize(
    ("op", "key", "out", "right", "wrong"),
    [
        ("reduce { arith.addf }", "dimensions", "4xf32", "1", ["0", "2", "-1", "0, 0"]),
        ("reduce { arith.addf }", "dimensions", "8xf32", "0", ["2", "0, 1"]),
        ("broadcast", "dimensions", "2x4x8xf32", "0", ["2", "3", "-1"]),
        ("transpose", "permutation", "8x4xf32", "1, 0", ["0, 1", "1, 1", "1, 2", "-1, 0", "1"]),
    ],
)
def test_verifiers(op: str, key: str, out: str, right: str, wrong: list[str]) -> None:
    parse(SHAPES.format(op=op, key=key, out=out, dims=right))
    for dims in wrong:
        with pytest.raises(KtirError) as caught:
            parse(SHAPES.format(op=op, key=key, out=out, dims=dims))
        assert [(d.code, d.line) for d in caught.value.diagnostics] == [("KT102", 4)], dims


def test_a_transpose_whose_place_has_other_extents(through: Text) -> None:
    out = "tensor<3x4xf32>"
    text = program(through, TURN.format(out=out, d="1, 0"), out, 12)
    small = text.replace("tensor<12xf32> into tensor<?x3xf32>", "tensor<6xf32> into tensor<?x3xf32>")
    small = small.replace("%a = tensor.expand_shape %x", "%half = tensor.extract_slice %x[0] [6] [1] : tensor<12xf32> to tensor<6xf32>\n%a = tensor.expand_shape %half")  # fmt: skip
    with pytest.raises(KtirError) as caught:
        Module.parse(small).function().run([X, torch.zeros(12), 2])
    assert (caught.value.code, caught.value.diagnostics[0].op) == ("KT225", "linalg.transpose")


def test_a_module_that_nobody_wrote_has_a_place() -> None:
    module = parse("\nfunc.func @f() attributes {grid = [1]} {\nreturn\n}\n")
    assert module.location == module.body.block.first_op.location


ALL = "affine_set<(i)[g] : (i >= 0, -i + 3 >= 0, g == 0)>"


def collective(function: Text, view: Text, tile: Text, partial: str, result: str, back: str) -> str:
    """The sum over four cores of the core's row of twelve, `%n` by `%m` of them, and its first row of `%n`."""
    future = f"!ktdp.tile_future<{partial}, groups = affine_set<(g) : (g >= 0, -g >= 0)>>"
    sizes = ", ".join(
        s for s, d in zip(("%n", "%m"), partial.split("<")[1].split("x"), strict=False) if d == "?"
    )
    lines = [
        "%core = ktdp.get_compute_tile_id : index\n%c0 = arith.constant 0 : index",
        view("source", "in", "4x12", "f32"),
        view("target", "out", "4x12", "f32"),
        tile("a", "source", "%core, %c0", "1x12", "4x12xf32"),
        "%row = ktdp.load %a : <1x12xindex> -> tensor<1x12xf32>",
        "%x = tensor.collapse_shape %row [[0, 1]] : tensor<1x12xf32> into tensor<12xf32>",
        f"%p = tensor.expand_shape %x [[0, 1]] output_shape [%n, {'%m' if sizes.count('%') > 1 else 3}] : tensor<12xf32> into {partial}",
        f"%zf = arith.constant 0.0 : f32\n%zero = tensor.splat %zf[{sizes}] : {partial}",
        f"%f = ktdp.inter_tile_produce producer_tiles_per_group = {ALL} : {partial} -> {future} {{\n^bb0(%g: index):\nktdp.yield_partial %p : {partial}\n}}",
        f"%r = ktdp.inter_tile_reduce(%f) consumer_tiles_per_group = {ALL}, identity(%zero : {partial}) : {future} -> {result} {{",
        f"^bb0(%a1: {partial}, %b1: {partial}):\n%s = arith.addf %a1, %b1 : {partial}\nktdp.yield_reduced %s : {partial}\n}}",
        back.format(t=result),
        tile("b", "target", "%core, %c0", "1x12", "4x12xf32"),
        "%z = tensor.expand_shape %y [[0, 1]] output_shape [1, 12] : tensor<12xf32> into tensor<1x12xf32>",
        "ktdp.store %z, %b : tensor<1x12xf32>, <1x12xindex>",
    ]
    return function("\n".join(lines), "%in: index, %out: index, %n: index, %m: index", grid="[4]")


FLAT = "%flat = tensor.collapse_shape %r [[0, 1]] : {t} into tensor<?xf32>\n%y = tensor.cast %flat : tensor<?xf32> to tensor<12xf32>"
ROWS = torch.arange(48.0).reshape(4, 12)


@pytest.mark.parametrize(
    ("partial", "result"),
    [
        ("tensor<?x3xf32>", "tensor<?x3xf32>"),
        ("tensor<?x3xf32>", "tensor<3x?xf32>"),
        ("tensor<?x?xf32>", "tensor<?x?xf32>"),
    ],
)
def test_partials_of_unknown_extents(
    function: Text, view: Text, tile: Text, partial: str, result: str
) -> None:
    text = collective(function, view, tile, partial, result, FLAT)
    got = Module.parse(text).function().run([ROWS, torch.zeros(4, 12), 4, 3]).outputs[0]
    assert torch.equal(got, ROWS.sum(0).expand(4, 12))


def test_partials_whose_extents_differ(function: Text, view: Text, tile: Text) -> None:
    """Core 0 has twelve rows of one, the others four of three."""
    text = collective(function, view, tile, "tensor<?x?xf32>", "tensor<?x?xf32>", FLAT)
    pick = "%first = arith.cmpi eq, %core, %c0 : index\n%c12 = arith.constant 12 : index\n%c1 = arith.constant 1 : index\n"
    pick += "%n2 = arith.select %first, %c12, %n : index\n%m2 = arith.select %first, %c1, %m : index\n%p ="
    text = text.replace("%p =", pick, 1).replace("[%n, %m]", "[%n2, %m2]")
    with pytest.raises(KtirError) as caught:
        Module.parse(text).function().run([ROWS, torch.zeros(4, 12), 4, 3])
    found = caught.value.diagnostics[-1]
    assert (found.code, found.op) == ("KT225", "arith.addf")


def test_a_reduced_tile_of_another_rank_and_several_unknown_extents(
    function: Text, view: Text, tile: Text
) -> None:
    back = "%flat = tensor.collapse_shape %r [[0, 1, 2]] : {t} into tensor<?xf32>\n%y = tensor.cast %flat : tensor<?xf32> to tensor<12xf32>"
    text = collective(function, view, tile, "tensor<?x?xf32>", "tensor<?x1x?xf32>", back)
    with pytest.raises(KtirError, match="several extents known at run time only keeps its shape") as caught:
        Module.parse(text).function().run([ROWS, torch.zeros(4, 12), 4, 3])
    found = caught.value.diagnostics[0]
    assert (found.code, found.op) == ("KT117", "ktdp.inter_tile_reduce")
