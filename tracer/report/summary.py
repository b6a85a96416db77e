"""What a harvest did, as data and as the closing table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tracer.emit.manifest import STATUSES, ModelEntry, natural
from tracer.errors import HarvestError
from tracer.pipeline import Report

SCHEMA = 1
VERBS = ("create", "update", "identical", "remove")
STAGES = ("trace", "capture", "rewrite", "lower", "emit")
SLOWEST = 5


def as_json(report: Report) -> dict[str, Any]:
    """One model's harvest for machines. Seconds are wall-clock, stages are summed over processes."""
    statuses = _statuses(report)
    return {
        "schema": SCHEMA,
        "model": report.model,
        "error": None,
        "interrupted": report.interrupted,
        "options": dict(report.entry.options),
        "unreached": list(report.entry.unreached),
        "adapted": list(report.entry.adapted),
        "failures": {phase: dict(why) for phase, why in report.entry.failures.items()},
        "calls": _calls(report),
        "ops": {status: statuses[status] for status in STATUSES},
        "files": _verbs(report),
        "resumed": report.resumed,
        "seconds": {
            "total": round(report.wall, 3),
            **{stage: round(report.seconds[stage], 3) for stage in STAGES if stage in report.seconds},
        },
        "slowest": [{"op": name, "seconds": round(seconds, 3)} for name, seconds in report.slowest[:SLOWEST]],
        "not_ok": [
            {"op": name, "status": op.status, "code": op.code, "reason": op.reason, "calls": op.calls}
            for name, op in sorted(report.ran.items(), key=lambda pair: natural(pair[0]))
            if op.status not in ("ok", "view")
        ],
        "changes": [
            {"verb": change.verb, "path": change.path}
            for change in report.changes
            if change.verb != "identical"
        ],
    }


def refusal_json(model: str, error: HarvestError) -> dict[str, Any]:
    """A model that was refused, with the keys of `as_json`: nothing came of it, and `error` says why.

    `model` is as it was asked for: whether there is one of that name may be the very question.
    """
    data = as_json(Report(model, ModelEntry("", {}, {})))
    return {**data, "error": {"code": error.code, "message": str(error)}}


def table(reports: Sequence[Report]) -> RenderableType:
    """The closing table: a row a model with its calls and how its distinct ops ended, then why ops are not
    ok, then where the time went."""
    parts: list[RenderableType] = [_models(reports)]
    if reasons := _reasons(reports):
        parts.append(reasons)
    for report in reports:
        verbs = ", ".join(f"{count} {verb}" for verb, count in _verbs(report).items() if count)
        parts += [Text(f"{report.model}: files: {verbs or 'none'}"), Text(_times(report))]
    parts += [
        Text(f"{report.model}: phase {phase} stopped early: {why['code']} {why['reason']}")
        for report in reports
        for phase, why in report.entry.failures.items()
    ]
    parts += [
        Text(f"{report.model}: no phase uses the parameters of {', '.join(report.entry.unreached)}")
        for report in reports
        if report.entry.unreached
    ]
    parts += [Text(f"{report.model}: {clause}") for report in reports for clause in report.entry.adapted]
    parts += [
        Text(f"{report.model}: interrupted; what is finished stays, run the same command again to go on.")
        for report in reports
        if report.interrupted
    ]
    return Group(*parts)


def tracebacks(report: Report) -> list[str]:
    """For `--debug`: the traceback of every op that did not become a kernel, or how to get it."""
    found = [f"{result.name}\n{result.trace}" for result in report.results if result.trace]
    settled = {result.name for result in report.results}
    earlier = [n for n, op in report.ran.items() if op.status not in ("ok", "view") and n not in settled]
    if earlier:
        names = ", ".join(sorted(earlier, key=natural))
        found.append(
            f"{report.model}: an earlier run settled {names}; --force makes them again, with tracebacks."
        )
    return found


def _models(reports: Sequence[Report]) -> Table:
    found = Table(box=None, pad_edge=False)
    found.add_column("model", overflow="fold")
    for column in ("calls", "ops", *STATUSES, "seconds"):
        found.add_column(column, justify="right", no_wrap=True)
    for report in reports:
        statuses = _statuses(report)
        counts = [_calls(report)["total"], statuses.total(), *(statuses[status] for status in STATUSES)]
        found.add_row(Text(report.model), *(str(count) for count in counts), f"{report.wall:.1f}")
    return found


def _reasons(reports: Sequence[Report]) -> Table | None:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for report in reports:
        for name, op in sorted(report.ran.items(), key=lambda pair: natural(pair[0])):
            if op.status not in ("ok", "view"):
                groups.setdefault((op.status, op.code, op.reason), []).append(name)
    if not groups:
        return None
    found = Table(box=None, pad_edge=False)
    for column in ("status", "code", "ops", "first", "reason"):
        found.add_column(column, justify="right" if column == "ops" else "left")
    for (status, code, reason), names in sorted(groups.items(), key=lambda item: -len(item[1])):
        found.add_row(status, Text(code), str(len(names)), Text(names[0]), Text(reason))
    return found


def _times(report: Report) -> str:
    stages = ", ".join(f"{stage} {report.seconds[stage]:.1f}" for stage in STAGES if stage in report.seconds)
    slowest = ", ".join(f"{name} {seconds:.1f}" for name, seconds in report.slowest[:SLOWEST])
    resumed = f"; {report.resumed} ops were finished before" if report.resumed else ""
    return f"{report.model}: seconds by stage: {stages}{f'; slowest: {slowest}' if slowest else ''}{resumed}"


def _calls(report: Report) -> dict[str, int]:
    found: Counter[str] = Counter()
    for op in report.ran.values():
        found[op.status] += op.calls
    return {**{status: found[status] for status in STATUSES}, "total": found.total()}


def _statuses(report: Report) -> Counter[str]:
    return Counter(op.status for op in report.ran.values())


def _verbs(report: Report) -> dict[str, int]:
    counts: Counter[str] = Counter(change.verb for change in report.changes)
    return {verb: counts[verb] for verb in VERBS}
