"""What the tests of the rewrite share: captures of small calls, and each step of the rewrite on them."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest
import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tracer.capture import capture
from tracer.capture.kernel import CapturedOp
from tracer.models.record import Recorder
from tracer.models.values import Values
from tracer.rewrite import SpyreKernel, rewrite
from tracer.rewrite.axes import Axis, refine
from tracer.rewrite.contract import form_contractions
from tracer.rewrite.ir import Index, Kernel, Load, Range, Store
from tracer.rewrite.parse import parse
from tracer.rewrite.parse.expressions import Expressions
from tracer.rewrite.parse.state import State
from tracer.rewrite.simplify import simplify
from tracer.rewrite.types import from_torch

Refined = tuple[tuple[Axis, ...], Kernel]


def capture_function(function: Callable[..., object], *tensors: torch.Tensor) -> CapturedOp:
    """Inductor's kernels for the one computing call that `function` makes."""
    with FakeTensorMode() as mode:
        recorder = Recorder(Values(mode))
        fake = [mode.from_tensor(tensor) for tensor in tensors]
        with recorder:
            function(*fake)
    [op] = [op for op in recorder.ops if op.kind == "compute"]
    return capture(op.call)


def parse_captured(op: CapturedOp, index: int = 0) -> tuple[Kernel, dict[str, str]]:
    """One kernel of an op as IR, and the Triton dtype of each pointer."""
    kernel = op.kernels[index]
    dtypes = {buffer.name: from_torch(buffer.spec.dtype) for buffer in op.buffers}
    memory = {name: dtypes[value] for name, value in kernel.arguments if isinstance(value, str)}
    return parse(kernel.name, kernel.source, memory), memory


@pytest.fixture(scope="session")
def captured() -> Callable[..., CapturedOp]:
    """`captured(function, *tensors)`: what Inductor makes of the one call in `function`."""
    return capture_function


@pytest.fixture(scope="session")
def rewritten() -> Callable[..., tuple[SpyreKernel, ...]]:
    """`rewritten(function, *tensors)`: the Spyre-aware kernels of the one call in `function`."""
    return lambda function, *tensors: rewrite(capture_function(function, *tensors))


def blocks_of(kernel: SpyreKernel) -> dict[str, int]:
    """The blocks of a kernel, as `rewrite` takes them."""
    return {
        p.name.removesuffix("_BLOCK").lower(): int(p.value)
        for p in kernel.parameters
        if p.type == "constexpr" and p.name != "CORES"
    }


@pytest.fixture(scope="session")
def at_two_sizes() -> Callable[..., tuple[tuple[SpyreKernel, ...], tuple[SpyreKernel, ...]]]:
    """`at_two_sizes(function, tensors, others)`: kernels for `tensors`, then those blocks for `others`."""

    def run(
        function: Callable[..., object], tensors: tuple[torch.Tensor, ...], others: tuple[torch.Tensor, ...]
    ) -> tuple[tuple[SpyreKernel, ...], tuple[SpyreKernel, ...]]:
        kernels = rewrite(capture_function(function, *tensors))
        blocks = [blocks_of(kernel) for kernel in kernels]
        return kernels, rewrite(capture_function(function, *others), blocks=blocks)

    return run


@pytest.fixture(scope="session")
def source_of() -> Callable[..., str]:
    """`source_of(function, *tensors)`: text of the last Spyre-aware kernel."""
    return lambda function, *tensors: rewrite(capture_function(function, *tensors))[-1].source


@pytest.fixture(scope="session")
def refined() -> Callable[..., Refined]:
    """`refined(function, *tensors)`: axes and IR of the only kernel, contractions formed."""

    def run(function: Callable[..., object], *tensors: torch.Tensor) -> Refined:
        kernel, memory = parse_captured(capture_function(function, *tensors))
        axes, kernel = refine(simplify(kernel, memory))
        return axes, simplify(form_contractions(kernel, axes), memory)

    return run


@pytest.fixture(scope="session")
def indexed() -> Callable[..., Refined]:
    """`indexed({"x": 24, "r0": 8}, "x % 4", ...)`: axes and IR of a kernel, one load per expression.

    The last expression is a store. `//` and `%` are the digits that Inductor writes.
    """

    def run(ranges: dict[str, int], *expressions: str) -> Refined:
        return refine(kernel_of(ranges, *expressions))

    return run


def kernel_of(ranges: dict[str, int], *expressions: str) -> Kernel:
    """IR of a kernel that loads at each expression and stores the first value at the last."""
    symbols = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in ranges}
    state = State(params={}, source=[], scope=dict(symbols))
    evaluate = Expressions(state)
    indices = [evaluate.index(ast.parse(text, mode="eval").body) for text in expressions]
    loads = [Load(f"tmp{i}", "in_ptr0", index, "float32") for i, index in enumerate(indices[:-1])]
    body = (*loads, Store("out_ptr0", indices[-1], "tmp0"))
    entries = tuple(Range(symbols[n], extent, n.startswith("r")) for n, extent in ranges.items())
    return Kernel("kernel", ("in_ptr0", "out_ptr0"), entries, body)


@pytest.fixture(scope="session")
def made_kernel() -> Callable[..., Kernel]:
    """`made_kernel(ranges, *expressions)`: see `indexed`, before the axes are refined."""
    return kernel_of


@pytest.fixture(scope="session")
def shown() -> Callable[[Refined], list[str]]:
    """Axes and index expressions as text: `["x0:6 x1:4", "4*x0 + x1", ...]`."""

    def run(found: Refined) -> list[str]:
        axes, kernel = found
        indices = [str(s.index) for s in kernel.body if isinstance(s, Load | Store | Index)]
        return [" ".join(f"{axis.name}:{axis.extent}" for axis in axes), *indices]

    return run
