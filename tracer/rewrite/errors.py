"""Refusals of the rewrite."""

from __future__ import annotations

from tracer.errors import HarvestError


class UnsupportedSyntax(HarvestError):
    """The kernel source holds a construct that the parser does not know."""

    code = "HV301"
    message = "the kernel uses {what}, which has no place in the structured IR"
    advice = "report the kernel; its text is in inductor_kernel.py"


class UnsupportedOperation(HarvestError):
    """A Triton or Inductor function without a rule."""

    code = "HV302"
    message = "no rewrite rule for `{function}`"
    advice = "add a row to tracer/rewrite/functions.py"


class UndefinedValue(HarvestError):
    """A name is read before anything defines it (a known fault of some Inductor versions)."""

    code = "HV303"
    message = "the kernel reads `{name}` before it is defined"
    advice = "capture the op again with loop_reindexing_after_fusion off"


class AliasedAccess(HarvestError):
    """One buffer is read and written at different places by one kernel."""

    code = "HV304"
    message = "`{param}` is read and written at different elements by one kernel"
    advice = "capture the op out of place"


class RankTooHigh(HarvestError):
    """An access needs more descriptor dims than Triton has."""

    code = "HV305"
    message = "the access to `{param}` needs {rank} descriptor dims, and Triton allows {limit}"
    advice = "make the tensor contiguous before the op"


class OutsideBuffer(HarvestError):
    """An access would leave its buffer where its mask is false."""

    code = "HV306"
    message = "the access to `{param}` spans elements {first}..{last} of {numel}, guarded only by a mask"
    advice = "see whether the mask can be split into axis intervals in tracer/rewrite/split.py"


class NoPlan(HarvestError):
    """No tiling satisfies the target."""

    code = "HV307"
    message = "no tiling fits: {reason}"
    advice = "a target with more scratchpad, or a smaller reduction"


class AtomicStore(HarvestError):
    """A store that accumulates into memory from several programs."""

    code = "HV308"
    message = "the kernel stores with `{function}`, and Spyre has no atomic memory operation"
    advice = "a deterministic form of the op (sort the indices, or use index_copy)"


class RandomNumbers(HarvestError):
    """Random values have no reproducible oracle."""

    code = "HV309"
    message = "the kernel draws random numbers (`{function}`)"
    advice = "trace the model in eval mode"


class SteppedReduction(HarvestError):
    """A scan, an argmax or an argmin along an axis that a data-dependent or reversed access walks."""

    code = "HV310"
    message = "the kernel scans or searches axis `{axis}`, and can read it only element by element"
    advice = "an op whose indices do not vary along the reduced dimension"


class SplitReduction(HarvestError):
    """A scan or a search whose one range is several axes: their order counts, and no tile has it."""

    code = "HV311"
    message = "the kernel scans or searches axes {axes} as one"
    advice = "make the tensor contiguous before the op"
