"""Run captured kernels in Triton's interpreter and compare with PyTorch: `python interpreted.py` prints JSON.

It is a program because TRITON_INTERPRET must be set before Triton is imported, and is global to a process.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import sys
import tempfile
import types
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

from tracer.capture import capture
from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch
from tracer.models.replay import empty_tensors, float64, replay

R = TensorRef
HALF, SINGLE, LONG, BOOL = "torch.float16", "torch.float32", "torch.int64", "torch.bool"


def spec(*shape: int, dtype: str = HALF, stride: tuple[int, ...] | None = None) -> TensorSpec:
    contiguous = torch.empty(shape, device="meta").stride()
    return TensorSpec(tuple(shape), stride or contiguous, 0, dtype)


def conv(name: str, data: TensorSpec, weight: TensorSpec, *rest) -> OpCall:
    return OpCall(
        f"torch.nn.functional.{name}", (data, weight, spec(weight.shape[0])), (R(0), R(1), R(2), *rest)
    )


CALLS = {
    "silu": OpCall("torch.nn.functional.silu", (spec(3, 37),), (R(0),)),
    "add broadcast": OpCall("torch.add", (spec(2, 3, 5), spec(5)), (R(0), R(1))),
    "add rank 0": OpCall("torch.add", (spec(7), spec()), (R(0), R(1))),
    "transposed": OpCall("torch.Tensor.contiguous", (spec(2, 5, 3, 4, stride=(60, 4, 20, 1)),), (R(0),)),
    "linear": OpCall(
        "torch.nn.functional.linear", (spec(1, 12, 40), spec(24, 40), spec(24)), (R(0), R(1), R(2))
    ),
    "linear one token": OpCall(
        "torch.nn.functional.linear", (spec(1, 1, 40), spec(24, 40)), (R(0), R(1), None)
    ),
    "linear one token, bias": OpCall(
        "torch.nn.functional.linear", (spec(1, 40), spec(24, 40), spec(24)), (R(0), R(1), R(2))
    ),
    "matmul n 1": OpCall("torch.matmul", (spec(5, 40), spec(40, 1)), (R(0), R(1))),
    "matmul k 1": OpCall("torch.matmul", (spec(5, 1), spec(1, 6)), (R(0), R(1))),
    "matmul int": OpCall("torch.matmul", (spec(5, 8, dtype=LONG), spec(8, 6, dtype=LONG)), (R(0), R(1))),
    "matmul heads": OpCall(
        "torch.matmul", (spec(1, 3, 6, 16), spec(1, 3, 16, 6, stride=(288, 96, 1, 16))), (R(0), R(1))
    ),
    "matmul heads decode": OpCall("torch.matmul", (spec(1, 3, 1, 16), spec(1, 3, 16, 20)), (R(0), R(1))),
    "addmm": OpCall("torch.addmm", (spec(6), spec(5, 8), spec(8, 6)), (R(0), R(1), R(2))),
    "baddbmm": OpCall(
        "torch.baddbmm",
        (spec(2, 1, 6), spec(2, 5, 8), spec(2, 8, 6)),
        (R(0), R(1), R(2)),
        (("alpha", 0.5), ("beta", 2.0)),
    ),
    "mean": OpCall("torch.mean", (spec(3, 40, dtype=SINGLE),), (R(0), -1), (("keepdim", True),)),
    "softmax": OpCall(
        "torch.nn.functional.softmax", (spec(2, 3, 13),), (R(0),), (("dim", -1), ("dtype", Torch(SINGLE)))
    ),
    "layer norm": OpCall(
        "torch.nn.functional.layer_norm", (spec(3, 40), spec(40)), (R(0), (40,), R(1), R(1), 1e-5)
    ),
    "var two dims": OpCall("torch.var", (spec(3, 5, 7, dtype=SINGLE),), (R(0), (1, 2))),
    "cat": OpCall(
        "torch.cat", (spec(2, 3, 4, stride=(24, 8, 1)), spec(2, 3, 5)), ((R(0), R(1)),), (("dim", -1),)
    ),
    "stack": OpCall("torch.stack", (spec(3, 4), spec(3, 4)), ((R(0), R(1)),), (("dim", 1),)),
    "where": OpCall("torch.where", (spec(4, 4, dtype=BOOL), spec()), (R(0), R(1), -65504.0)),
    "cumsum": OpCall("torch.sum", (spec(3, 9, dtype=LONG),), (R(0), 1)),
    "topk": OpCall("torch.topk", (spec(3, 9, dtype=SINGLE),), (R(0), 2), (("dim", -1),)),
    "topk of chunks": OpCall("torch.topk", (spec(2, 2500, dtype=SINGLE),), (R(0), 3)),
    "sort": OpCall("torch.sort", (spec(9, 2, dtype=SINGLE),), (R(0), 0, True)),
    "embedding": OpCall("torch.nn.functional.embedding", (spec(2, 3, dtype=LONG), spec(8, 5)), (R(0), R(1))),
    "index_copy_": OpCall(
        "torch.Tensor.index_copy_",
        (spec(1, 2, 8, 4), spec(2, dtype=LONG), spec(1, 2, 2, 4)),
        (R(0), 2, R(1), R(2)),
    ),
    "scatter_add": OpCall(
        "torch.scatter_add", (spec(3, 8), spec(3, 9, dtype=LONG), spec(3, 9)), (R(0), 1, R(1), R(2))
    ),
    "setitem mask": OpCall(
        "torch.Tensor.__setitem__", (spec(4, 6), spec(4, dtype=BOOL), spec(6)), (R(0), R(1), R(2))
    ),
    "fold": OpCall("torch.nn.functional.fold", (spec(2, 18, 64),), (R(0), (8, 8), 3, 1, 1)),
    "unfold": OpCall("torch.nn.functional.unfold", (spec(2, 3, 8, 9),), (R(0), 3, 1, 1)),
    "add_": OpCall("torch.Tensor.add_", (spec(5, dtype=LONG),), (R(0), 1)),
    "setitem": OpCall(
        "torch.Tensor.__setitem__", (spec(4, 6), spec(4, 2)), (R(0), (slice(None), slice(1, 3)), R(1))
    ),
    "masked_fill_ view": OpCall(
        "torch.Tensor.masked_fill_", (spec(4, 3, stride=(1, 4)), spec(4, 3, dtype=BOOL)), (R(0), R(1), 2.0)
    ),
    "arange": OpCall("torch.arange", (), (3, 20, 2)),
    "tensor": OpCall("torch.tensor", (), ([1, 2, 3],)),
    "scaled_dot_product_attention": OpCall(
        "torch.nn.functional.scaled_dot_product_attention",
        (spec(1, 2, 6, 8), spec(1, 2, 9, 8)),
        (R(0), R(1), R(1)),
    ),
    "gru": OpCall(
        "torch.gru",
        (spec(3, 2, 8), spec(1, 2, 8), spec(24, 8), spec(24)),
        (R(0), R(1), [R(2), R(2), R(3), R(3)], True, 1, 0.0, False, False, False),
    ),
    "conv1d": conv("conv1d", spec(1, 4, 20), spec(8, 4, 3), (2,), (1,)),
    "conv1d grouped": conv("conv1d", spec(2, 4, 20), spec(8, 2, 3), (1,), (1,), (2,), 2),
    "conv1d depthwise": conv("conv1d", spec(1, 4, 20), spec(4, 1, 3), (1,), (0,), (1,), 4),
    "conv2d patches": conv("conv2d", spec(1, 3, 8, 8), spec(16, 3, 4, 4), (4, 4)),
    "conv2d": conv("conv2d", spec(2, 3, 9, 8), spec(4, 3, 3, 3), (2, 2), (1, 1)),
    "conv3d": conv("conv3d", spec(2, 3, 2, 4, 4), spec(4, 3, 2, 4, 4), (2, 4, 4)),
    "conv_transpose1d": OpCall(
        "torch.nn.functional.conv_transpose1d",
        (spec(1, 4, 9), spec(4, 3, 4), spec(3)),
        (R(0), R(1), R(2), 2, 1, 1),
    ),
}


class _Anything:
    """Stands for decorators and constants that the interpreter does not need."""

    def __getattr__(self, name):
        return _Anything()

    def __call__(self, *args, **kwargs):
        return lambda function: function


# Inductor's helpers under their own names: the interpreter has no libdevice.
@triton.jit
def _exp(x):
    return tl.exp(x)


@triton.jit
def _rsqrt(x):
    return tl.rsqrt(x)


@triton.jit
def _tanh(x):
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def _max2(x, dim):
    return tl.max(x, dim)


@triton.jit
def _any(x, dim):
    return tl.max(x.to(tl.int32), dim) != 0


LIBDEVICE = types.SimpleNamespace(exp=_exp, rsqrt=_rsqrt, tanh=_tanh)


@triton.jit
def _maximum(x, y):
    return tl.maximum(x, y)


HELPERS = types.SimpleNamespace(max2=_max2, any=_any, maximum=_maximum)


def load(source: str, name: str, folder: str):
    """The interpreted kernel of a captured module."""
    start = min(source.index(mark) for mark in ("@triton_heuristics", "@triton.jit") if mark in source)
    file = Path(folder) / f"{name}.py"
    file.write_text("import triton\nimport triton.language as tl\n" + source[start:])
    module_spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(module_spec)
    module.__dict__.update(
        triton_heuristics=_Anything(),
        ReductionHint=_Anything(),
        TileHint=_Anything(),
        DeviceProperties=lambda **_: None,
        AutotuneHint=_Anything(),
        libdevice=LIBDEVICE,
        tl_math=tl,
        triton_helpers=HELPERS,
    )
    module_spec.loader.exec_module(module)
    return getattr(module, name)


def launch(kernel, buffers: dict[str, torch.Tensor], folder: str) -> None:
    function = load(kernel.source, kernel.name, folder)
    blocks = dict.fromkeys(re.findall(r"(\w+BLOCK) ?: tl.constexpr[,)]", kernel.source), 16)
    if "ZBLOCK" in blocks:
        blocks["ZBLOCK"] = 1
    grid = [1, 1, 1]
    numbers = dict(kernel.arguments)
    for axis, dim in re.findall(r"(\w)offset = tl.program_id\((\d)\) \* \wBLOCK", kernel.source):
        grid[int(dim)] = triton.cdiv(numbers[f"{axis}numel"], blocks[f"{axis.upper()}BLOCK"])
    values = [buffers[value] if isinstance(value, str) else value for _, value in kernel.arguments]
    function[tuple(grid)](*values, **blocks)


def fill(tensor: torch.Tensor, generator: torch.Generator) -> None:
    if tensor.dtype == torch.bool:
        tensor.copy_(torch.randint(0, 2, tensor.shape, generator=generator).bool())
    elif tensor.dtype.is_floating_point:
        tensor.copy_(torch.randn(tensor.shape, generator=generator))
    else:
        # Distinct while they last, so that two indices never write one place.
        tensor.copy_(torch.randperm(max(tensor.numel(), 1), generator=generator).reshape(tensor.shape) % 8)


def check(call: OpCall, spoil=lambda captured: captured) -> float:
    """The largest error of the captured kernels, in units of the output dtype's precision."""
    captured = spoil(capture(call))
    generator = torch.Generator().manual_seed(0)
    inputs = empty_tensors(call.tensors)
    for tensor in inputs:
        fill(tensor, generator)
    wide = [t.clone() if not t.is_floating_point() else t.double() for t in inputs]
    # Clones of strided tensors keep their strides, so that the oracle sees what the kernels see.
    result = replay(float64(call), wide)
    expected = (
        [wide[[b.name for b in captured.buffers].index(name)] for name in captured.outputs]
        if result is None
        else []
    )
    if not expected:
        expected = [
            leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)
        ]
    buffers = {}
    for buffer in captured.buffers:
        if buffer.role == "input":
            buffers[buffer.name] = inputs[len(buffers)]
        elif buffer.base is None:
            buffers[buffer.name] = empty_tensors([buffer.spec])[0]
            if buffers[buffer.name].is_floating_point():
                buffers[buffer.name].fill_(float("nan"))
    with tempfile.TemporaryDirectory() as folder:
        for kernel in captured.kernels:
            launch(kernel, buffers, folder)
    for buffer in captured.buffers:
        if buffer.base is not None:
            base = buffers[buffer.base]
            buffers[buffer.name] = base.as_strided(buffer.spec.shape, buffer.spec.stride, buffer.spec.offset)
    assert len(expected) == len(captured.outputs)
    worst = 0.0
    for name, want in zip(captured.outputs, expected, strict=True):
        got = buffers[name]
        assert got.shape == want.shape, (got.shape, want.shape)
        if got.dtype.is_floating_point:
            unit = torch.finfo(got.dtype).eps
            error = ((got.double() - want).abs() / want.abs().clamp(min=1.0)).max().item() / unit
            worst = max(worst, error if error == error else float("inf"))
        elif not torch.equal(got, want):
            worst = float("inf")
    return worst


