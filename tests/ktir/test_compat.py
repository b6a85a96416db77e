"""The mode that imitates the public simulator, beside the strict one."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Module

Text = Callable[..., str]


def test_accesses_past_the_end_read_zero_and_are_dropped(through: Text) -> None:
    text = through("%y = arith.addf %x, %x : tensor<8xf32>", 8, "f32", "f32")
    x, out = torch.arange(5.0), torch.full((6,), 9.0)
    with pytest.raises(KtirError) as error:
        Module.parse(text).function().run([x, out])
    assert error.value.code == "KT203"
    assert Module.parse(text).function().run([x, out], mode="ktir_cpu").outputs[0].tolist() == [
        0,
        2,
        4,
        6,
        8,
        0,
    ]


def test_scalars_are_f16_there(through: Text) -> None:
    body = "%a = arith.constant 1.0 : f32\n%b = arith.constant 1.0e-4 : f32\n%s = arith.addf %a, %b : f32\n%y = tensor.splat %s : tensor<1xf32>"
    run = Module.parse(through(body, 1, "f32", "f32")).function().run
    args = [torch.zeros(1), torch.zeros(1)]
    assert run(args, mode="ktir_cpu").outputs[0].item() == 1.0
    assert run(args).outputs[0].item() == pytest.approx(1.0001)


def test_products_round_to_the_first_input_there(function: Text, view: Text, tile: Text) -> None:
    text = function(
        "\n".join(
            [
                "%c0 = arith.constant 0 : index",
                view("va", "a", "1x1024", "f16"),
                view("vc", "c", "1x1", "f32"),
                tile("ta", "va", "%c0, %c0", "1x1024", "1x1024xf16"),
                tile("tc", "vc", "%c0, %c0", "1x1", "1x1xf32"),
                "%x = ktdp.load %ta : <1x1024xindex> -> tensor<1x1024xf16>",
                "%w = tensor.expand_shape %x [[0], [1, 2]] output_shape [1, 1024, 1] : tensor<1x1024xf16> into tensor<1x1024x1xf16>",
                "%v = tensor.collapse_shape %w [[0, 1], [2]] : tensor<1x1024x1xf16> into tensor<1024x1xf16>",
                "%z = arith.constant dense<0.0> : tensor<1x1xf32>",
                "%y = linalg.matmul ins(%x, %v : tensor<1x1024xf16>, tensor<1024x1xf16>) outs(%z : tensor<1x1xf32>) -> tensor<1x1xf32>",
                "ktdp.store %y, %tc : tensor<1x1xf32>, <1x1xindex>",
            ]
        ),
        "%a: index, %c: index",
    )
    args = [torch.full((1, 1024), 16.0).half(), torch.zeros(1, 1)]
    assert Module.parse(text).function().run(args).outputs[0].item() == 262144.0
    assert Module.parse(text).function().run(args, mode="ktir_cpu").outputs[0].item() == torch.inf


def test_unknown_modes_are_refused(through: Text) -> None:
    text = through("%y = arith.addf %x, %x : tensor<1xf32>", 1, "f32", "f32")
    with pytest.raises(ValueError, match="mode"):
        Module.parse(text).function().run([torch.zeros(1), torch.zeros(1)], mode="fast")
