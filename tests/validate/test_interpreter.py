"""The interpreter worker: equal to the stock interpreter, and typed errors for whatever goes wrong."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from tracer.validate.buffers import Buffers, place
from tracer.validate.errors import InterpreterCrashed, InterpreterFailed, InterpreterTimeout
from tracer.validate.inputs import random_tensor
from tracer.validate.interpreter import Interpreter, Launch, SharedMemory
from tracer.validate.stage import TRITON_TYPES

KERNELS = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def scale(
    in_ptr0, out_ptr0, x0_size, x1_size, stride, X0: tl.constexpr, X1: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(in_ptr0, [x0_size, x1_size], [stride, 1], [X0, X1])
    out0 = tl.make_tensor_descriptor(out_ptr0, [x0_size, x1_size], [stride, 1], [X0, X1])
    x1_tiles = tl.cdiv(x1_size, X1)
    for tile in tl.range(tl.program_id(0), tl.cdiv(x0_size, X0) * x1_tiles, CORES):
        x0 = tile // x1_tiles * X0
        x1 = tile % x1_tiles * X1
        out0.store([x0, x1], (in0.load([x0, x1]).to(tl.float32) * 3.0).to(tl.float16))


@triton.jit
def shifted(
    in_ptr0, out_ptr0, x0_size, x1_size, stride, X0: tl.constexpr, X1: tl.constexpr, CORES: tl.constexpr
):
    in0 = tl.make_tensor_descriptor(in_ptr0, [x0_size, x1_size], [stride, 1], [X0, X1])
    out0 = tl.make_tensor_descriptor(out_ptr0, [x0_size, x1_size], [stride, 1], [X0, X1])
    out0.store([-1, -3], in0.load([-2, -5]))
    out0.store([x0_size - 1, x1_size - 2], in0.load([1, 2]))
    out0.store([x0_size + 5, 0], in0.load([x0_size + 1, 0]) + 1.0)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def pick(a, i, b, j):
    larger = a > b
    return tl.where(larger, a, b), tl.where(larger, i, j)


@triton.jit
def reductions(in_ptr0, out_ptr0, out_ptr1, out_ptr2, out_ptr3, X0: tl.constexpr, X1: tl.constexpr):
    x = tl.make_tensor_descriptor(in_ptr0, shape=[X0, X1], strides=[X1, 1], block_shape=[X0, X1]).load([0, 0])
    index = tl.broadcast_to(tl.arange(0, X1)[None, :], [X0, X1])
    value, place = tl.reduce((x, index), 1, pick)
    tl.make_tensor_descriptor(out_ptr0, shape=[X0], strides=[1], block_shape=[X0]).store([0], value)
    tl.make_tensor_descriptor(out_ptr1, shape=[X0], strides=[1], block_shape=[X0]).store([0], place)
    total = tl.reduce(x, 0, product)
    tl.make_tensor_descriptor(out_ptr2, shape=[X1], strides=[1], block_shape=[X1]).store([0], total)
    scan = tl.associative_scan(x, 1, product)
    tl.make_tensor_descriptor(out_ptr3, [X0, X1], [X1, 1], [X0, X1]).store([0, 0], scan)


@triton.jit
def brain(in_ptr0, in_ptr1, out_ptr0, out_ptr1, out_ptr2, N: tl.constexpr):
    a = tl.make_tensor_descriptor(in_ptr0, shape=[N, N], strides=[N, 1], block_shape=[N, N]).load([0, 0])
    b = tl.make_tensor_descriptor(in_ptr1, shape=[N, N], strides=[N, 1], block_shape=[N, N]).load([0, 0])
    dot = tl.dot(a, b, tl.zeros([N, N], tl.float32), input_precision="ieee")
    tl.make_tensor_descriptor(out_ptr0, shape=[N, N], strides=[N, 1], block_shape=[N, N]).store([0, 0], dot)
    third = (a.to(tl.float32) / 3.0).to(tl.bfloat16)
    tl.make_tensor_descriptor(out_ptr1, shape=[N, N], strides=[N, 1], block_shape=[N, N]).store([0, 0], third)
    tl.make_tensor_descriptor(out_ptr2, shape=[N, N], strides=[N, 1], block_shape=[N, N]).store([0, 0], a + b)


@triton.jit
def functions(in_ptr0, out_ptr0, out_ptr1, N: tl.constexpr):
    x = tl.make_tensor_descriptor(in_ptr0, shape=[N], strides=[1], block_shape=[N]).load([0])
    tl.make_tensor_descriptor(out_ptr0, [N], [1], [N]).store([0], libdevice.tanh(x))
    tl.make_tensor_descriptor(out_ptr1, [N], [1], [N]).store([0], libdevice.pow(x, 2.0))


@triton.jit
def truths(in_ptr0, out_ptr0, N: tl.constexpr):
    x = tl.make_tensor_descriptor(in_ptr0, shape=[N], strides=[1], block_shape=[N]).load([0])
    whole = tl.sum(x.to(tl.float32)) > 0.0
    tl.make_tensor_descriptor(out_ptr0, [N], [1], [N]).store([0], ((x > 0.5) & whole).to(tl.int32))


@triton.jit
def wrapping(in_ptr0, out_ptr0, number, N: tl.constexpr):
    x = tl.make_tensor_descriptor(in_ptr0, shape=[N], strides=[1], block_shape=[N]).load([0])
    y = (x + x) * number - (number * 65536 - 1)
    tl.make_tensor_descriptor(out_ptr0, [N], [1], [N]).store([0], y)


@triton.jit
def beyond(in_ptr0, out_ptr0, x0_size, N: tl.constexpr):
    x = tl.make_tensor_descriptor(in_ptr0, shape=[x0_size], strides=[1], block_shape=[N]).load([0])
    tl.make_tensor_descriptor(out_ptr0, shape=[N], strides=[1], block_shape=[N]).store([0], x)


@triton.jit
def endless(in_ptr0, N: tl.constexpr):
    for i in tl.range(0, N):
        for j in tl.range(0, N):
            tl.device_assert(j >= 0, "never")


@triton.jit
def deadly(in_ptr0, N: tl.constexpr):
    x = tl.load(in_ptr0 + 1152921504606846976 + tl.arange(0, N))
    tl.store(in_ptr0 + tl.arange(0, N), x)
"""

