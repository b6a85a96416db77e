"""Inductor's kernel source -> structured IR, by evaluating its syntax tree symbolically.

Every name is bound to what it means: a range index (SymPy), a mask that only guards range ends
(`IN_RANGE`), a Python number, or a value of the IR. Tiling constructs (`tl.arange`, `[:, None]`,
`tl.broadcast_to`, loops over reduction blocks and their accumulators) disappear on the way.
"""

from tracer.rewrite.parse.statements import parse

__all__ = ["parse"]
