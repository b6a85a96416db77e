"""The `harvest` command. Only this module prints; what it shows is made in `report/`.

Exit codes: 0 all well, 1 an op has no kernel or a check failed, 2 interrupted, 3 internal error, 4 usage,
5 nothing harvested.
Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

import tracer
from tracer.errors import HarvestError, escaped

if TYPE_CHECKING:
    from tracer.pipeline import Options, Report


class Exit(IntEnum):
    """Exit codes of the command."""

    OK = 0
    FAILED = 1
    INTERRUPTED = 2
    INTERNAL = 3
    USAGE = 4
    NOTHING = 5


class Dtype(StrEnum):
    """Dtypes that a model is built in."""

    FP16 = "fp16"
    BF16 = "bf16"
    FP32 = "fp32"


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What the option parser raises for a wrong command line; typer has no public name for it."""

INTERRUPTED_BY_PARSER = 130
"""What the option parser makes of a Ctrl-C."""

USAGE_CODES = ("HV101", "HV102", "HV103", "HV104", "HV107", "HV108", "HV112", "HV114", "HV5", "HV9")
"""Refusals that concern what the user gave; others mean that nothing could be harvested."""

EPILOG = """Examples:

harvest --model Meta-Llama-3.1-8B-Instruct

harvest --model granite --layers 2 --out elsewhere --jobs 2

harvest --model ./my-model --only 'torch.nn.functional.*' --dry-run --json"""

app = typer.Typer(
    name="harvest", add_completion=True, no_args_is_help=False, pretty_exceptions_enable=False, epilog=EPILOG
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        def known(name: str) -> str:
            try:
                return version(name)
            except PackageNotFoundError:
                return "absent"

        others = ", ".join(f"{name} {known(name)}" for name in ("torch", "triton", "transformers", "xdsl"))
        typer.echo(f"harvest {tracer.__version__} ({others})")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def harvest(
    context: typer.Context,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Hub id, local path, bundled preset or transformers model_type; may be repeated."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Output directory.")] = Path("harvested"),
    dtype: Annotated[Dtype, typer.Option(help="Dtype of the model.")] = Dtype.FP16,
    seq_len: Annotated[int, typer.Option(min=1, help="Tokens of the prefill.")] = 12,
    batch: Annotated[int, typer.Option(min=1, help="Sequences at a time.")] = 1,
    max_cache_len: Annotated[int, typer.Option(min=1, help="Tokens that the static cache holds.")] = 2048,
    phases: Annotated[
        str | None,
        typer.Option(
            help="Phases to trace, separated by commas: prefill and decode of a model that generates, forward"
            " of another, and nested models that these do not reach by the names of their modules.",
            show_default="all",
        ),
    ] = None,
    layers: Annotated[int | None, typer.Option(min=1, help="Keep only the first N layers.")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Only ops whose name holds or matches PATTERN.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes; the result is the same.")] = 1,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds for one op; 0 is no limit.")] = 300.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do everything but write.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a model on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only errors.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Make everything again; overwrite edited files.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Never ask the network.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Show versions.")
    ] = False,
) -> None:
    """Harvest the kernels of Hugging Face models for IBM Spyre: one folder for every distinct op."""
    if debug:
        os.environ["HARVEST_DEBUG"] = "1"
    if context.invoked_subcommand is not None:
        return
    if not model:
        raise UsageError("option --model is missing; it says what to harvest", context)
    if only is not None and not only.strip():
        raise typer.BadParameter("it names none", context, param_hint="--only")
    wanted = None
    if phases is not None:
        wanted = tuple(dict.fromkeys(phase.strip() for phase in phases.split(",") if phase.strip()))
        if not wanted:
            raise typer.BadParameter("it names none", context, param_hint="--phases")
    from tracer.pipeline import Options

    options = Options(
        out=out,
        dtype=dtype.value,
        seq_len=seq_len,
        batch=batch,
        max_cache_len=max_cache_len,
        phases=wanted,
        layers=layers,
        only=only,
        jobs=jobs,
        dry_run=dry_run,
        force=force,
        offline=offline,
        timeout=timeout,
    )
    raise typer.Exit(_harvest(model, options, as_json=as_json, quiet=quiet))


def _harvest(models: list[str], options: Options, *, as_json: bool, quiet: bool) -> int:
    from rich.console import Console

    from tracer import workers
    from tracer.pipeline import harvest_model
    from tracer.report.progress import ProgressPrinter
    from tracer.report.summary import as_json as summary_json
    from tracer.report.summary import refusal_json, table, tracebacks

    errors = Console(stderr=True)
    reports: list[Report] = []
    codes: list[int] = []
    with workers.interruptible(), ProgressPrinter(errors, quiet) as progress:
        for model in models:
            progress.started(model)
            try:
                done = harvest_model(model, options, progress)
            except HarvestError as error:
                codes.append(_refuse(error))
                if as_json:
                    typer.echo(json.dumps(refusal_json(model, error)))
                continue
            reports.append(done)
            codes.append(_code(done))
            progress.stopped(done.stopped)
            progress.finished(done.results)
            if _debug():
                for text in tracebacks(done):
                    errors.print(text, markup=False, highlight=False, soft_wrap=True)
            if as_json:
                typer.echo(json.dumps(summary_json(done)))
            if done.interrupted:
                break
    if reports and not quiet and not as_json:
        Console().print(table(reports))
    return _worst(codes)


