"""OpCall -> CapturedOp: what Inductor generates for one op, without a GPU.

`capture` and `missing_names` import PyTorch when they are first asked for; the contract classes do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp

if TYPE_CHECKING:
    from tracer.capture.codegen import capture
    from tracer.capture.inductor import missing_names

__all__ = ["Buffer", "CapturedKernel", "CapturedOp", "capture", "missing_names"]


def __getattr__(name: str) -> Any:
    if name == "capture":
        from tracer.capture.codegen import capture

        return capture
    if name == "missing_names":
        from tracer.capture.inductor import missing_names

        return missing_names
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
