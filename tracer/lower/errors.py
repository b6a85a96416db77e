"""What the lowering can refuse."""

from __future__ import annotations

from tracer.errors import HarvestError


class SourceRejectedError(HarvestError):
    """Triton's own frontend rejects the kernel."""

    code = "HV401"
    message = "Triton cannot compile the kernel (line {number}): {reason}"
    advice = "read the named line; the same message appears when the kernel is launched."


class InterpretedTritonError(HarvestError):
    """The process imported Triton in interpreter mode, where there is no compiler."""

    code = "HV402"
    message = "Triton was imported with TRITON_INTERPRET set, so kernels cannot be compiled here"
    advice = "lower in a process that does not set TRITON_INTERPRET."


class UnsupportedOpsError(HarvestError):
    """Operations that have no KTIR form; all of them at once."""

    code = "HV403"
    message = "no KTIR form for {ops}"
    advice = "write the named lines with descriptors and operations that KTIR has."


class GridError(HarvestError):
    """The launch does not fit the accelerator."""

    code = "HV404"
    message = "the grid has {grid} programs, the accelerator {cores} cores"
    advice = "launch at most one program per core and loop inside the kernel."


class InexactTileError(HarvestError):
    """A tile that cannot be given its exact extent."""

    code = "HV405"
    message = "the tile cannot be made exact: {reason}"
    advice = "choose block sizes that divide the extent, or give the dimension a tile of its own."


class PaddedReductionError(HarvestError):
    """A reduction that sees padding which is not its identity."""

    code = "HV406"
    message = "{combiner} runs over padding whose value is not its identity (axis {axis})"
    advice = "mask the padded lanes with `tl.where(offsets < size, x, identity)` first."


class MalformedTtirError(HarvestError):
    """TTIR text that cannot be read."""

    code = "HV407"
    message = "the TTIR cannot be read: {reason}"
    advice = "report the kernel; the pinned Triton prints this form."


class PassError(HarvestError):
    """A pass left invalid IR behind: a defect of the lowering itself."""

    code = "HV408"
    message = "pass {name} produced invalid IR: {reason}"
    advice = "report the kernel."
