"""Refusals of the validate room: HV6xx."""

from __future__ import annotations

from pathlib import Path

from tracer.errors import HarvestError


def told(error: BaseException) -> str:
    """What an exception says, on one line. Evidence holds no path of the machine it was taken on."""
    if isinstance(error, OSError) and error.strerror:
        name = Path(str(error.filename)).name if error.filename else ""
        return f"{error.strerror.lower()}{f': {name}' if name else ''}"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


class Mismatch(HarvestError):
    """A result differs from the oracle by more than rounding allows."""

    code = "HV601"
    message = "{tier}: {detail}"
    advice = "compare triton_kernel.py with inductor_kernel.py and the KTIR; the oracle is in wrapper.py."


class Disturbed(HarvestError):
    """A kernel wrote where it must not: beside an output, or into an input that the op only reads."""

    code = "HV602"
    message = "{tier}: {detail}"
    advice = "look at the shape of the descriptor that is stored through."


class NotSpyreShaped(HarvestError):
    """A kernel breaks one of the rules of tier T1."""

    code = "HV603"
    message = "T1: {detail}"
    advice = "harvest the op again; the README's table of tiers has the rules."


class NotCovered(HarvestError):
    """Coverage found elements that nobody writes, that are written twice, or that should have been read."""

    code = "HV604"
    message = "T1: {detail}"
    advice = "look at the loop bounds and the block sizes of that buffer's accesses."


class InterpreterFailed(HarvestError):
    """The Triton interpreter stopped at the kernel."""

    code = "HV605"
    message = "the Triton interpreter stopped at {kernel}: {detail}"
    advice = "run the kernel alone under TRITON_INTERPRET=1."


class InterpreterTimeout(HarvestError):
    """The Triton interpreter took too long."""

    code = "HV606"
    message = "the Triton interpreter did not finish {kernel} within {seconds} s"
    advice = "a smaller problem size, or a longer limit in SPYRE_INTERPRETER_TIMEOUT (seconds)."


class InterpreterCrashed(HarvestError):
    """The interpreter's process died."""

    code = "HV607"
    message = "the process of the Triton interpreter died ({detail}) at {kernel}"
    advice = "run the kernel alone under TRITON_INTERPRET=1."


class MovedInterpreterName(HarvestError):
    """A private name of Triton's interpreter that the harness relies on is gone."""

    code = "HV608"
    message = "triton {version} has no {name}, which the interpreter harness relies on"
    advice = "install the pinned Triton version."


class SurvivingControl(HarvestError):
    """A wrong result passed the comparison, so the test proves nothing."""

    code = "HV609"
    message = "the comparison accepts a wrong result: {detail}"
    advice = "look at the tolerance and at make_inputs()."


class MalformedFolder(HarvestError):
    """A folder is not what the tool generates."""

    code = "HV610"
    message = "{folder} is not as generated: {detail}"
    advice = "harvest the op again."


class LaunchRefused(HarvestError):
    """A launcher was given tensors, or a device, that the kernel cannot run with."""

    code = "HV611"
    message = "{detail}"
    advice = "{try_}"


class SimulatorFailed(HarvestError):
    """The KTIR simulator found a fault."""

    code = "HV612"
    message = "{simulator} stopped at {kernel}: {detail}"
    advice = "harvest simulate on the .ktir file shows the place."


class NotProved(HarvestError):
    """A tier stays open: the op has no other problem size, or a simulator stopped at what it does not
    know."""

    code = "HV613"
    message = "not shown: {detail}"
    advice = "the tier stays open; the reason says what ties the source to its size, or what is unknown."


class StaleKtir(HarvestError):
    """A folder's KTIR and its Triton source do not belong together."""

    code = "HV614"
    message = "T2: {file}:{number} has `{text}` where triton_kernel.py lowers to `{wanted}`{effect}"
    advice = "harvest the op again; `harvest lower FOLDER` prints what the source lowers to."


class StaleSource(HarvestError):
    """A folder's Triton source is not what the tool makes of its op at the traced size."""

    code = "HV615"
    message = "{file}:{number} has `{text}` where the tool, from inductor_kernel.py, makes `{wanted}`"
    advice = "harvest the op again with --force; what should stay is a change of the tool."


class NothingToValidate(HarvestError):
    """No folder of a harvested op is where evidence was asked for."""

    code = "HV616"
    message = "there is nothing to validate: {detail}"
    advice = "`harvest --model NAME --out {out}` makes folders; `harvest validate` takes a part of MODEL/OP."


class CheckStopped(HarvestError):
    """A check of a folder ended in an exception that nobody foresaw."""

    code = "HV617"
    message = "the check stopped: {detail}"
    advice = "harvest the op again; where it stays, `pytest` on the folder shows the traceback: report it."
