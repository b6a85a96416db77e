"""One op through capture, rewrite, lowering and rendering: from a recorded call to the text of its folder."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from tracer.emit.digest import digest, files_digest
from tracer.emit.errors import Timeout
from tracer.emit.manifest import Status
from tracer.errors import HarvestError
from tracer.models.op_call import OpCall
from tracer.target import SPYRE, SpyreTarget
from tracer.workers import time_limit

STAGES = ("capture", "rewrite", "lower", "emit")


@dataclass(frozen=True)
class OpTask:
    """One compute op to be made: its name, its call, and what its wrapper says about where it occurs."""

    name: str
    model: str
    call: OpCall
    calls: int
    phases: tuple[str, ...]
    modules: tuple[str, ...]
    target: SpyreTarget = SPYRE
    timeout: float = 0.0

    def key(self, tool: str) -> str:
        """Digest of everything that the result depends on; `tool` is the digest of the tool and all
        versions."""
        parts = (
            self.name,
            self.model,
            self.call.identity,
            self.calls,
            self.phases,
            self.modules,
            self.target,
            tool,
        )
        return digest("\n".join(repr(part) for part in parts))


@dataclass(frozen=True)
class OpResult:
    """What became of an op. `files` is the text of its folder, `seconds` the time of each stage that ran."""

    name: str
    status: Status
    code: str = ""
    reason: str = ""
    stages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
    """The whole sentence for people: code, op, reason, source line, advice."""
    trace: str = ""
    settled: bool = True
    """Whether another run would end so as well, and need not try."""

    @property
    def file_digests(self) -> dict[str, str]:
        """Digest of every file, by name."""
        return {name: digest(text) for name, text in self.files.items()}

    @property
    def digest(self) -> str:
        """Digest of the folder; empty where there is none."""
        return files_digest(self.file_digests) if self.files else ""


class _Stopwatch:
    def __init__(self) -> None:
        self.stage = STAGES[0]
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self.stage = stage
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start


def harvest_op(task: OpTask) -> OpResult:
    """Make the folder of one op. Never raises for what the op does: every end is a status.

    A refusal is `refused` with its code, an op that Inductor leaves to a library `extern`, anything else that
    goes wrong `failed` with the stage. An op that needs no kernel is a `view`.
    """
    watch = _Stopwatch()
    try:
        with time_limit(task.timeout, Timeout(op=task.name, seconds=f"{task.timeout:g}")):
            return _harvest(task, watch)
    except HarvestError as error:
        # A stage knows the kernel; a person looks for the op.
        error.op = f"{task.name} ({error.op})" if error.op and error.op != task.name else task.name
        status, code = _status(error, watch.stage)
        return OpResult(
            task.name,
            status,
            code,
            error.reason,
            seconds=watch.seconds,
            message=str(error),
            trace=traceback.format_exc(),
            settled=error.settled,
        )
    except Exception as error:
        reason = f"{type(error).__name__}: {_one_line(error)}"
        message = f"{task.name}: {watch.stage} failed with {reason}. Try: --debug, and report the op."
        return OpResult(
            task.name,
            "failed",
            watch.stage,
            reason,
            seconds=watch.seconds,
            message=message,
            trace=traceback.format_exc(),
            settled=False,
        )


def lost(task: OpTask) -> OpResult:
    """The result of an op whose process died."""
    reason = "the process that worked on it died"
    message = f"{task.name}: {reason}. Try: report the op."
    return OpResult(task.name, "failed", "process", reason, message=message, settled=False)


def _harvest(task: OpTask, watch: _Stopwatch) -> OpResult:
    # Imported where they are used: they bring in torch and Triton, which no other command needs.
    with watch("capture"):
        from tracer.capture import capture

        captured = capture(task.call, task.target)
    if not captured.kernels:
        return OpResult(task.name, "view", seconds=watch.seconds)
    with watch("rewrite"):
        from tracer.emit.naming import unique_kernels
        from tracer.rewrite import rewrite

        kernels = unique_kernels(rewrite(captured, task.target))
    with watch("lower"):
        from tracer.lower import lower

        lowered = {
            kernel.name: lower(kernel, task.target) for kernel in {k.name: k for k in kernels}.values()
        }
        ktirs = tuple(lowered[kernel.name] for kernel in kernels)
    with watch("emit"):
        from tracer.emit.render import OpRecord, render_folder

        record = OpRecord(
            task.name,
            task.model,
            captured,
            kernels,
            ktirs,
            task.calls,
            task.phases,
            task.modules,
            task.target,
        )
        files = render_folder(record)
    return OpResult(
        task.name, "ok", stages=tuple(kernel.name for kernel in kernels), files=files, seconds=watch.seconds
    )


def _status(error: HarvestError, stage: str) -> tuple[Status, str]:
    from tracer.capture.errors import ExternKernel

    if isinstance(error, ExternKernel):
        return "extern", str(error.fields.get("aten_ops", error.code))
    if isinstance(error, Timeout):
        return "failed", stage
    return "refused", error.code


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else "no message").rstrip(".")[:300]
