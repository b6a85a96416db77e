"""OpCall -> CapturedOp: what Inductor generates for one op, without a GPU."""

from tracer.capture.capture import capture
from tracer.capture.inductor import missing_names
from tracer.capture.kernel import Buffer, CapturedKernel, CapturedOp

__all__ = ["Buffer", "CapturedKernel", "CapturedOp", "capture", "missing_names"]
