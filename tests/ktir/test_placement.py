"""Arguments of a run that are none, and tensors at literal addresses: what is taken, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tracer.ktir.diagnostics import KtirError
from tracer.ktir.simulator import Function, Module

Text = Callable[..., str]


@pytest.fixture(name="doubled")
def _doubled(function: Text, view: Text, tile: Text) -> Function:
    """Doubles the four numbers at element 64, into %out."""
    body = [
        "%c0 = arith.constant 0 : index\n%at = arith.constant 64 : index",
        view("source", "at", "4", "f32"),
        view("target", "out", "4", "f32"),
        tile("a", "source", "%c0", "4", "4xf32"),
        tile("b", "target", "%c0", "4", "4xf32"),
        "%x = ktdp.load %a : <4xindex> -> tensor<4xf32>",
        "%y = arith.addf %x, %x : tensor<4xf32>",
        "ktdp.store %y, %b : tensor<4xf32>, <4xindex>",
        "ktdp.store %y, %a : tensor<4xf32>, <4xindex>",
    ]
    return Module.parse(function("\n".join(body), "%out: index")).function()


def refusal(run: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(KtirError) as error:
        run(*args, **options)
    (found,) = error.value.diagnostics
    assert (found.code, found.op) == ("KT216", "func.func")
    assert found.line > 0
    return found.message


@pytest.mark.parametrize("make", [torch.tensor, lambda v: np.array(v, np.float32)])
def test_what_is_placed_is_read_and_stored_to(doubled: Function, make: Callable[[list[float]], Any]) -> None:
    placed = make([9.0, 1.0, 2.0, 3.0, 4.0])
    result = doubled.run([torch.zeros(4)], memory={np.int64(63): placed})
    assert (result.diagnostics, result.outputs[0].tolist()) == ((), [2.0, 4.0, 6.0, 8.0])
    assert placed.tolist() == [9.0, 2.0, 4.0, 6.0, 8.0]


FROZEN = np.zeros(4, np.float32)
FROZEN.flags.writeable = False
REFUSED = [
    ("memory", 5, "memory: int is no mapping; write memory={address: tensor}"),
    ("memory", {"64": torch.zeros(4)}, "memory: address '64' is no whole number"),
    ("memory", {-4: torch.zeros(4)}, "memory: element address -4 is negative"),
    ("memory", {64: [0.0] * 4}, "memory[64]: list is no tensor or array"),
    ("memory", {64: np.zeros(4, ">f4")}, "memory[64] is an array of >f4; its byte order"),
    ("memory", {64: torch.zeros(4, device="meta")}, "memory[64] is a meta tensor"),
    ("memory", {64: torch.zeros(4, 2).t()}, "memory[64] is not contiguous; pass a contiguous copy"),
    ("memory", {64: FROZEN}, "memory[64] is a read-only array; pass a copy"),
    (
        "memory",
        {66: torch.zeros(2), 64: torch.zeros(4)},
        "memory: the tensor at element 64 reaches to 67, over the one at 66",
    ),
    ("lx", [torch.zeros(4)], "lx: list is no mapping; write lx={core: {address: tensor}}"),
    ("lx", {0: torch.zeros(4)}, "lx[0]: Tensor is no mapping; write lx[0]={address: tensor}"),
    ("lx", {0.5: {}}, "lx: core 0.5 is no whole number"),
    (
        "lx",
        {0: {4: torch.zeros(4), 8: torch.zeros(8, dtype=torch.float16)}},
        "lx[0]: the tensors at elements 4 and 8 share bytes 16 to 31; an address counts elements",
    ),
    ("uninitialized", 0, "uninitialized: int is no list of values by position; write (1,)"),
    ("uninitialized", ["out"], "uninitialized: position 'out' is no whole number"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "message"), REFUSED)
def test_what_is_placed_wrongly(doubled: Function, option: str, value: Any, message: str) -> None:
    options = {"memory": {64: torch.zeros(4)}} | {option: value}
    assert refusal(doubled.run, [torch.zeros(4)], **options).startswith(message)


def test_what_lies_side_by_side(doubled: Function) -> None:
    """Addresses count elements of the tensor's own type, and memory of another type is another."""
    memory = {60: torch.zeros(4), 64: torch.ones(4), 66: torch.zeros(2, dtype=torch.float16)}
    lx = {0: {4: np.zeros(4, np.float32), 16: torch.zeros(8, dtype=torch.float16)}}
    assert doubled.run([torch.zeros(4)], memory=memory, lx=lx).outputs[0].tolist() == [2.0] * 4


@pytest.mark.parametrize("args", [5, None, "x", {"out": torch.zeros(4)}, torch.zeros(1), np.zeros(1)])
def test_arguments_that_are_no_list(doubled: Function, args: Any) -> None:
    kind = type(args).__name__
    assert refusal(doubled.run, args) == f"args: {kind} is no list of values by position; write run([x, y])"


def test_arguments_from_a_generator(doubled: Function) -> None:
    result = doubled.run((torch.zeros(n) for n in [4]), memory={64: torch.ones(4)})
    assert result.outputs[0].tolist() == [2.0] * 4


def test_a_tensor_that_no_view_begins_in(doubled: Function) -> None:
    run = doubled.run
    assert run([torch.zeros(4)], memory={64: torch.ones(4)}).diagnostics == ()
    (found,) = run([torch.zeros(4)], memory={64: torch.ones(4), 46: torch.ones(4)}).diagnostics
    assert (found.code, found.severity) == ("KT216", "warning")
    assert found.message == "memory: no view begins in the tensor at element 46; check the address"
