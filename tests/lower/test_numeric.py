"""The KTIR of every sample kernel computes what PyTorch computes, at ragged sizes and several core counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from tracer.ktir.simulator import Module

TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.int64: "*i64",
    torch.int32: "*i32",
}


@pytest.fixture
def check(lowered: Callable) -> Callable[..., None]:
    """Lower, simulate with every check on, compare with the expected tensor."""

    def run(
        name: str, inputs: list[Tensor], expected: Tensor, values: dict[str, int], tolerance: float = 2e-3
    ):
        output = torch.full_like(expected, 77)
        pointers = {f"in_ptr{i}": TYPES[x.dtype] for i, x in enumerate(inputs)}
        pointers["out_ptr0"] = TYPES[expected.dtype]
        ktir = lowered(name, pointers, values)
        function = Module.parse(ktir.text).function(name)
        assert function.argument_names == tuple(pointers)
        assert function.grid == (values["CORES"], 1, 1)
        result = function.run([*inputs, output]).outputs[-1]
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance)

    return run


def cores_for(tiles: int, cores: int) -> int:
    return min(tiles, cores)


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def normal(*shape: int, dtype: torch.dtype = torch.float16) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3)).to(dtype)


@pytest.mark.parametrize("cores", [1, 4, 32])
@pytest.mark.parametrize("size", [1, 16, 100, 4097])
def test_pointwise(check: Callable, size: int, cores: int):
    x = normal(size)
    values = {"x0_size": size, "X0_BLOCK": 16, "CORES": cores_for(cdiv(size, 16), cores)}
    check("silu", [x], F.silu(x), values)


def test_pointwise_bfloat16(check: Callable):
    x = normal(100, dtype=torch.bfloat16)
    values = {"x0_size": 100, "X0_BLOCK": 16, "CORES": 7}
    check("silu", [x], F.silu(x.float()).half(), values)


@pytest.mark.parametrize("cores", [1, 4, 32])
@pytest.mark.parametrize(("rows", "columns"), [(100, 50), (12, 64), (1, 1), (9, 3)])
def test_softmax(check: Callable, rows: int, columns: int, cores: int):
    wide = normal(rows, columns + 5)
    x = wide[:, :columns]
    values = {
        "x0_size": rows,
        "r0_size": columns,
        "in0_stride_x0": columns + 5,
        "X0_BLOCK": 8,
        "R0_BLOCK": max(8, 1 << (columns - 1).bit_length()),
        "CORES": cores_for(cdiv(rows, 8), cores),
    }
    check("softmax", [x], torch.softmax(x.float(), 1), values)


@pytest.mark.parametrize("kernel", ["mean", "wide_sum"])
@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize(("rows", "columns"), [(100, 50), (12, 64), (5, 7), (17, 33)])
def test_looped_reduction(check: Callable, kernel: str, rows: int, columns: int, cores: int):
    x = normal(rows, columns)
    values = {"x0_size": rows, "r0_size": columns, "X0_BLOCK": 8, "R0_BLOCK": 16}
    values["CORES"] = cores_for(cdiv(rows, 8), cores)
    expected = x.float().mean(1) if kernel == "mean" else x.float().sum(1)
    check(kernel, [x], expected, values)


@pytest.mark.parametrize("kernel", ["linear", "near_linear"])
@pytest.mark.parametrize("cores", [1, 3, 4, 32])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(12, 100, 50), (1, 64, 64), (17, 33, 65), (16, 16, 16), (12, 300, 16), (12, 290, 16)]
)
def test_linear(check: Callable, kernel: str, m: int, n: int, k: int, cores: int):
    x, w = normal(m, k), normal(n, k)
    values = {"x0_size": m, "x1_size": n, "r0_size": k, "X0_BLOCK": 16, "X1_BLOCK": 32, "R0_BLOCK": 32}
    values["CORES"] = cores_for(cdiv(m, 16) * cdiv(n, 32), cores)
    check(kernel, [x, w], (x.float() @ w.float().T).half(), values)


@pytest.mark.parametrize("batch", [1, 3, 4])
def test_batched_matmul(check: Callable, batch: int):
    a, b = normal(batch, 5, 7), normal(batch, 7, 6)
    values = {"z_size": batch, "x0_size": 5, "x1_size": 6, "r0_size": 7}
    values |= {"Z_BLOCK": 2, "X0_BLOCK": 8, "X1_BLOCK": 8, "R0_BLOCK": 8, "CORES": cdiv(batch, 2)}
    check("batched", [a, b], a.float() @ b.float(), values)


@pytest.mark.parametrize("cores", [1, 4, 32])
def test_broadcast_and_permute(check: Callable, cores: int):
    x, c = normal(12, 9, 40), normal(12, 40)
    values = {"x0_size": 9, "x1_size": 12, "x2_size": 40, "X0_BLOCK": 2, "X1_BLOCK": 8, "X2_BLOCK": 32}
    values["CORES"] = cores_for(5 * 2 * 2, cores)
    check("rope_mul", [x, c], (x.float() * c.float()[:, None]).half().transpose(0, 1).contiguous(), values)


@pytest.mark.parametrize("width", [64, 50])
def test_gather_rows(check: Callable, width: int):
    index, table = torch.tensor([3, 0, 6, 3]), normal(7, width)
    values = {"x0_size": 4, "x1_size": width, "rows": 7, "X1_BLOCK": 32, "CORES": 4}
    check("embedding", [index, table], table[index], values)


def test_scatter_rows(check: Callable):
    index, rows = torch.tensor([3, 0, 2, 1]), normal(4, 12)
    values = {"x0_size": 4, "x1_size": 12, "rows": 4, "X1_BLOCK": 16, "CORES": 2}
    check("scatter", [index, rows], torch.empty_like(rows).index_copy_(0, index, rows), values)


@pytest.mark.parametrize("size", [1, 100, 3000])
def test_index_as_value(check: Callable, size: int):
    block = 64 if size < 3000 else 2048
    values = {"x0_size": size, "X0_BLOCK": block, "CORES": cdiv(size, block)}
    check("arange", [], torch.arange(size), values)


def test_mask_that_stays(check: Callable):
    x = normal(12, 12, dtype=torch.float32)
    values = {"x0_size": 12, "x1_size": 12, "X0_BLOCK": 8, "X1_BLOCK": 16, "CORES": 2}
    check("triangle", [x], torch.tril(x), values)


@pytest.mark.parametrize("shift", [5, -5, 20])
def test_padding_that_is_read(check: Callable, shift: int):
    x = normal(40, dtype=torch.float32)
    expected = torch.zeros_like(x)
    if shift > 0:
        expected[shift:] = x[:-shift]
    else:
        expected[:shift] = x[-shift:]
    check("shifted", [x], expected, {"x0_size": 40, "shift": shift, "X0_BLOCK": 16, "CORES": 3})


def test_argmax_takes_the_first_of_equals(check: Callable):
    x = torch.tensor([[1.0, 5.0, 5.0], [-2.0, -3.0, -2.0], [0.0, 0.0, 0.0]])
    values = {"x0_size": 3, "r0_size": 3, "X0_BLOCK": 2, "R0_BLOCK": 4, "CORES": 2}
    check("argmax", [x], torch.tensor([1, 0, 0]), values)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("width", [1, 5, 16])
def test_scan(check: Callable, width: int, reverse: bool):
    x = normal(3, width, dtype=torch.float32)
    values = {"x0_size": 3, "r0_size": width, "X0_BLOCK": 2, "R0_BLOCK": 16, "REVERSE": reverse, "CORES": 2}
    expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    check("cumsum", [x], expected, values)


def test_combiner_of_three_values(check: Callable):
    x = normal(5, 16)
    check("variance", [x], x.float().var(1), {"x0_size": 5, "X0_BLOCK": 4, "R0_BLOCK": 16, "CORES": 2})


@pytest.mark.parametrize(("rows", "columns"), [(4, 16), (3, 10)])
def test_sum_of_everything(check: Callable, rows: int, columns: int):
    x = normal(rows, columns)
    values = {"x0_size": rows, "r0_size": columns, "R0_BLOCK": 16, "CORES": 1}
    check("flat_sum", [x], x.float().sum().reshape(1, 1), values)