half, single, whole = torch.float16, torch.float32, torch.int32


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "triton_kernel.py"
    path.write_text(KERNELS)
    return path


@pytest.fixture(scope="module")
def fast() -> Iterator[Interpreter]:
    client = Interpreter()
    yield client
    client.stop()


@pytest.fixture(scope="module")
def stock() -> Iterator[Interpreter]:
    client = Interpreter(stock=True)
    yield client
    client.stop()


def call(
    client: Interpreter, source: Path, kernel: str, layouts: dict[str, Any], numbers: dict[str, Any],
    constexpr: dict[str, Any], grid: int = 1, inputs: dict[str, torch.Tensor] | None = None,
    timeout: float = 60,
) -> SimpleNamespace:  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    given = inputs or {
        n: random_tensor(*layout, generator=generator) for n, layout in layouts.items() if n.startswith("in")
    }
    places, size = place(layouts)
    memory = SharedMemory(size)
    buffers = Buffers(torch.frombuffer(memory.bytes, dtype=torch.uint8), layouts, places, given)
    pointers = {n: (places[n].start, f"*{TRITON_TYPES[layout[2]]}") for n, layout in layouts.items()}
    launch = Launch(kernel, {**pointers, **numbers}, constexpr, (grid,))
    try:
        client.run(source, [launch], memory, [(p.start, p.length) for p in places.values()], timeout=timeout)
    finally:
        memory.close()
    return SimpleNamespace(**buffers.tensors, disturbed=buffers.disturbed(set()), given=given)


