"""Runs KTIR functions on a grid of cores over torch tensors, and finds what is wrong with them while it
does.
"""

from tracer.ktir.simulator.run import Function, Module, Result

__all__ = ["Function", "Module", "Result"]
