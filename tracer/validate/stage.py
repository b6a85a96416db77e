"""How a generated folder's kernels are launched."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tracer.validate.errors import LaunchRefused
from tracer.validate.oracle import Layout, View

TRITON_TYPES = {
    torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32", torch.float64: "fp64",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
    torch.bool: "i8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
}  # fmt: skip
"""Element types of pointers. A bool is loaded and stored as an i8: descriptors know no bits."""

_ALIGNMENT = 16
"""Bytes that a GPU's tensor memory unit wants base and strides to be a multiple of."""


@dataclass(frozen=True)
class Stage:
    """One launch: a `@triton.jit` function, the file of its KTIR, its grid, and what each argument is.

    `args` maps kernel arguments, in kernel order, to the name of a buffer or to a number; `constexpr` the
    rest.
    """

    kernel: Any
    ktir: str
    grid: tuple[int, ...]
    args: dict[str, str | int]
    constexpr: dict[str, int]

    @property
    def name(self) -> str:
        """Name of the kernel's function."""
        return str(self.kernel.__name__)

    @property
    def pointers(self) -> dict[str, str]:
        """Pointer arguments and their buffers, in kernel order: the parameters of the stage's KTIR
        function."""
        return {name: value for name, value in self.args.items() if isinstance(value, str)}


