"""What a run has finished, op by op, so that a run that was cut short is taken up where it stopped.

One JSON line an op, appended as soon as its folder is in place. The journal is a cache beside the product:
without it a harvest does everything again and gets the same bytes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from tracer.emit.errors import UnwritableFolder
from tracer.emit.manifest import STATE, Status, state, write_text


@dataclass(frozen=True)
class Finished:
    """How an op ended. `key` is the digest of everything that its folder depends on, the tool included."""

    key: str
    status: Status
    code: str = ""
    reason: str = ""
    stages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


class Journal:
    """The journal of one model in an output directory. A context manager: it is compacted when it closes."""

    def __init__(self, out: Path, model: str, *, read_only: bool = False) -> None:
        self.finished: dict[str, Finished] = {}
        self._path = (out / STATE if read_only else state(out)) / f"{model}.jsonl"
        self._read_only = read_only
        self._file: IO[str] | None = None
        with contextlib.suppress(OSError):
            for line in self._path.read_text(encoding="utf-8").splitlines():
                # A line that a killed run left half-written is no loss: its op is made again.
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    data = json.loads(line)
                    op = data.pop("op")
                    self.finished[op] = Finished(**{**data, "stages": tuple(data["stages"])})

    def add(self, op: str, finished: Finished) -> None:
        """Note that an op is finished, at once on disk."""
        self.finished[op] = finished
        if self._read_only:
            return
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="utf-8")
            self._file.write(_line(op, finished))
            self._file.flush()
        except OSError as error:
            raise UnwritableFolder(folder=self._path.parent, detail=error.strerror or str(error)) from error

    def forget(self, op: str) -> None:
        """Drop an op whose folder is gone."""
        self.finished.pop(op, None)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
        if not self._read_only and kind is None:
            write_text(
                self._path, "".join(_line(op, finished) for op, finished in sorted(self.finished.items()))
            )


def _line(op: str, finished: Finished) -> str:
    return json.dumps({"op": op, **asdict(finished)}) + "\n"
