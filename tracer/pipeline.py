"""One model through all of it: resolve, trace, every op, folders, registry. Prints nothing.

Nothing is lost when a run is cut short: each folder is in place as soon as its op is done, the journal says
so, and a second run takes up the rest. The registry is written at the end, and when a run is interrupted.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib.metadata
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracer import workers
from tracer.emit import folder, manifest
from tracer.emit.digest import digest, files_digest, read_digests, tool_digest
from tracer.emit.errors import EditedFile
from tracer.emit.folder import Change
from tracer.emit.journal import Finished, Journal
from tracer.emit.manifest import Entry, ModelEntry
from tracer.emit.naming import folder_name
from tracer.errors import HarvestError
from tracer.harvest_op import OpResult, OpTask, harvest_op, lost
from tracer.target import SPYRE, SpyreTarget

if TYPE_CHECKING:
    from tracer.models.config import ModelConfig
    from tracer.models.record import RecordedOp
    from tracer.models.trace import Trace

DTYPES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
PINNED = ("torch", "triton", "transformers", "xdsl")


@dataclass(frozen=True)
class Options:
    """What to harvest and where to. Lengths are in tokens, `timeout` in seconds per op (0: none)."""

    out: Path = Path("harvested")
    dtype: str = "fp16"
    seq_len: int = 12
    batch: int = 1
    max_cache_len: int = 2048
    phases: tuple[str, ...] | None = None
    layers: int | None = None
    only: str | None = None
    jobs: int = 1
    dry_run: bool = False
    force: bool = False
    offline: bool = False
    timeout: float = 300.0
    target: SpyreTarget = SPYRE

    @property
    def complete(self) -> bool:
        """Whether the run sees all of the model, so that what it does not see is gone."""
        return self.only is None and self.layers is None and self.phases is None

    def to_json(self, phases: Sequence[str]) -> dict[str, Any]:
        """What the registry says about how a model was traced; `phases` are those that were run."""
        kept: dict[str, Any] = {
            "dtype": self.dtype,
            "seq_len": self.seq_len,
            "batch": self.batch,
            "max_cache_len": self.max_cache_len,
            "phases": list(phases),
        }
        return kept if self.layers is None else {**kept, "layers": self.layers}


@dataclass(frozen=True)
class Progress:
    """What a run reports: `done` of `total` ops, and the op that has just ended (None at the start)."""

    model: str
    done: int
    total: int
    result: OpResult | None = None
    resumed: bool = False


@dataclass
class Report:
    """What became of one model. `seconds` is the time of each stage, summed over processes."""

    model: str
    entry: ModelEntry
    changes: list[Change] = field(default_factory=list)
    results: list[OpResult] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    ran: dict[str, Entry] = field(default_factory=dict)
    """The ops that this run settled; the registry may keep more from before."""
    resumed: int = 0
    interrupted: bool = False
    stopped: tuple[str, ...] = ()
    """A sentence for every phase that stopped before its end."""
    wall: float = 0.0

    @property
    def slowest(self) -> list[tuple[str, float]]:
        """Ops by time, longest first."""
        totals = [(result.name, sum(result.seconds.values())) for result in self.results if result.seconds]
        return sorted(totals, key=lambda pair: -pair[1])


def harvest_model(
    model_id: str,
    options: Options = Options(),
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Report:
    """Harvest one model into `options.out`.

    Raises:
        HarvestError: the model cannot be resolved or traced, `options.only` leaves nothing of it, or the
        output cannot be written. What happens to a single op never raises; it is the op's status.
    """
    started = time.perf_counter()
    registry = manifest.read(options.out)
    from tracer.models.config import resolve

    config = resolve(model_id, offline=options.offline)
    if not options.dry_run:
        # Known now rather than after the work: whether the output can be written at all.
        manifest.state(options.out)
        folder.clear_staging(options.out)
    clock = time.perf_counter()
    traced = _trace(config, options)
    workers.check_interruption()
    run = _Run(config, options, traced, registry.get(config.safe_name), on_progress)
    run.report.seconds["trace"] = time.perf_counter() - clock
    with Journal(options.out, config.safe_name, read_only=options.dry_run) as journal:
        run.harvest(traced.ops, journal)
    run.report.wall = time.perf_counter() - started
    return run.report


def _trace(config: ModelConfig, options: Options) -> Trace:
    import torch

    from tracer.models.trace import trace

    return trace(
        config,
        dtype=getattr(torch, DTYPES[options.dtype]),
        seq_len=options.seq_len,
        batch=options.batch,
        max_cache_len=options.max_cache_len,
        phases=options.phases,
        layers=options.layers,
    )


class _Run:
    """The state of one model's harvest."""

    def __init__(
        self,
        config: ModelConfig,
        options: Options,
        traced: Trace,
        before: ModelEntry | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self.config = config
        self.options = options
        self.before: Mapping[str, Entry] = before.ops if before else {}
        self.numbered = before.names if before else {}
        self.reserved: dict[str, str] = {}
        self.on_progress = on_progress
        self.model = config.safe_name
        self.root = options.out / self.model
        self.entries: dict[str, Entry] = {}
        self.failures = traced.failures
        failures = {
            str(failure.fields["phase"]): {"code": failure.code, "reason": failure.reason}
            for failure in traced.failures
        }
        # A phase that stopped was run, too: what it did up to there is among the ops.
        settings = options.to_json(list(dict.fromkeys([*traced.phases, *failures])))
        self.report = Report(
            self.model,
            ModelEntry(
                config.digest,
                settings,
                self.entries,
                failures,
                self.reserved,
                traced.unreached,
                traced.adapted,
            ),
            stopped=tuple(str(failure) for failure in traced.failures),
        )
        self.tool = tool()

    def harvest(self, ops: Sequence[RecordedOp], journal: Journal) -> None:
        """All ops, then the registry; the registry too when the run is interrupted."""
        names = self._names(ops)
        chosen = [op for op in ops if self._wanted(names[op.call.identity])]
        if ops and not chosen:
            if self.failures:
                # The pattern may well be right, and the op come after the end of the phase.
                raise self.failures[0]
            raise _unmatched(self.model, str(self.options.only), names.values())
        try:
            self._settle_without_kernel(chosen, names)
            self._make(self._tasks(chosen, names), journal)
        except KeyboardInterrupt:
            self.report.interrupted = True
        if not self.report.interrupted:
            self.report.entry.check(self.model, sum(op.count for op in chosen))
        self.report.ran = dict(self.entries)
        gone = {name: entry for name, entry in self.before.items() if name not in self.entries}
        if self.options.complete and not self.report.interrupted:
            for name, entry in gone.items():
                self._vanish(name, entry, journal)
        else:
            self.entries.update(gone)
        if not self.options.dry_run:
            with workers.uninterrupted():
                self._write_registry()

    def _names(self, ops: Sequence[RecordedOp]) -> dict[str, str]:
        from tracer.models.record import number

        names = number((op.call for op in ops), self.numbered)
        # An op that this run does not come to keeps its number, as if all had been made at once.
        kept = {} if self.options.complete else self.numbered
        self.reserved |= {name: identity for identity, name in {**kept, **names}.items()}
        return names

    def _wanted(self, name: str) -> bool:
        pattern = self.options.only
        return pattern is None or pattern in name or fnmatch.fnmatchcase(name, pattern)

    def _settle_without_kernel(self, ops: Sequence[RecordedOp], names: Mapping[str, str]) -> None:
        for op in ops:
            name = names[op.call.identity]
            if op.refusal is not None:
                op.refusal.op = op.refusal.op or name
                result = OpResult(
                    name, "refused", op.refusal.code, op.refusal.reason, message=str(op.refusal)
                )
                self.report.results.append(result)
                self.entries[name] = _entry(op, result.status, code=result.code, reason=result.reason)
            elif op.kind == "view":
                self.entries[name] = _entry(op, "view")

    def _tasks(
        self, ops: Sequence[RecordedOp], names: Mapping[str, str]
    ) -> dict[str, tuple[OpTask, RecordedOp]]:
        tasks = {}
        for op in ops:
            name = names[op.call.identity]
            if name not in self.entries:
                tasks[name] = (
                    OpTask(
                        name,
                        self.model,
                        op.call,
                        op.count,
                        op.phases,
                        op.modules,
                        self.options.target,
                        self.options.timeout,
                    ),
                    op,
                )
        return tasks

    def _make(self, tasks: Mapping[str, tuple[OpTask, RecordedOp]], journal: Journal) -> None:
        total = len(tasks)
        self.on_progress(Progress(self.model, 0, total))
        todo: list[OpTask] = []
        for name, (task, op) in tasks.items():
            finished = journal.finished.get(name)
            if finished is None or self.options.force or not self._is_done(task, finished):
                todo.append(task)
                continue
            self.report.resumed += 1
            result = OpResult(name, finished.status, finished.code, finished.reason, finished.stages)
            self.entries[name] = self._made(op, result, finished.files)
            self.report.changes += [
                Change("identical", f"{self.model}/{folder_name(name)}/{file}") for file in finished.files
            ]
            self.on_progress(Progress(self.model, self.report.resumed, total, result, resumed=True))
        results = workers.run(harvest_op, todo, self.options.jobs, lost=lost)
        for done, (task, result) in enumerate(zip(todo, results, strict=True), self.report.resumed + 1):
            with workers.uninterrupted():
                result = self._place(task, result, tasks[task.name][1], journal)
                self.report.results.append(result)
            for stage, seconds in result.seconds.items():
                self.report.seconds[stage] = self.report.seconds.get(stage, 0.0) + seconds
            self.on_progress(Progress(self.model, done, total, result))

    def _is_done(self, task: OpTask, finished: Finished) -> bool:
        if finished.key != task.key(self.tool):
            return False
        present = read_digests(self.root / folder_name(task.name))
        return all(present.get(name) == found for name, found in finished.files.items())

    def _place(self, task: OpTask, result: OpResult, op: RecordedOp, journal: Journal) -> OpResult:
        """Write the op's folder, or remove an earlier one, and enter the op."""
        known = self._known(task.name, journal)
        start = time.perf_counter()
        digests = result.file_digests
        try:
            if result.files:
                changes = folder.write(
                    self.options.out,
                    self.root / folder_name(task.name),
                    result.files,
                    known,
                    force=self.options.force,
                    dry_run=self.options.dry_run,
                )
                self.report.changes += changes
            else:
                self._remove(task.name, known, journal)
        except EditedFile as error:
            error.op = task.name
            result = replace(
                result,
                status="refused",
                code=error.code,
                reason=error.reason,
                files={},
                message=str(error),
                stages=(),
            )
            earlier = self.before.get(task.name)
            self.entries[task.name] = replace(
                _entry(op, "refused", code=error.code, reason=error.reason),
                digest=earlier.digest if earlier else "",
                files=earlier.files if earlier else known,
                tiers=earlier.tiers if earlier else {},
            )
            return result
        seconds = {**result.seconds, "emit": result.seconds.get("emit", 0.0) + time.perf_counter() - start}
        if result.settled:
            end = Finished(
                task.key(self.tool), result.status, result.code, result.reason, result.stages, digests
            )
            journal.add(task.name, end)
        self.entries[task.name] = self._made(op, result, digests)
        return replace(result, seconds=seconds)

    def _made(self, op: RecordedOp, result: OpResult, files: Mapping[str, str]) -> Entry:
        entry = _entry(op, result.status, code=result.code, reason=result.reason)
        earlier = self.before.get(result.name)
        if not files:
            return entry
        # Evidence is carried along: it names the digest it was taken on, so that it shows when it is stale.
        tiers = earlier.tiers if earlier else {}
        return replace(
            entry, digest=files_digest(files), files=dict(files), stages=result.stages, tiers=tiers
        )

    def _known(self, name: str, journal: Journal) -> Mapping[str, str]:
        if (finished := journal.finished.get(name)) and finished.files:
            return finished.files
        return self.before[name].files if name in self.before else {}

    def _remove(self, name: str, known: Mapping[str, str], journal: Journal) -> None:
        target = self.root / folder_name(name)
        self.report.changes += folder.remove(
            self.options.out, target, known, force=self.options.force, dry_run=self.options.dry_run
        )
        journal.forget(name)

    def _vanish(self, name: str, entry: Entry, journal: Journal) -> None:
        try:
            self._remove(name, entry.files, journal)
        except EditedFile as error:
            error.op = name
            self.entries[name] = replace(
                entry, status="refused", calls=0, code=error.code, reason=error.reason
            )
            self.report.results.append(
                OpResult(name, "refused", error.code, error.reason, message=str(error))
            )

    def _join(self, now: Mapping[str, Entry]) -> None:
        """Take over what another command has entered since this one began: evidence, and ops that it made."""
        for name, entry in now.items():
            mine = self.entries.get(name)
            if mine is not None and mine.files:
                self.entries[name] = replace(mine, tiers=entry.tiers)
            elif mine is None and name not in self.before:
                self.entries[name] = entry

    def _write_registry(self) -> None:
        with manifest.locked(self.options.out):
            registry = manifest.read(self.options.out)
            if self.model in registry:
                self._join(registry[self.model].ops)
            registry[self.model] = self.report.entry
            manifest.write(self.options.out, registry)


def _entry(op: RecordedOp, status: manifest.Status, code: str = "", reason: str = "") -> Entry:
    return Entry(status, op.call.identity, op.count, op.phases, op.modules, code=code, reason=reason)


def _unmatched(model: str, pattern: str, names: Iterable[str]) -> HarvestError:
    from tracer.models.errors import UnmatchedPattern

    functions = {name.rpartition(".")[0] for name in names}
    by_end = {name.rpartition(".")[2]: name for name in functions}
    wanted = pattern.lower().strip(".*?0123456789").rpartition(".")[2]
    close = difflib.get_close_matches(wanted, by_end, n=3, cutoff=0.6)
    near = f"near to it: {', '.join(by_end[end] for end in close)}" if close else ""
    if not near:
        near = f"it calls {', '.join(sorted(by_end))}"
    return UnmatchedPattern(model=model, pattern=pattern, near=near)


def tool() -> str:
    """Digest of the tool and of everything pinned: what a run that is taken up again must agree in."""
    return digest(" ".join([tool_digest(), *(f"{name}={_version(name)}" for name in PINNED)]))


def _version(name: str) -> str:
    with suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return "absent"
