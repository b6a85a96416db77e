"""Pieces of the generated files that are computed: expressions, a launcher's head, the summary of an op."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.capture.kernel import Buffer, CapturedOp
from tracer.emit.index_ranges import IndexRange
from tracer.emit.layout import INDENT, WIDTH, literal, quoted
from tracer.emit.orders import Orders
from tracer.rewrite.kernel import SpyreKernel


def stage_expression(kernel: SpyreKernel, ktir: str) -> str:
    """`Stage(...)` of one launch."""
    args = {p.name: p.value for p in kernel.parameters if p.type != "constexpr"}
    constexpr = {p.name: p.value for p in kernel.parameters if p.type == "constexpr"}
    parts = [
        f"kernel=kernels.{kernel.name}",
        f"ktir={quoted(ktir)}",
        f"grid={literal((kernel.grid,))}",
        f"args={literal(args)}",
        f"constexpr={literal(constexpr)}",
    ]
    return f"Stage({', '.join(parts)})"


def input_expression(
    name: str,
    index: IndexRange | None,
    positive: bool = False,
    scale: float = 1.0,
    orders: Orders | None = None,
) -> str:
    """The call that fills one input buffer."""
    distinct = bool((index and index.distinct) or (orders and name in orders.distinct))
    bounds = f", high={index.high}" if index else ""
    bounds += ", distinct=True" if distinct else ""
    bounds += ", ordered=True" if orders and name in orders.ascending else ""
    bounds += ", positive=True" if positive else ""
    bounds += f", scale={scale!r}" if scale != 1.0 else ""
    return f"random_tensor(*BUFFERS[{quoted(name)}], generator=generator{bounds})"


def launcher_head(name: str, parameters: Sequence[str], outputs: int) -> str:
    """`def silu(input: torch.Tensor) -> torch.Tensor:`."""
    typed = [f"{parameter}: torch.Tensor" for parameter in parameters]
    returns = "torch.Tensor" if outputs == 1 else "tuple[torch.Tensor, ...]"
    line = f"def {name}({', '.join(typed)}) -> {returns}:"
    if len(line) <= WIDTH:
        return line
    return "\n".join(
        [f"def {name}(", *(f"{' ' * INDENT}{parameter}," for parameter in typed), f") -> {returns}:"]
    )


def describe(buffer: Buffer) -> str:
    """`float16[1, 12, 4096]`, with strides where they are not those of a contiguous tensor."""
    spec = buffer.spec
    text = f"{spec.dtype.removeprefix('torch.')}{list(spec.shape)}"
    return text if spec.stride == contiguous(spec.shape) else f"{text}, strides {list(spec.stride)}"


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor; PyTorch's rule counts an empty extent as one."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def buffer_lines(op: CapturedOp) -> list[str]:
    """A line for every buffer: name, what it is, layout."""
    width = max((len(buffer.name) for buffer in op.buffers), default=0)
    lines = []
    for buffer in op.buffers:
        written = buffer.role == "input" and buffer.name in op.outputs
        note = (
            ", written in place"
            if written
            else ", between the kernels"
            if buffer.role == "intermediate"
            else ""
        )
        view = f", a view of {buffer.base}" if buffer.base else ""
        lines.append(f"        {buffer.name:{width}}  {describe(buffer)}{note}{view}")
    return lines


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
