"""Runs KTIR functions on a grid of cores over torch tensors, and finds what is wrong with them while it
does.
"""

from tracer.ktir.simulator.run import Function, Module, Result
from tracer.ktir.simulator.session import MAX_STEPS

__all__ = ["MAX_STEPS", "Function", "Module", "Result"]
