"""What Inductor generated for one op: kernels in launch order and the buffers between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tracer.models.op_call import OpCall, TensorSpec

Role = Literal["input", "intermediate", "output"]


@dataclass(frozen=True)
class Buffer:
    """A block of memory that stages share. A mutated input keeps the role `input`.

    Kernels index from the first element of the tensor that `spec` lays out (its `data_ptr()`): an input's
    `spec.offset` says where in its own storage that is, and is no part of any index.
    `base` is set only for an output that no kernel writes by this name, because it is a view of another
    buffer: the view starts `spec.offset` elements after the first element of buffer `base`.
    """

    name: str
    role: Role
    spec: TensorSpec
    base: str | None = None


@dataclass(frozen=True)
class CapturedKernel:
    """One launch of one Inductor kernel.

    `source` is the whole generated module text (helper functions, decorators and all). `arguments` maps each
    kernel parameter, in kernel order, to a buffer's name or to a number (`xnumel` ...); constexpr parameters
    are not in it. `signature` maps the same parameters to Triton types (`*fp16`, `i32`). `mutated` names the
    parameters that the kernel writes. A kernel that updates a buffer in place takes it twice (`in_ptr0` and
    `out_ptr0` name one buffer): there are no `in_out_ptr` parameters. `origins` are the ATen ops it came
    from, sorted (`aten.silu`).
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

    `buffers` lists inputs (in the order of `call.tensors`), then intermediates, then outputs.
    `outputs` names, in order, the buffers that the op returns (a mutated input may be one), its tree of
    results flattened, and after them the inputs that it writes and does not return. `returned` counts the
    first ones; of an op that returns nothing it counts all.
    """

    call: OpCall
    buffers: tuple[Buffer, ...]
    kernels: tuple[CapturedKernel, ...]
    outputs: tuple[str, ...]
    returned: int
