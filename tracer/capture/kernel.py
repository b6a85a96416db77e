"""What Inductor generated for one op: kernels in launch order and the buffers between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracer.models.op_call import OpCall, TensorSpec

Role = Literal["input", "intermediate", "output"]


@dataclass(frozen=True)
class Buffer:
    """A block of memory that stages share. A mutated input keeps the role `input`."""

    name: str
    role: Role
    spec: TensorSpec


@dataclass(frozen=True)
class CapturedKernel:
    """One launch of one Inductor kernel.

    `source` is the whole generated module text (helper functions, decorators and all).
    `arguments` maps each kernel parameter, in kernel order, to a buffer's name or to a number
    (`xnumel` ...); constexpr parameters are not in it. `signature` maps the same parameters to Triton
    types (`*fp16`, `i32`). `mutated` names the parameters that the kernel writes.
    """

    name: str
    source: str
    arguments: tuple[tuple[str, str | int], ...]
    signature: tuple[tuple[str, str], ...]
    mutated: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True)
class CapturedOp:
    """Everything captured for one op call.

    `buffers` lists inputs (in the order of `call.tensors`), then intermediates and outputs.
    `outputs` names, in order, the buffers that the op returns (a mutated input may be one).
    """

    call: OpCall
    buffers: tuple[Buffer, ...]
    kernels: tuple[CapturedKernel, ...]
    outputs: tuple[str, ...]