def _code(report: Report) -> int:
    if report.interrupted:
        return Exit.INTERRUPTED
    statuses = {op.status for op in report.ran.values()} | {result.status for result in report.results}
    if "ok" not in statuses:
        return Exit.NOTHING
    return Exit.OK if statuses <= {"ok", "view"} and not report.entry.failures else Exit.FAILED


def _worst(codes: list[int]) -> int:
    order = (Exit.INTERRUPTED, Exit.INTERNAL, Exit.USAGE, Exit.NOTHING, Exit.FAILED)
    return next((code for code in order if code in codes), Exit.OK)


def _refuse(error: HarvestError) -> int:
    if _debug():
        traceback.print_exc()
    # Diagnostics of KTIR show a line of its file below the sentence.
    typer.echo(str(error) if error.code.startswith("KT") else escaped(str(error)), err=True)
    if error.code.startswith("KT"):
        return Exit.FAILED
    return Exit.USAGE if error.code.startswith(USAGE_CODES) else Exit.NOTHING


def _usage(error: Exception) -> HarvestError:
    """What the option parser says, as one sentence with a code."""
    from tracer.report.errors import WrongCommandLine

    said = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "harvest"
    return WrongCommandLine(detail=said.replace("Value error, ", ""), command=command)


def _debug() -> bool:
    return os.environ.get("HARVEST_DEBUG", "") not in ("", "0")


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="The checks as JSON.")] = False) -> None:
    """Check versions, templates, and every private name that capture relies on."""
    from tracer.report.doctor import examine

    checks = examine()
    if as_json:
        typer.echo(json.dumps([{"name": c.name, "ok": c.ok, "detail": c.detail} for c in checks]))
    else:
        for check in checks:
            typer.echo(f"{'ok ' if check.ok else 'BAD'}  {check.name}: {check.detail}")
    raise typer.Exit(Exit.OK if all(check.ok for check in checks) else Exit.FAILED)


class Pipeline(StrEnum):
    """What the latency model overlaps."""

    SERIAL = "serial"
    OVERLAPPED = "overlapped"
    OVERLAPPED_3WAY = "overlapped_3way"


class Mode(StrEnum):
    """Whose arithmetic and whose costs."""

    STRICT = "strict"
    KTIR_CPU = "ktir_cpu"


class Part(StrEnum):
    """Files of a folder that `harvest show` prints."""

    INDUCTOR = "inductor"
    TRITON = "triton"
    WRAPPER = "wrapper"
    KTIR = "ktir"
    TEST = "test"
    ENTRY = "entry"


@app.command()
def show(
    op: Annotated[str, typer.Argument(help="Name of an op, or a part of it.")],
    part: Annotated[
        Part, typer.Option("--stage", "-s", help="What to print; `entry` is what kernels.json says.")
    ] = Part.TRITON,
    model: Annotated[str | None, typer.Option(help="Only ops of this model.")] = None,
    out: Annotated[Path, typer.Option(help="Output directory.")] = Path("harvested"),
) -> None:
    """Print what a stage made of an op."""
    from tracer.report.show import find, text

    for found in find(out, op, model):
        typer.echo(text(out, found, part.value), nl=False)


