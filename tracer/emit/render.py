"""The files of one op's folder, as text. Nothing is written here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import tracer
from tracer.capture.kernel import Buffer, CapturedOp
from tracer.emit import naming
from tracer.emit.digest import digest
from tracer.emit.domains import positive_inputs
from tracer.emit.index_ranges import index_ranges
from tracer.emit.layout import Raw, definitions, literal, requote
from tracer.emit.orders import input_orders
from tracer.emit.pieces import (
    buffer_lines,
    describe,
    input_expression,
    launcher_head,
    listed,
    stage_expression,
)
from tracer.emit.scales import input_scales
from tracer.emit.templates import environment
from tracer.lower.ktir_text import Ktir
from tracer.models.replay import float64, render
from tracer.rewrite.kernel import SpyreKernel
from tracer.rewrite.traced_numbers import traced_numbers
from tracer.target import SPYRE, SpyreTarget

SLOW_BYTES = 256 * 1024 * 1024
"""An op whose buffers are larger is marked `slow`: its full-size run would dominate all others."""


@dataclass(frozen=True)
class OpRecord:
    """What the folder of one op is made from.

    `kernels` and `ktirs` are in launch order, one per captured kernel, names unique
    (`naming.unique_kernels`).
    """

    name: str
    model: str
    captured: CapturedOp
    kernels: tuple[SpyreKernel, ...]
    ktirs: tuple[Ktir, ...]
    calls: int
    phases: tuple[str, ...]
    modules: tuple[str, ...]
    target: SpyreTarget = SPYRE

    @property
    def inputs_digest(self) -> str:
        """Digest of everything that decides the folder, apart from the tool."""
        return inputs_digest(self.captured.call.identity, self.target)


def inputs_digest(identity: str, target: SpyreTarget) -> str:
    """Digest of an op's identity and the target it is made for."""
    return digest(f"{identity}\n{target}")


def render_folder(record: OpRecord) -> dict[str, str]:
    """Every file of the op's folder: name to text, in reading order. The same record gives the same bytes."""
    env = environment()
    context = _context(record)
    files = {
        "inductor_kernel.py": env.get_template("inductor_kernel.py.j2").render(context),
        "triton_kernel.py": env.get_template("triton_kernel.py.j2").render(context),
        "wrapper.py": env.get_template("wrapper.py.j2").render(context),
    }
    ktir = env.get_template("kernel.ktir.j2")
    layouts = {buffer.name: describe(buffer) for buffer in record.captured.buffers}
    for kernel, lowered in zip(record.kernels, record.ktirs, strict=True):
        pointers = [
            (p.name, str(p.value), layouts[str(p.value)]) for p in kernel.parameters if p.type.startswith("*")
        ]
        text = ktir.render(context | {"kernel": kernel.name, "pointers": pointers, "text": lowered.text})
        files[naming.ktir_name(kernel.name)] = text
    files[naming.test_name(record.name)] = env.get_template("test_ktir.py.j2").render(context)
    return files


def kernel_code(kernels: Sequence[SpyreKernel]) -> str:
    """What stands below the comments of a folder's triton_kernel.py."""
    return environment().get_template("_kernel_code.j2").render(_code(kernels))


def _code(kernels: Sequence[SpyreKernel]) -> dict[str, Any]:
    texts = definitions(kernel.source for kernel in kernels)
    return {"definitions": texts, "libdevice": any("libdevice." in text for text in texts)}


def _context(record: OpRecord) -> dict[str, Any]:
    captured, call = record.captured, record.captured.call
    inputs = [buffer.name for buffer in captured.buffers if buffer.role == "input"]
    ranges, positive, scales = index_ranges(captured), positive_inputs(captured), input_scales(captured)
    orders = input_orders(captured)
    kernels = {kernel.name: kernel for kernel in record.kernels}
    return {
        "op": record.name,
        "model": record.model,
        "version": tracer.__version__,
        "digest": record.inputs_digest,
        "identity": call.identity,
        "cores": record.target.cores,
        "summary": _summary(record, render(call, inputs)),
        "originals": list(dict.fromkeys(kernel.source.strip("\n") for kernel in captured.kernels)),
        **_code(record.kernels),
        "traced_numbers": listed([*map(str, traced_numbers(record.kernels, call))]),
        "plans": {name: kernel.plan for name, kernel in kernels.items()},
        "signatures": {name: kernel.signature for name, kernel in kernels.items()},
        "stages": [stage_expression(kernel, naming.ktir_name(kernel.name)) for kernel in record.kernels],
        "buffers": {b.name: _layout(b) for b in captured.buffers if b.base is None},
        "views": {
            b.name: (b.base, *_layout(b), b.spec.offset) for b in captured.buffers if b.base is not None
        },
        "outputs": captured.outputs,
        "inputs": {
            name: input_expression(name, ranges.get(name), name in positive, scales.get(name, 1.0), orders)
            for name in inputs
        },
        "oracle": requote(render(float64(call), [f"x[{literal(name)}]" for name in inputs])),
        "launcher": launcher_head(naming.launcher_name(record.name), inputs, captured.returned),
        "written": [name for name in inputs if name in captured.outputs],
        "picked": _picked(captured),
        "arguments": {name: Raw(name) for name in inputs},
        "slow": _bytes(captured.buffers) > SLOW_BYTES,
    }


def _summary(record: OpRecord, call: str) -> str:
    times = "once" if record.calls == 1 else f"{record.calls} times"
    modules = listed([module for module in record.modules if module])
    origins = sorted({origin for kernel in record.captured.kernels for origin in kernel.origins})
    lines = [
        f"{record.name} of {record.model}",
        "",
        f"    {call}",
        *buffer_lines(record.captured),
        "",
        f"Called {times} in {listed(record.phases)}" + (f", from {modules}." if modules else "."),
        f"Inductor made it from {listed(origins)}." if origins else "",
        f"Generated by harvest {tracer.__version__} from inputs {record.inputs_digest};"
        " change the tool, not this file.",
    ]
    return "\n".join(lines)


def _picked(captured: CapturedOp) -> str:
    """The subscript of a launch's outputs that picks what the op returns."""
    if captured.returned == len(captured.outputs):
        return ""
    return "[0]" if captured.returned == 1 else f"[:{captured.returned}]"


def _layout(buffer: Buffer) -> tuple[tuple[int, ...], tuple[int, ...], Raw]:
    return buffer.spec.shape, buffer.spec.stride, Raw(buffer.spec.dtype)


def _bytes(buffers: Sequence[Buffer]) -> int:
    """Bytes of memory that the buffers span."""
    total = 0
    for buffer in buffers:
        if buffer.base is None and 0 not in buffer.spec.shape:
            span = 1 + sum((n - 1) * s for n, s in zip(buffer.spec.shape, buffer.spec.stride, strict=True))
            total += span * getattr(torch, buffer.spec.dtype.removeprefix("torch.")).itemsize
    return total