def other_kernel(captured):
    """The kernels of another op under this op's buffers."""
    relu = capture(OpCall("torch.nn.functional.relu", captured.call.tensors, captured.call.args))
    return dataclasses.replace(captured, kernels=relu.kernels)


def half_of_k(captured):
    """A contraction that stops in the middle of K."""
    (kernel,) = captured.kernels
    source = kernel.source.replace("R0_BLOCK: tl.constexpr = 64", "R0_BLOCK: tl.constexpr = 32")
    assert source != kernel.source
    return dataclasses.replace(captured, kernels=(dataclasses.replace(kernel, source=source),))


CONTROLS = {
    "other kernel": (CALLS["silu"], other_kernel),
    "half of K": (
        OpCall("torch.nn.functional.linear", (spec(12, 64), spec(24, 64)), (R(0), R(1))),
        half_of_k,
    ),
}


def main() -> None:
    controls = [argument.removeprefix("--control=") for argument in sys.argv[1:] if argument.startswith("--")]
    chosen = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    work = {name: CONTROLS[name] for name in controls}
    if not controls:
        work = {name: (CALLS[name],) for name in chosen or CALLS}
    results = {}
    for name, arguments in work.items():
        try:
            results[name] = check(*arguments)
        except Exception as error:
            results[name] = f"{type(error).__name__}: {error}"
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
