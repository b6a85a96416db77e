"""Refusals of the models room: HV1xx."""

from __future__ import annotations

import re

from tracer.errors import HarvestError

_WRAPPERS = re.compile(
    r"^(?:\w+(?:Error|Exception): |Validation error for field '\w+': "
    r"|Class validation error for validator '\w+': )+"
)


class UnknownModel(HarvestError):
    """No source knows the model id."""

    code = "HV101"
    message = "no model is called `{model}`{near}"
    advice = "a local path, a Hub id, a bundled preset or a model_type of transformers."


class MalformedConfig(HarvestError):
    """The configuration cannot be read, or transformers refuses it."""

    code = "HV102"
    message = "the configuration of `{model}` is malformed: {detail}"
    advice = "mend config.json; it must be what transformers' AutoConfig accepts."

    def __init__(self, *, detail: str, **fields: object) -> None:
        # Names of exceptions and validators, which wrap the sentence, say nothing about the configuration.
        super().__init__(detail=_WRAPPERS.sub("", detail), **fields)  # type: ignore[arg-type]


class RemoteCode(HarvestError):
    """The configuration asks to run code from its repository."""

    code = "HV103"
    message = "`{model}` wants to run code of its own (auto_map: {classes}), which is never done"
    advice = "use a model whose model_type transformers ships."


class NetworkFailure(HarvestError):
    """The Hub was needed and could not be reached, or refused."""

    code = "HV104"
    message = "the configuration of `{model}` could not be fetched: {detail}"
    advice = "download its config.json and pass the path{or_else}."

    def __init__(self, *, or_else: str = "", **fields: object) -> None:
        super().__init__(or_else=or_else, **fields)  # type: ignore[arg-type]


class BuildFailure(HarvestError):
    """transformers could not construct the model."""

    code = "HV105"
    message = "`{model}` could not be built from its configuration: {detail}"
    advice = "{way_out}."

    def __init__(
        self, *, way_out: str = "a configuration that suits the pinned transformers release", **fields: object
    ) -> None:
        super().__init__(way_out=way_out, **fields)  # type: ignore[arg-type]


class MissingPackage(HarvestError):
    """transformers builds or runs the model only with a package that is not there."""

    code = "HV116"
    message = "`{model}` needs a package that is not installed: {detail}"
    advice = "install it beside the tool, and run again."


class TraceFailure(HarvestError):
    """The model's forward pass failed on fake tensors."""

    code = "HV106"
    message = "`{model}` could not be run on fake tensors in phase {phase}: {detail}"
    advice = "another --dtype, --seq-len, --batch or --phases, or more --layers; --debug shows the traceback."


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


class NoConfiguration(HarvestError):
    """A path was given, and no configuration is there."""

    code = "HV112"
    message = "`{model}` is no model: {detail}"
    advice = "a directory with a config.json, or the path of a JSON file."


class UnmatchedPattern(HarvestError):
    """`--only` leaves nothing of the model."""

    code = "HV113"
    message = "no op of {model} matches `--only {pattern}`; {near}"
    advice = "a part of a name, such as softmax, or a pattern of whole names, such as '*.softmax.*'."


class UnknownPhase(BadOption):
    """The model has no phase of that name."""

    code = "HV114"
    message = "{model} has no phase `{phase}`; it has {known}"
    advice = (
        "--phases with some of these: models that generate have prefill and decode, others forward, and a"
        " nested model that these do not reach goes by the name of its module."
    )


class UnknownShape(HarvestError):
    """A call returns as many elements as values say that a trace does not have."""

    code = "HV115"
    message = "the shape of the result depends on values that are not known without weights ({detail})"
    advice = "nothing on the command line helps; the phase ends at this call."
