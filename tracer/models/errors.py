"""Refusals of the models room: HV1xx."""

from __future__ import annotations

from tracer.errors import HarvestError


class UnknownModel(HarvestError):
    """No source knows the model id."""

    code = "HV101"
    message = "no model is called `{model}`{near}"
    advice = "give a local path, a Hub id, a bundled preset or a transformers model_type."


class MalformedConfig(HarvestError):
    """The configuration cannot be read, or transformers refuses it."""

    code = "HV102"
    message = "the configuration of `{model}` is malformed: {detail}"
    advice = "mend config.json; it must be what transformers' AutoConfig accepts."


class RemoteCode(HarvestError):
    """The configuration asks to run code from its repository."""

    code = "HV103"
    message = "`{model}` wants to run code of its own (auto_map: {classes}), which is never done"
    advice = "use a model whose model_type transformers ships."


class NetworkFailure(HarvestError):
    """The Hub was needed and could not be reached, or refused."""

    code = "HV104"
    message = "the configuration of `{model}` could not be fetched: {detail}"
    advice = "download config.json and pass its path."


class BuildFailure(HarvestError):
    """transformers could not construct the model."""

    code = "HV105"
    message = "`{model}` could not be built from its configuration: {detail}"
    advice = "check that the configuration suits the pinned transformers release."


class TraceFailure(HarvestError):
    """The model's forward pass failed on fake tensors."""

    code = "HV106"
    message = "`{model}` could not be run on fake tensors in phase {phase}: {detail}"
    advice = "another --seq-len, --batch or --phases; --debug shows the traceback."


class UnknownOp(HarvestError):
    """The name of an op call does not lead to a function of torch."""

    code = "HV107"
    message = "no function of torch is called `{name}`"
    advice = "harvest again with the pinned torch release."


class BadOption(HarvestError):
    """A tracing option is out of range."""

    code = "HV108"
    message = "{option} = {value} is not possible: {detail}"
    advice = "see `harvest --help`."


class UnsupportedArgument(HarvestError):
    """An argument of a recorded call has no printable spelling."""

    code = "HV109"
    message = "an argument of type {kind} cannot be recorded"
    advice = "report the op; the call is listed in the manifest as refused."


class TooManyCalls(HarvestError):
    """A phase makes more calls than anyone wants to wait for (a loop over the sequence, say)."""

    code = "HV110"
    message = "phase {phase} makes more than {limit} calls"
    advice = "a smaller --seq-len, or fewer --layers."


class OverlappingArguments(HarvestError):
    """A call writes memory that another argument of another layout reads."""

    code = "HV111"
    message = "the call writes a tensor that shares elements with another argument"
    advice = "an out-of-place form of the op; its kernels may not read what they overwrite."
