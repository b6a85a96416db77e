"""Importing this module registers the emitter of every operation for one core."""

from tracer.ktir.simulator import (  # noqa: F401
    emit_arith,
    emit_control,
    emit_distributed,
    emit_gather,
    emit_generic,
    emit_ktdp,
    emit_linalg,
    emit_parallel,
    emit_tensor,
)
