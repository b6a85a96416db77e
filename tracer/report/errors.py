"""Refusals of the command line: HV9xx."""

from __future__ import annotations

from tracer.errors import HarvestError


class UnreadableFile(HarvestError):
    """A file that was named cannot be read."""

    code = "HV901"
    message = "{file} cannot be read: {detail}"
    advice = "check the path."


class BadArgument(HarvestError):
    """An argument of a simulated function is wrong or missing."""

    code = "HV902"
    message = "argument {argument}: {detail}"
    advice = "--arg in_ptr0=f16[12,4096], --arg n=12 or --arg x=values.npy."


class MissingPlotter(HarvestError):
    """A plot was asked for and matplotlib is not installed."""

    code = "HV903"
    message = "a plot needs matplotlib, which is not installed"
    advice = "pip install 'spyre-kernels[plot]'."


class WrongCommandLine(HarvestError):
    """The option parser refuses the command line."""

    code = "HV904"
    message = "{detail}"
    advice = "`{command} --help`."


class BadValue(HarvestError):
    """A value for lowering is no number of the kernels."""

    code = "HV905"
    message = "{value} is no NAME=NUMBER of these kernels"
    advice = "--arg with a name out of {names}, and a number from 0."


class FixedExtents(HarvestError):
    """A kernel whose text may hold at the traced extents alone is to be lowered at another."""

    code = "HV906"
    message = "--arg {value}: {numbers} in the kernels' text may follow the traced extents"
    advice = "harvest the op at that size."


class ShortBlock(HarvestError):
    """A kernel that takes an axis in one block is to be lowered with an axis that is longer."""

    code = "HV907"
    message = "{kernel} takes {axis}_size in one block, and {size} elements are more than {block}"
    advice = "--arg {axis_block}={power}, if that fits the scratchpad."