def bits(tensor: torch.Tensor) -> list[int]:
    return tensor.contiguous().view(torch.uint8).flatten().tolist()


@pytest.mark.parametrize("kernel", ["scale", "shifted"])
@pytest.mark.parametrize(("rows", "columns", "stride"), [(5, 37, 37), (8, 16, 16), (3, 100, 129), (1, 1, 1)])
def test_block_copies_equal_the_stock_interpreter(kernel, rows, columns, stride, source, fast, stock):
    layout = ((rows, columns), (stride, 1), half)
    layouts = {"in_ptr0": layout, "out_ptr0": layout}
    numbers = {"x0_size": rows, "x1_size": columns, "stride": stride}
    results = [
        call(client, source, kernel, layouts, numbers, {"X0": 4, "X1": 16, "CORES": 2}, grid=2)
        for client in (fast, stock)
    ]
    assert bits(results[0].out_ptr0) == bits(results[1].out_ptr0)
    assert [result.disturbed for result in results] == ["", ""]
    if kernel == "scale":
        assert torch.equal(results[0].out_ptr0, results[0].given["in_ptr0"] * 3)


def test_generic_reductions_and_scans_equal_the_stock_interpreter(source, fast, stock):
    layouts = {
        "in_ptr0": ((8, 16), (16, 1), single), "out_ptr0": ((8,), (1,), single),
        "out_ptr1": ((8,), (1,), whole),
        "out_ptr2": ((16,), (1,), single), "out_ptr3": ((8, 16), (16, 1), single),
    }  # fmt: skip
    results = [
        call(client, source, "reductions", layouts, {}, {"X0": 8, "X1": 16}) for client in (fast, stock)
    ]
    for name in ("out_ptr0", "out_ptr1", "out_ptr2", "out_ptr3"):
        assert bits(getattr(results[0], name)) == bits(getattr(results[1], name)), name
    assert torch.equal(results[0].out_ptr1.long(), results[0].given["in_ptr0"].argmax(1))


def test_bfloat16_is_computed_as_devices_do(source, fast):
    layout = ((16, 16), (16, 1), torch.bfloat16)
    layouts = {"in_ptr0": layout, "in_ptr1": layout, "out_ptr0": ((16, 16), (16, 1), single)}
    layouts |= {"out_ptr1": layout, "out_ptr2": layout}
    found = call(fast, source, "brain", layouts, {}, {"N": 16})
    a, b = found.given["in_ptr0"], found.given["in_ptr1"]
    assert torch.equal(found.out_ptr0, a.float() @ b.float())
    assert torch.equal(found.out_ptr1, (a.float() / 3).to(torch.bfloat16))
    assert torch.equal(found.out_ptr2, a + b)


