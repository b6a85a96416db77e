"""One kernel through parser, printer, simulator and coverage."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tracer.ktir.coverage.accesses import coverage
from tracer.ktir.simulator import Module
from tracer.ktir.text.module import parse, print_module


def test_prints_what_it_parses(elementwise: Callable[..., str]) -> None:
    module = parse(elementwise(12, 64, 4, 2))
    text = print_module(module)
    again = parse(text)
    assert again.is_structurally_equivalent(module)
    assert print_module(again) == text
    assert "attributes {grid = [2]}" in text


def test_runs_on_every_core(elementwise: Callable[..., str]) -> None:
    x = torch.randn(12, 64).half()
    result = Module.parse(elementwise(12, 64, 4, 2)).function().run([x, torch.zeros_like(x)])
    assert torch.equal(result.outputs[0], x + x)
    assert result.written == (1,)


def test_covers_its_output_once(elementwise: Callable[..., str]) -> None:
    found = coverage(Module.parse(elementwise(12, 64, 4, 2)).function())
    assert not found.uncovered_writes(1, (12, 64), (64, 1))
    assert not found.repeated_writes(1, (12, 64), (64, 1))
    assert not found.unread(0, (12, 64), (64, 1))
    assert found.unread(1, (12, 64), (64, 1)).count == 12 * 64


def test_traces_every_operation(elementwise: Callable[..., str]) -> None:
    x = torch.randn(4, 64).half()
    seen: list[tuple[int, str, int]] = []
    Module.parse(elementwise(4, 64, 1, 2)).function().run(
        [x, torch.zeros_like(x)], trace=lambda core, op, values: seen.append((core, op.name, len(values)))
    )
    assert [core for core, name, _ in seen if name == "arith.addf"] == [0, 0, 1, 1]
    assert "ktdp.load" in {name for _, name, _ in seen}
    assert {count for *_, count in seen} == {1}


def test_another_grid(elementwise: Callable[..., str]) -> None:
    x = torch.randn(12, 64).half()
    text = elementwise(12, 64, 4, 2).replace("%cores = arith.constant 2", "%cores = arith.constant 3")
    run = Module.parse(text).function().run
    assert torch.equal(run([x, torch.zeros_like(x)], grid=[3]).outputs[0], x + x)
    assert not torch.equal(run([x, torch.zeros_like(x)]).outputs[0], x + x)
