"""Progress on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tracer import pipeline
from tracer.errors import escaped
from tracer.harvest_op import OpResult

LINE_SECONDS = 5.0
"""Between two plain lines of one model."""


class ProgressPrinter:
    """Takes the pipeline's progress and shows it. A context manager."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._console = console
        self._quiet = quiet
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._last = 0.0
        self._said: set[str] = set()
        if console.is_terminal and not quiet:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, TextColumn("{task.fields[op]}"), console=console, transient=True)

    def __enter__(self) -> ProgressPrinter:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def started(self, model: str) -> None:
        """A model's turn has come; it is being traced."""
        if not self._bar and not self._quiet:
            self._plain(f"{model}: tracing")

    def finished(self, results: Iterable[OpResult]) -> None:
        """What went wrong with ops, each said once: not all of them are steps of the progress."""
        for result in results:
            if result.message and result.message not in self._said:
                self._said.add(result.message)
                self._plain(result.message)

    def stopped(self, sentences: Iterable[str]) -> None:
        """Phases that stopped before their end."""
        for sentence in sentences:
            self._plain(sentence)

    def __call__(self, progress: pipeline.Progress) -> None:
        """Show one step. What went wrong with an op is always said."""
        result = progress.result
        if result is not None:
            self.finished([result])
        if self._quiet:
            return
        if self._bar:
            name = result.name if result else ""
            if progress.model not in self._tasks:
                self._tasks[progress.model] = self._bar.add_task(progress.model, total=progress.total, op="")
            self._bar.update(self._tasks[progress.model], completed=progress.done, op=name)
        elif progress.done in (0, progress.total) or time.monotonic() - self._last > LINE_SECONDS:
            self._last = time.monotonic()
            self._plain(
                f"{progress.model}: {progress.done} of {progress.total} ops"
                + (f", {result.name}" if result else "")
            )

    def _plain(self, text: str) -> None:
        self._console.print(escaped(text), markup=False, highlight=False, soft_wrap=True)
