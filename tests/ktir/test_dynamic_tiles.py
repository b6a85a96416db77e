"""Extents that are known at run time only beside numbers: what reductions, broadcasts and transposes accept."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.latency import latency
from tracer.ktir.simulator import Module
from tracer.ktir.text import parse

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


MATMUL = """func.func @f(%n: index) attributes {{grid = [1]}} {{
  %x = tensor.empty({size}) : tensor<{rows}x8xf32>
  %w = tensor.empty() : tensor<8x4xf32>
  %y = tensor.empty({size}) : tensor<{rows}x4xf32>
  %z = {op}
  return
}}
"""
PRODUCT = "linalg.matmul ins(%x, %w : tensor<{rows}x8xf32>, tensor<8x4xf32>) outs(%y : tensor<{rows}x4xf32>) -> tensor<{rows}x4xf32>"
SUM = "arith.addf %x, %x : tensor<{rows}x8xf32>"


@pytest.mark.parametrize(("op", "name", "flops"), [(PRODUCT, "linalg.matmul", 384), (SUM, "arith.addf", 48)])
@pytest.mark.parametrize("mode", ["strict", "ktir_cpu"])
def test_latency_of_extents_known_at_run_time_is_refused(op: str, name: str, flops: int, mode: str) -> None:
    def priced(rows: str, size: str) -> int:
        text = MATMUL.format(op=op.format(rows=rows), rows=rows, size=size)
        return latency(Module.parse(text).function(), [6], mode=mode).flops

    assert priced("6", "") == flops
    with pytest.raises(KtirError, match="known at run time only") as caught:
        priced("?", "%n")
    assert [(d.code, d.op, d.line) for d in caught.value.diagnostics] == [("KT117", name, 5)]
