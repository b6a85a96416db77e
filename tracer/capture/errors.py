"""Refusals of the capture room: HV2xx."""

from __future__ import annotations

from tracer.errors import HarvestError


class ExternKernel(HarvestError):
    """Inductor has no Triton kernel for an ATen op that the call needs."""

    code = "HV201"
    message = "{aten_ops} has no Triton kernel: Inductor calls a library for it"
    advice = "nothing on the command line helps; the op needs a decomposition."


class MovedNames(HarvestError):
    """A private name of PyTorch that capture relies on is gone."""

    code = "HV202"
    message = "this PyTorch lacks private names that capture relies on: {names}"
    advice = "install the pinned releases, then `harvest doctor`."


class CodegenFailure(HarvestError):
    """Inductor raised while it generated code."""

    code = "HV203"
    message = "Inductor could not generate code: {detail}"
    advice = "--debug shows the traceback."
    settled = False


class UnknownBuffer(HarvestError):
    """A launch names something that is neither an input, an intermediate, an output nor a number."""

    code = "HV204"
    message = "kernel {kernel} takes `{argument}`, which is no buffer of the op"
    advice = "report the op."


class LayoutMismatch(HarvestError):
    """Inductor returns a tensor in another layout than PyTorch does."""

    code = "HV205"
    message = "output {output} should have layout {expected}, Inductor gives {found}"
    advice = "report the op."


class DataDependent(HarvestError):
    """The call's result shape, or whether it runs, depends on values."""

    code = "HV206"
    message = "the result depends on values of its inputs: {detail}"
    advice = "nothing on the command line helps; such an op has no static kernel."


class NoOutputCode(HarvestError):
    """A file holds no Inductor output code."""

    code = "HV207"
    message = "{path} is no Inductor output code: {detail}"
    advice = "pass an output_code.py written by TORCH_COMPILE_DEBUG=1."


class RandomOp(HarvestError):
    """The op draws random numbers."""

    code = "HV208"
    message = "{aten_ops} draws random numbers, which no oracle repeats"
    advice = "harvest the model in eval mode; sampling ops stay on the host."


class HostData(HarvestError):
    """The op reads a table of numbers that is part of the call itself."""

    code = "HV209"
    message = (
        "the call carries a table of {elements} numbers from the host, which is a copy and no computation"
    )
    advice = "nothing needs to be done: the host writes such a tensor."


class RelaidInput(HarvestError):
    """The op gives an input another layout in place, and needs a kernel besides."""

    code = "HV210"
    message = "the op gives its tensor argument {position} another layout in place, {detail}"
    advice = "nothing on the command line helps; the op without the underscore has a kernel."