def test_bfloat16_rounding_equals_pytorch_on_all_kinds_of_values():
    from tracer.validate.interpreter_patches import to_bfloat16, to_float32

    pattern = torch.randint(-(2**31), 2**31 - 1, (20000,), generator=torch.Generator().manual_seed(0))
    values = pattern.to(torch.int32).view(torch.float32)
    values = torch.cat([values, torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan")])])
    ours = torch.from_numpy(to_float32(to_bfloat16(values.numpy())))
    assert torch.equal(ours.nan_to_num(7.0), values.to(torch.bfloat16).float().nan_to_num(7.0))
    assert torch.equal(ours.isnan(), values.isnan())


@pytest.mark.parametrize("dtype", [single, torch.bfloat16])
def test_a_scalar_truth_is_widened_to_a_tile(source, fast, dtype):
    layouts = {"in_ptr0": ((16,), (1,), dtype), "out_ptr0": ((16,), (1,), whole)}
    x = torch.linspace(0, 1, 16).to(dtype)
    found = call(fast, source, "truths", layouts, {}, {"N": 16}, inputs={"in_ptr0": x})
    assert found.out_ptr0.tolist() == (x > 0.5).int().tolist()


def test_integers_wrap_around_as_in_the_stock_interpreter(source, fast, stock):
    layout = ((16,), (1,), whole)
    given = {"in_ptr0": torch.arange(16, dtype=whole) + 2**30}
    results = [
        call(
            client,
            source,
            "wrapping",
            {"in_ptr0": layout, "out_ptr0": layout},
            {"number": 65537},
            {"N": 16},
            inputs=given,
        )
        for client in (fast, stock)
    ]
    # Exactly 2x * 65537 - (65537 * 65536 - 1), modulo 2**32.
    exact = [(2 * (2**30 + n) * 65537 - (65537 * 65536 - 1) + 2**31) % 2**32 - 2**31 for n in range(16)]
    assert [result.out_ptr0.tolist() for result in results] == [exact, exact]


def test_libdevice_functions(source, fast):
    layout = ((32,), (1,), single)
    found = call(
        fast, source, "functions", {"in_ptr0": layout, "out_ptr0": layout, "out_ptr1": layout}, {}, {"N": 32}
    )
    x = found.given["in_ptr0"]
    torch.testing.assert_close(found.out_ptr0, x.tanh(), rtol=1e-6, atol=0)
    assert torch.equal(found.out_ptr1, x * x)


def test_a_descriptor_that_reaches_beyond_its_buffer_is_an_error(source, fast):
    layout = ((32,), (1,), single)
    layouts = {"in_ptr0": layout, "out_ptr0": layout}
    assert call(fast, source, "beyond", layouts, {"x0_size": 32}, {"N": 32}).disturbed == ""
    with pytest.raises(InterpreterFailed, match="reaches byte 132 of a buffer of 128 bytes"):
        call(fast, source, "beyond", layouts, {"x0_size": 33}, {"N": 64})


def test_an_unknown_kernel_is_an_error(source, fast):
    with pytest.raises(InterpreterFailed, match="no attribute 'absent'"):
        call(fast, source, "absent", {}, {}, {})


def test_a_kernel_that_does_not_end_is_a_typed_error_and_the_next_one_runs(source):
    client = Interpreter()
    layouts = {"in_ptr0": ((8,), (1,), single)}
    with pytest.raises(InterpreterTimeout, match="endless within 2 s"):
        call(client, source, "endless", layouts, {}, {"N": 1 << 20}, timeout=2)
    layout = ((32,), (1,), single)
    assert call(client, source, "beyond", {"in_ptr0": layout, "out_ptr0": layout}, {"x0_size": 32}, {"N": 32})
    client.stop()


def test_an_interrupt_is_the_clients_business(source):
    client = Interpreter()
    layout = ((32,), (1,), single)
    run = (source, "beyond", {"in_ptr0": layout, "out_ptr0": layout}, {"x0_size": 32}, {"N": 32})
    call(client, *run)
    worker = client._process
    assert worker is not None
    worker.send_signal(signal.SIGINT)
    call(client, *run)
    assert client._process is worker
    assert worker.poll() is None
    client.stop()


def test_a_crash_is_a_typed_error(source):
    client = Interpreter()
    with pytest.raises(InterpreterCrashed, match="deadly"):
        call(client, source, "deadly", {"in_ptr0": ((8,), (1,), single)}, {}, {"N": 8})
    client.stop()


def test_moved_private_names_are_told():
    from tracer.validate.errors import MovedInterpreterName
    from tracer.validate.interpreter_patches import check_names

    check_names()
    with pytest.raises(MovedInterpreterName, match="TensorHandle"):
        check_names(SimpleNamespace())


def test_two_million_elements_take_seconds(source, fast):
    layout = ((2048, 1024), (1024, 1), half)
    found = call(
        fast, source, "scale", {"in_ptr0": layout, "out_ptr0": layout},
        {"x0_size": 2048, "x1_size": 1024, "stride": 1024}, {"X0": 16, "X1": 1024, "CORES": 32},
        grid=32, timeout=10,
    )  # fmt: skip
    assert np.array_equal(found.out_ptr0.numpy(), (found.given["in_ptr0"] * 3).numpy())
