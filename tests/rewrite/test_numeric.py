"""Generated kernels against PyTorch in float64, in Triton's interpreter (a process of its own).

Memory that no element of an input covers is NaN, so that a value read from outside reaches the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from tracer.capture.kernel import CapturedOp
from tracer.models.replay import float64, replay
from tracer.rewrite import SpyreKernel, rewrite
from tracer.target import SPYRE, SpyreTarget
from tracer.validate.buffers import Buffers, place
from tracer.validate.interpreter import Launch, SharedMemory, interpreter
from tracer.validate.oracle import leaves, widened

LONG, SINGLE, BOOL, HALF = torch.int64, torch.float32, torch.bool, torch.float16
# Relative and absolute: half an ulp of the output dtype, and the float32 arithmetic before it.
TOLERANCE = {torch.float64: 1e-9, SINGLE: 1e-4, HALF: 2e-3}


def floats(*shape: int, dtype: torch.dtype = HALF) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape) + sum(shape))).to(dtype)


def whole(*shape: int, low: int = 0, high: int = 7, dtype: torch.dtype = LONG) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def flags(*shape: int) -> torch.Tensor:
    return floats(*shape) > 0


def with_nan(*shape: int, at: int) -> torch.Tensor:
    """Floats, the one at this place in memory NaN."""
    tensor = floats(*shape)
    tensor.view(-1)[at] = torch.nan
    return tensor


CASES: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "pointwise": (F.silu, (floats(7, 13),)),
    "rank 0": (torch.add, (floats(), floats())),
    "broadcast": (torch.mul, (floats(3, 7, 13), floats(7, 1))),
    "stride 0": (lambda x: x * 2, (floats(1, 7).expand(5, 7),)),
    "overlapping": (lambda x: x * 2, (floats(20).as_strided((6, 5), (3, 1)),)),
    "gaps": (lambda x: x * 2, (floats(5, 40)[1:, 3::3],)),
    "transpose": (lambda x: x.transpose(0, 2).contiguous(), (floats(7, 13, 5),)),
    "rank 6": (lambda x: x.permute(5, 2, 0, 3, 1, 4).contiguous(), (floats(2, 3, 2, 3, 2, 3),)),
    "rank 6 offset": (lambda x: x * 2, (floats(3, 4, 3, 4, 3, 4)[1:, 1:, :, 1:, 1:, 1:],)),
    "in place": (lambda x, y: x.add_(y), (floats(9, 20)[:, :5], floats(9, 5))),
    "softmax": (lambda x: F.softmax(x, 1), (floats(4, 33, 5),)),
    "reduce 0 and 2": (lambda x: x.sum((0, 2)), (floats(5, 7, 11),)),
    "variance": (lambda x: x.var(-1), (floats(4, 33),)),
    # found in the order of the result's index, which is not memory's
    "argmax of a transpose": (torch.argmax, (floats(6, 10).t(),)),
    "argmax of NaN": (torch.argmax, (with_nan(6, 10, at=37).t(),)),
    "argmax of NaN in memory's order": (torch.argmax, (with_nan(6, 10, at=37),)),
    "amax of NaN": (lambda x: x.amax(-1), (with_nan(6, 10, at=37),)),
    "amin of NaN, in blocks": (lambda x: x.amin(0), (with_nan(7000, 3, at=4001),)),
    "max of NaN": (lambda x: x.max(-1), (with_nan(6, 10, at=37),)),
    "min of NaN": (lambda x: x.min(0), (with_nan(6, 10, at=37),)),
    "max of all, NaN": (torch.max, (with_nan(6, 10, at=37).t(),)),
    "extremes of NaN": (lambda x: torch.aminmax(x, dim=1), (with_nan(6, 10, at=37),)),
    "softmax of NaN": (lambda x: F.softmax(x, -1), (with_nan(6, 10, at=37),)),
    "logsumexp of NaN": (lambda x: x.logsumexp(-1), (with_nan(6, 10, at=37),)),
    "cross entropy of NaN": (
        lambda x, y: F.cross_entropy(x, y, reduction="none"),
        (with_nan(6, 10, at=37), whole(6, high=10)),
    ),
    "argmin of ties": (torch.argmin, (whole(6, 10, high=2).t(),)),
    "argmax of equal rows": (torch.argmax, (floats(1, 10).expand(6, 10),)),
    "places of a large window": (
        lambda x: F.max_pool2d(x, 5, 2, 2, return_indices=True),
        (floats(1, 2, 7, 9),),
    ),
    # windows that end where others begin, and windows of two widths: the mask bounds where they start
    "windows of one width": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (floats(1, 6, 10),)),
    "windows of two widths": (lambda x: F.adaptive_max_pool2d(x, (7, 7)), (floats(2, 7, 13),)),
    "large windows that divide no extent": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (floats(2, 12, 17),)),
    "windows smaller than one": (lambda x: F.adaptive_avg_pool2d(x, (6, 9)), (floats(2, 4, 6),)),
    "sort along rows": (torch.msort, (floats(6, 10),)),
    "argmin": (lambda x: x.argmin(1, keepdim=True), (floats(4, 33, 5),)),
    "amax uint8": (lambda x: x.amax(-1), (whole(4, 33, dtype=torch.uint8),)),
    "all": (lambda x: x.all(-1), (flags(40, 2),)),
    "cumsum": (lambda x: x.cumsum(1), (floats(4, 33, 5),)),
    "cumsum of a stride 0": (lambda x: x.cumsum(0), (floats(1, 13).expand(5, 13),)),
    "cross entropy": (F.cross_entropy, (floats(4, 33, dtype=SINGLE), whole(4))),
    "layer norm": (lambda x: F.layer_norm(x, (33,)), (floats(4, 33),)),
    "loops": (lambda x: F.softmax(x, -1), (floats(1, 600_001),)),
    "linear": (F.linear, (floats(3, 41), floats(20, 41), floats(20))),
    "bmm": (torch.matmul, (floats(2, 3, 5, 7), floats(2, 3, 7, 9))),
    "matvec": (torch.matmul, (floats(37, 41), floats(41))),
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=2, groups=2), (floats(2, 8, 12), floats(6, 4, 3))),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (floats(1, 3, 8, 9), floats(6, 3, 3, 3))),
    "embedding": (F.embedding, (whole(3, 5), floats(20, 33))),
    "negative index": (lambda x, i: x[i], (floats(20, 33), whole(5, low=-7))),
    "index_put": (lambda x, i, v: x.index_put((i,), v), (floats(20, 33), whole(1), floats(1, 33))),
    # int64 indices, and places that the kernel computes from them
    "unpool": (
        lambda x, i: F.max_unpool2d(x, i, 2),
        (floats(1, 2, 1, 3), torch.tensor([[[[7, 0, 9]], [[2, 11, 4]]]])),
    ),
    "gather": (lambda x, i: x.gather(1, i), (floats(4, 20, 6), whole(4, 3, 6))),
    "pad": (lambda x: F.pad(x, (2, 3, 1, 0), value=1.5), (floats(2, 5, 17),)),
    "pad reflect": (lambda x: F.pad(x, (2, 3), mode="reflect"), (floats(2, 5, 17),)),
    "pad replicate": (lambda x: F.pad(x, (1, 2, 1, 1), mode="replicate"), (floats(2, 5, 6, 7),)),
    "roll": (lambda x: x.roll((2, -3), (0, 1)), (floats(5, 17),)),
    "flip": (lambda x: x.flip(0, 1), (floats(5, 7),)),
    "max pool": (lambda x: F.max_pool2d(x, 3, 2, 1), (floats(1, 3, 9, 9),)),
    "average over three dims": (lambda x: F.avg_pool3d(x, 3, 2, 1), (floats(1, 1, 3, 4, 5),)),
    "overlapping windows": (lambda x: F.max_pool2d(x, 5, 2, 2), (floats(1, 2, 14, 15),)),
    "overlapping windows, mean": (lambda x: F.avg_pool2d(x, 5, 2, 2), (floats(1, 2, 14, 15),)),
    "overlapping windows of rank 3": (lambda x: F.avg_pool3d(x, 3, 2, 1), (floats(1, 2, 4, 5, 6),)),
    "sum over rank 3": (lambda x: x.sum((1, 2, 3)), (floats(2, 5, 7, 9)[:, ::2, ::2, ::2],)),
    "average pool": (lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), (floats(1, 3, 9, 9),)),
    "floor divide": (lambda x: x // 3, (whole(4, 33, low=-7),)),
    "remainder": (lambda x: torch.remainder(x, 0.3), (floats(4, 33, dtype=SINGLE),)),
    # a function takes a literal as float32, whatever its other argument is
    "literal base float64": (lambda x: 10000**x, (floats(20, dtype=torch.float64),)),
    "literal power float64": (lambda x: x**2.3, (floats(20, dtype=torch.float64).abs(),)),
    "literal bounds float64": (lambda x: x.clamp(-0.3, 0.7), (floats(20, dtype=torch.float64),)),
    "literal branch float64": (
        lambda m, x: torch.where(m, x, 0.1),
        (flags(20), floats(20, dtype=torch.float64)),
    ),
    "sign": (torch.sign, (whole(4, 33, low=-2, dtype=torch.int8),)),
    "where": (lambda m, x: torch.where(m, x, float("-inf")), (flags(4, 1), floats(4, 33))),
    "reshape of a transpose": (lambda x: x.reshape(4, 15), (floats(6, 10).t(),)),
}


def run(op: CapturedOp, kernels: tuple[SpyreKernel, ...], inputs: dict[str, torch.Tensor], folder: Path):
    """The outputs of the kernels, interpreted; nothing but outputs may change in memory."""
    source = "\n\n".join(kernel.source for kernel in kernels)
    head = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n\n\n"
    path = folder / "triton_kernel.py"
    path.write_text(head + source)
    layouts = {b.name: (b.spec.shape, b.spec.stride, dtype_of(b.spec.dtype)) for b in op.buffers}
    places, size = place(layouts)
    memory = SharedMemory(size)
    data = torch.frombuffer(memory.bytes, dtype=torch.uint8)
    buffers = Buffers(data, layouts, places, inputs)
    launches = []
    for kernel in kernels:
        types = kernel.signature
        values = {p.name: p.value for p in kernel.parameters if p.type != "constexpr"}
        args = {n: (places[v].start, types[n]) if isinstance(v, str) else v for n, v in values.items()}
        constexpr = {p.name: p.value for p in kernel.parameters if p.type == "constexpr"}
        launches.append(Launch(kernel.name, args, constexpr, (kernel.grid,)))
    interpreter().run(path, launches, memory, [(p.start, p.length) for p in places.values()])
    written = set(op.outputs)
    assert buffers.disturbed(written) == ""
    results = [buffers.tensors[name].clone() for name in op.outputs]
    memory.close()
    return results


def dtype_of(name: str) -> torch.dtype:
    return getattr(torch, name.removeprefix("torch."))


def with_nan_around(tensor: torch.Tensor, shape: tuple[int, ...], stride: tuple[int, ...]) -> torch.Tensor:
    """`tensor` in memory of the given layout whose gaps are NaN."""
    span = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    flat = torch.full((span,), float("nan")) if tensor.is_floating_point() else torch.full((span,), 113)
    found = flat.to(tensor.dtype).as_strided(shape, stride)
    offsets = torch.zeros(shape, dtype=LONG)
    for dim, step in enumerate(stride):
        offsets += (torch.arange(shape[dim]) * step).view([-1 if d == dim else 1 for d in range(len(shape))])
    found.as_strided((span,), (1,))[offsets.reshape(-1)] = tensor.reshape(-1)
    return found


NEAR = dataclasses.replace(SPYRE, span_bytes=0)
"""A target whose cores take neighbouring tiles, as they do of buffers wider than an address span."""


@pytest.mark.parametrize(
    ("name", "target"),
    [(name, SPYRE) for name in CASES]
    + [(name, NEAR) for name in ("pointwise", "rank 6", "softmax", "linear", "conv2d", "pad reflect")],
)
def test_numeric(name: str, target: SpyreTarget, captured: Callable, tmp_path: Path):
    function, tensors = CASES[name]
    op = captured(function, *tensors)
    named = [b for b in op.buffers if b.role == "input"]
    inputs = {
        b.name: with_nan_around(t, b.spec.shape, b.spec.stride) for b, t in zip(named, tensors, strict=True)
    }
    wide = widened(inputs)
    expected = list(leaves(replay(float64(op.call), list(wide.values()))))
    found = run(op, rewrite(op, target), inputs, tmp_path)
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected, strict=True):
        if not actual.is_floating_point():
            assert torch.equal(actual, wanted.to(actual.dtype))
            continue
        tolerance = TOLERANCE[actual.dtype]
        torch.testing.assert_close(
            actual.double(), wanted.double(), rtol=tolerance, atol=tolerance, equal_nan=True
        )
