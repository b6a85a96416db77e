"""Refusals of the emit room: HV5xx."""

from __future__ import annotations

from tracer.errors import HarvestError


class EditedFile(HarvestError):
    """A generated file differs from what the tool last wrote there."""

    code = "HV501"
    message = "{files} in {folder} changed since the tool wrote it"
    advice = "keep the edit elsewhere, or overwrite it with --force."


class UnwritableFolder(HarvestError):
    """The output cannot be written."""

    code = "HV502"
    message = "{folder} cannot be written: {detail}"
    advice = "another --out, more space, or other permissions."


class MalformedManifest(HarvestError):
    """kernels.json is not what the tool writes."""

    code = "HV503"
    message = "{path} is no registry of this tool: {detail}"
    advice = "restore it from version control, or move it away to begin a new one."


class BrokenSum(HarvestError):
    """The statuses of a model do not add up to the calls that were recorded."""

    code = "HV504"
    message = "{model}: {recorded} calls were recorded and {accounted} are accounted for"
    advice = "report the model; no call may be dropped silently."


class Timeout(HarvestError):
    """One op took longer than the limit."""

    code = "HV505"
    message = "the op took longer than {seconds} seconds"
    advice = "raise --timeout, or report the op."
    settled = False


class NoFolder(HarvestError):
    """A folder is not one that the tool generated."""

    code = "HV506"
    message = "{folder} is no folder of an op: {detail}"
    advice = "give a folder such as harvested/MODEL/torch.add.1_spyre."


class UnknownOpFolder(HarvestError):
    """No harvested op has the name."""

    code = "HV507"
    message = "no op{model} under {out} is called `{name}`"
    advice = "`harvest show` with a part of the name, such as silu, or another --out."


class NoPart(HarvestError):
    """A harvested op lacks the file that was asked for."""

    code = "HV508"
    message = "{name} of {model} has no {part}: {detail}"
    advice = "{try_}"


class UnknownModelFolder(HarvestError):
    """No harvested model has the name."""

    code = "HV509"
    message = "no model under {out} is called `{model}`{known}"
    advice = "--model with such a name, `harvest --model`, or another --out."
