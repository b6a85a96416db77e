"""Exact tiles at sizes, blocks and core counts that nobody chose."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tracer.ktir.simulator import Module

BLOCKS = st.sampled_from([1, 2, 4, 8, 16])
WIDE = st.sampled_from([8, 16, 32])
relaxed = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def simulate(
    lowered: Callable, name: str, inputs: list[Tensor], expected: Tensor, values: dict[str, int]
) -> None:
    pointers = {f"in_ptr{i}": "*fp32" for i in range(len(inputs))} | {"out_ptr0": "*fp32"}
    function = Module.parse(lowered(name, pointers, values).text).function(name)
    output = torch.full_like(expected, 77)
    result = function.run([*inputs, output]).outputs[-1]
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(11))


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


@relaxed
@given(st.integers(1, 40), st.integers(1, 40), BLOCKS, WIDE, st.integers(1, 32))
def test_masked_softmax(lowered, rows: int, columns: int, block: int, wide: int, cores: int):
    x = random(rows, columns)
    values = {"x0_size": rows, "r0_size": columns, "in0_stride_x0": columns, "X0_BLOCK": block}
    values["R0_BLOCK"] = max(wide, 1 << (columns - 1).bit_length())
    values["CORES"] = min(cores, cdiv(rows, block))
    simulate(lowered, "softmax", [x], torch.softmax(x, 1), values)


@relaxed
@given(
    st.tuples(st.integers(1, 20), st.integers(1, 40), st.integers(1, 40), st.integers(1, 32)),
    st.tuples(BLOCKS, WIDE, WIDE),
)
def test_broadcast_product(lowered, sizes: tuple[int, int, int, int], blocks: tuple[int, int, int]):
    m, n, k, cores = sizes
    x, c = random(n, m, k), random(n, k)
    values = {"x0_size": m, "x1_size": n, "x2_size": k}
    values |= {"X0_BLOCK": blocks[0], "X1_BLOCK": blocks[1], "X2_BLOCK": blocks[2]}
    values["CORES"] = min(cores, cdiv(m, blocks[0]) * cdiv(n, blocks[1]) * cdiv(k, blocks[2]))
    pointers = {"in_ptr0": "*fp32", "in_ptr1": "*fp32", "out_ptr0": "*fp16"}
    expected = (x * c[:, None]).half().transpose(0, 1).contiguous()
    function = Module.parse(lowered("rope_mul", pointers, values).text).function("rope_mul")
    result = function.run([x, c, torch.full_like(expected, 77)]).outputs[-1]
    assert torch.equal(result, expected)


@relaxed
@given(st.integers(1, 40), st.integers(1, 70), BLOCKS, WIDE, st.integers(1, 32), st.booleans())
def test_looped_sums(lowered, rows: int, columns: int, block: int, wide: int, cores: int, carried: bool):
    x = random(rows, columns)
    values = {"x0_size": rows, "r0_size": columns, "X0_BLOCK": max(block, 4), "R0_BLOCK": wide}
    values["CORES"] = min(cores, cdiv(rows, max(block, 4)))
    name, expected = ("wide_sum", x.sum(1)) if carried else ("mean", x.mean(1))
    simulate(lowered, name, [x], expected, values)


@relaxed
@given(st.integers(-30, 30), st.integers(1, 50), st.sampled_from([4, 8, 16]), st.integers(1, 13))
def test_reading_beside_the_view(lowered, shift: int, size: int, block: int, cores: int):
    x = random(size)
    expected = torch.zeros(size)
    for i in range(size):
        if 0 <= i - shift < size:
            expected[i] = x[i - shift]
    values = {"x0_size": size, "shift": shift, "X0_BLOCK": block, "CORES": min(cores, cdiv(size, block))}
    simulate(lowered, "shifted", [x], expected, values)
