"""Model id -> configuration -> model on fake tensors -> recorded op calls."""

from tracer.models.config import ModelConfig, resolve, safe_name
from tracer.models.number import number
from tracer.models.op_call import OpCall, TensorRef, TensorSpec, Torch
from tracer.models.record import RecordedOp
from tracer.models.replay import float64, render, replay, tensor_names
from tracer.models.trace import Trace, trace

__all__ = [
    "ModelConfig",
    "OpCall",
    "RecordedOp",
    "TensorRef",
    "TensorSpec",
    "Torch",
    "Trace",
    "float64",
    "number",
    "render",
    "replay",
    "resolve",
    "safe_name",
    "tensor_names",
    "trace",
]