@app.command()
def lower(
    file: Annotated[Path, typer.Argument(help="A folder, or the triton_kernel.py in it.")],
    kernel: Annotated[str | None, typer.Option(help="Only the kernel of this name.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="Another size, stride or block.")
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Another number of programs.")] = None,
) -> None:
    """Lower the Triton kernels of a folder again, as traced or at other values, and print their KTIR."""
    from tracer.lower import lower as lower_kernel
    from tracer.report.relower import kernels_at
    from tracer.report.show import kernel_folder
    from tracer.target import SPYRE

    kernels = {found.name: found for found in kernels_at(kernel_folder(file), arg or [], cores)}
    if kernel is not None and kernel not in kernels:
        raise typer.BadParameter(f"choose from {', '.join(kernels)}", param_hint="--kernel")
    for name, found in kernels.items():
        if kernel in (None, name):
            typer.echo(lower_kernel(found, SPYRE).text, nl=False)


@app.command()
def lint(
    files: Annotated[list[Path], typer.Argument(help="KTIR files.")],
    as_json: Annotated[bool, typer.Option("--json", help="The findings as JSON.")] = False,
) -> None:
    """Check KTIR files and say what is wrong, by file, line and column.

    Exit codes: 0 with nothing but warnings, 1 after an error, 4 for a wrong command line or a missing file.
    """
    from tracer.report.run_ktir import lint as find

    findings = find(files)
    if as_json:
        typer.echo(json.dumps([finding.to_json() for finding in findings]))
    else:
        for finding in findings:
            typer.echo(str(finding))
    raise typer.Exit(Exit.FAILED if any(finding.severity == "error" for finding in findings) else Exit.OK)


@app.command()
def simulate(
    file: Annotated[Path, typer.Argument(help="A KTIR file.")],
    function: Annotated[str | None, typer.Option(help="Function, where the file has several.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="f16[12,64], a number or a file.")
    ] = None,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS=VALUE",
            help="As --arg, for a literal element address; CORE:ADDRESS=VALUE for that core's scratchpad.",
        ),
    ] = None,
    uninitialized: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="An output that must be written whole, and not be read before."),
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, max=32, help="Cores instead of the grid's.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of arguments that are made up.")] = 0,
    trace: Annotated[bool, typer.Option("--trace", help="A line for every executed operation.")] = False,
    latency: Annotated[bool, typer.Option("--latency", help="Cycles by the latency model.")] = False,
    pipeline: Annotated[Pipeline, typer.Option(help="What overlaps in the latency model.")] = Pipeline.SERIAL,
    mode: Annotated[Mode, typer.Option(help="`ktir_cpu` imitates the public simulator.")] = Mode.STRICT,
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Operations in loops that a core may execute.", show_default="a hundred million"
        ),
    ] = None,
    roofline: Annotated[
        Path | None, typer.Option(help="Write the roofline plot (SVG or PNG; needs matplotlib).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The outcome as JSON.")] = False,
) -> None:
    """Run a KTIR file on the built-in simulator, with its sanitizer on, after the checks that `lint` makes.

    Exit codes: 0 with nothing but warnings, 1 after an error, 4 for a wrong command line or a missing file.
    """
    from tracer.report.run_ktir import save_roofline
    from tracer.report.run_ktir import simulate as run

    wanted = pipeline.value if latency or roofline else None
    outcome = run(
        file,
        function,
        arg or (),
        cores,
        seed,
        memory=memory or (),
        uninitialized=uninitialized or (),
        trace=trace,
        pipeline=wanted,
        mode=mode.value,
        max_steps=max_steps,
    )
    if roofline and outcome.latency:
        save_roofline(outcome, roofline)
    if as_json:
        typer.echo(json.dumps(outcome.to_json()))
    else:
        for line in outcome.lines():
            typer.echo(line)
    raise typer.Exit(Exit.FAILED if any(d.severity == "error" for d in outcome.diagnostics) else Exit.OK)


@app.command()
def validate(
    pattern: Annotated[str, typer.Argument(help="Part of MODEL/OP; all if absent.")] = "",
    out: Annotated[Path, typer.Option(help="Output directory.")] = Path("harvested"),
    full_size: Annotated[
        bool, typer.Option("--full-size", help="Huge ops at their traced size, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The evidence as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only failures.")] = False,
) -> None:
    """Take the evidence of harvested folders (tiers T0 to T2) and enter it in kernels.json.

    An op is well when T0, T2 and the negative controls passed. T1 may be skipped with a reason where the op
    has no other problem size, and so may the public simulator; what failed, or must not be skipped, makes
    the exit code 1.
    """
    from tracer import workers
    from tracer.evidence_run import Evidence, validate_tree

    def show_evidence(evidence: Evidence, done: int, total: int) -> None:
        for failure in evidence.failed:
            typer.echo(f"{evidence.model}/{evidence.op}: {failure}", err=True)
        if not quiet:
            skips = "".join(f" ({skip})" for skip in evidence.skipped)
            typer.echo(f"{done} of {total}: {evidence.model}/{evidence.op}{skips}", err=True)

    with workers.interruptible():
        found = validate_tree(out, pattern, full_size=full_size, on_evidence=show_evidence)
    if as_json:
        typer.echo(json.dumps([{"model": e.model, "op": e.op, "tiers": e.tiers} for e in found]))
    raise typer.Exit(Exit.FAILED if any(evidence.failed for evidence in found) else Exit.OK)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and exit with one of `Exit`."""
    try:
        code = app(args=arguments, prog_name="harvest", standalone_mode=False)
        if code == INTERRUPTED_BY_PARSER:
            raise KeyboardInterrupt
    except UsageError as error:
        code = _refuse(_usage(error))
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("interrupted; run the same command again to go on.", err=True)
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = Exit.OK
    except HarvestError as error:
        code = _refuse(error)
    except Exception as error:
        if _debug():
            traceback.print_exc()
        typer.echo(
            f"internal error: {type(error).__name__}: {error}. Try: --debug shows the traceback; report it.",
            err=True,
        )
        code = Exit.INTERNAL
    # CPython ends a `python -m` by SIGINT, whatever its exit code, where the last string of code that was
    # executed, as an import from C++ executes one, was interrupted.
    exec("")
    sys.exit(int(code or 0))


if __name__ == "__main__":
    main()