def load_sibling(file: str, name: str) -> ModuleType:
    """The module `name` in the folder of `file`, under a name of its own; no package and no path is
    needed."""
    path = Path(file).resolve().parent / name
    unique = "spyre_" + re.sub(r"\W", "_", f"{path.parent.name}_{path.stem}")
    spec = importlib.util.spec_from_file_location(unique, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module {path}")
    module = importlib.util.module_from_spec(spec)
    # Triton looks for a kernel's module by name when it reads its source.
    sys.modules[unique] = module
    spec.loader.exec_module(module)
    return module


def as_pointer(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel gets for a buffer: bools as int8, anything else itself."""
    return tensor.view(torch.int8) if tensor.dtype == torch.bool else tensor


def launch(
    stages: Sequence[Stage],
    buffers: Mapping[str, Layout],
    outputs: Sequence[str],
    inputs: Mapping[str, torch.Tensor],
    views: Mapping[str, View] | None = None,
) -> Any:
    """Launch all stages on the device of `inputs` (on a GPU where there are none) and return the outputs.

    Inputs must have the traced shapes, strides and dtypes; those that are outputs too are written in place.
    Other buffers are allocated. Returns a tensor, or a tuple of tensors where the op has several outputs.

    Raises:
        LaunchRefused: a tensor has another layout, or the device cannot run the kernel.
    """
    for name, tensor in inputs.items():
        check_tensor(name, tensor, buffers[name])
    device = next((tensor.device for tensor in inputs.values()), _default_device())
    for name, tensor in inputs.items():
        shape, stride, dtype = buffers[name]
        if tensor.device != device:
            raise LaunchRefused(
                detail=f"{name} is on {tensor.device}, {next(iter(inputs))} on {device}",
                try_="all tensors on one device.",
            )
        if tuple(tensor.shape) != tuple(shape) or tensor.dtype != dtype or not _same_stride(tensor, stride):
            layout = f"{tensor.dtype}{list(tensor.shape)} with strides {list(tensor.stride())}"
            raise LaunchRefused(
                detail=f"{name} is {layout};"
                f" this kernel takes {dtype}{list(shape)} with strides {list(stride)}",
                try_="a harvest at that size.",
            )
    tensors = dict(inputs)
    for name, (shape, stride, dtype) in buffers.items():
        if name not in tensors:
            tensors[name] = torch.empty_strided(tuple(shape), tuple(stride), dtype=dtype, device=device)
    aside = {} if device.type == "cpu" else set_aside(tensors, set(inputs) & set(outputs))
    run_stages(stages, {**tensors, **aside}, device)
    for name, copy in aside.items():
        tensors[name].copy_(copy)
    for name, (base, shape, stride, _, offset) in (views or {}).items():
        start = tensors[base].storage_offset() + offset
        tensors[name] = tensors[base].as_strided(tuple(shape), tuple(stride), start)
    found = tuple(tensors[name] for name in outputs)
    return found[0] if len(found) == 1 else found


def check_tensor(name: str, given: Any, layout: Layout) -> None:
    """That an argument is a tensor with elements in memory. Raises LaunchRefused."""
    shape, stride, dtype = layout
    takes = f"this kernel takes a tensor of {dtype}{list(shape)} with strides {list(stride)}"
    if not isinstance(given, torch.Tensor):
        raise LaunchRefused(detail=f"{name} is a {type(given).__name__}; {takes}", try_="such a tensor.")
    if given.layout != torch.strided:
        raise LaunchRefused(detail=f"{name} is {given.layout}; {takes}", try_="its to_dense().")
    if given.is_meta:
        raise LaunchRefused(
            detail=f"{name} is on the meta device, where tensors have no values; {takes}",
            try_="a tensor on a GPU, or on the CPU under TRITON_INTERPRET=1.",
        )


def set_aside(tensors: Mapping[str, torch.Tensor], written: set[str]) -> dict[str, torch.Tensor]:
    """Copies for the written inputs whose rows end inside 16 bytes; their elements are copied back
    afterwards.

    A GPU's tensor memory unit clips a store to whole 16 bytes, not to elements (measured on an H200, Triton
    3.6), and would write into whatever the caller keeps behind such a row.
    """
    copies = {}
    for name in sorted(written):
        tensor = tensors[name]
        run = 1
        for extent, stride in sorted(zip(tensor.shape, tensor.stride(), strict=True), key=lambda p: p[1]):
            if extent > 1 and stride == run:
                run *= extent
        if run * tensor.element_size() % _ALIGNMENT and tensor.numel():
            span = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
            room = torch.empty(span + _ALIGNMENT, dtype=tensor.dtype, device=tensor.device)
            room[:span] = tensor.as_strided((span,), (1,), tensor.storage_offset())
            copies[name] = room.as_strided(tensor.shape, tensor.stride())
    return copies


def run_stages(stages: Sequence[Stage], tensors: Mapping[str, torch.Tensor], device: torch.device) -> None:
    """Launch the stages in order over tensors of one device.

    In Triton's interpreter the rules of a GPU's tensor memory unit do not count, as in validation. Raises
    LaunchRefused, and MovedInterpreterName there.
    """
    if device.type == "cpu" and not _interpreted():
        raise LaunchRefused(
            detail="Triton runs on no CPU tensors",
            try_="tensors on a GPU, or TRITON_INTERPRET=1 in the environment before Python starts.",
        )
    context: Any = nullcontext()
    if device.type == "cpu":
        from tracer.validate.interpreter_patches import corrected

        context = corrected()
    if device.type == "cuda":
        import triton

        context = torch.cuda.device(device)
        # Descriptors that a kernel makes live in memory that Triton asks its caller for.
        triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device=device))
    with context:
        for stage in stages:
            if device.type != "cpu" and (reason := unaligned(stage, tensors)):
                raise LaunchRefused(detail=reason, try_="a problem size with rows of whole 16 bytes.")
            values = {n: as_pointer(tensors[v]) if isinstance(v, str) else v for n, v in stage.args.items()}
            stage.kernel[stage.grid](**values, **stage.constexpr)


def unaligned(stage: Stage, tensors: Mapping[str, torch.Tensor]) -> str:
    """Why a GPU's tensor memory unit would silently ignore a stage's accesses; empty where it would not.

    Measured: with a row stride that is no multiple of 16 bytes the launch succeeds and the output stays
    untouched. Strides are the arguments `<descriptor>_stride_<axis>`; descriptor `in0` is of pointer
    `in_ptr0`.
    """
    for name, buffer in stage.pointers.items():
        if tensors[buffer].numel() and tensors[buffer].data_ptr() % _ALIGNMENT:
            return f"{stage.name}: buffer {buffer} starts at no multiple of {_ALIGNMENT} bytes"
        descriptor = name.replace("_ptr", "")
        for other, value in stage.args.items():
            match = re.match(rf"{descriptor}(?:_\d+)?_stride", other)
            if match and isinstance(value, int) and value * tensors[buffer].element_size() % _ALIGNMENT:
                return f"{stage.name}: {other}={value} is no multiple of {_ALIGNMENT} bytes"
    return ""


def _same_stride(tensor: torch.Tensor, stride: Sequence[int]) -> bool:
    return all(n <= 1 or a == b for n, a, b in zip(tensor.shape, tensor.stride(), stride, strict=True))


def _interpreted() -> bool:
    import triton

    return bool(triton.knobs.runtime.interpret)


def _default_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
