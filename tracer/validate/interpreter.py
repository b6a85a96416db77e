"""Triton's interpreter in a process of its own: one per client process, started when first needed."""

from __future__ import annotations

import atexit
import json
import mmap
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracer.validate.errors import InterpreterCrashed, InterpreterFailed, InterpreterTimeout

TIMEOUT = 300.0
"""Seconds that one request may take; the environment variable SPYRE_INTERPRETER_TIMEOUT overrides it."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch. A pointer argument is a pair of byte offset in the shared memory and Triton type."""

    kernel: str
    args: Mapping[str, int | float | tuple[int, str]]
    constexpr: Mapping[str, Any]
    grid: tuple[int, ...]


@dataclass
class SharedMemory:
    """Bytes that the client and the worker both see; no file has their name."""

    size: int
    descriptor: int = field(init=False)
    bytes: mmap.mmap = field(init=False)

    def __post_init__(self) -> None:
        self.size = max(self.size, mmap.PAGESIZE)
        if hasattr(os, "memfd_create"):
            self.descriptor = os.memfd_create("spyre-kernels")
        else:
            with tempfile.TemporaryFile() as file:
                self.descriptor = os.dup(file.fileno())
        os.ftruncate(self.descriptor, self.size)
        self.bytes = mmap.mmap(self.descriptor, self.size)

    def close(self) -> None:
        """Give the descriptor back; the mapping goes with the last tensor that uses it."""
        os.close(self.descriptor)


class Interpreter:
    """A client of one worker process. Errors of a kernel, a crash and a time-out are typed; the next run
    starts a new process where the last one is gone. `stock=True` keeps Triton's own slow descriptor accesses.
    """

    def __init__(self, *, stock: bool = False):
        self._stock = stock
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def run(
        self,
        source: Path,
        launches: Sequence[Launch],
        memory: SharedMemory,
        buffers: Sequence[tuple[int, int]],
        *,
        timeout: float | None = None,
    ) -> float:
        """Run the kernels of the file `source` over `memory`; return the seconds that the worker took.

        `buffers` are the byte ranges (start, length) that kernels may touch. Raises InterpreterFailed,
        InterpreterTimeout and InterpreterCrashed.
        """
        limit = timeout or float(os.environ.get("SPYRE_INTERPRETER_TIMEOUT", TIMEOUT))
        names = ", ".join(dict.fromkeys(launch.kernel for launch in launches))
        request = {
            "path": str(Path(source).resolve()),
            "size": memory.size,
            "buffers": [list(buffer) for buffer in buffers],
            "launches": [
                {
                    "kernel": launch.kernel,
                    "args": {k: list(v) if isinstance(v, tuple) else v for k, v in launch.args.items()},
                    "constexpr": dict(launch.constexpr),
                    "grid": list(launch.grid),
                }
                for launch in launches
            ],
        }
        body = json.dumps(request).encode()
        channel = self._started()
        try:
            socket.send_fds(channel, [len(body).to_bytes(8, "little")], [memory.descriptor])
            channel.sendall(body)
            answer = self._answer(channel, limit)
        except (BrokenPipeError, ConnectionResetError):
            answer = b""
        if answer is None:
            self.stop()
            raise InterpreterTimeout(kernel=names, seconds=f"{limit:g}")
        if not answer:
            code = self._process.wait() if self._process else None
            self.stop()
            raise InterpreterCrashed(kernel=names, detail=f"exit status {code}")
        result = json.loads(answer)
        if "error" in result:
            error = InterpreterFailed(kernel=result["kernel"] or names, detail=result["error"])
            error.add_note(result["trace"])
            raise error
        return float(result["seconds"])

    def _answer(self, channel: socket.socket, limit: float) -> bytes | None:
        """The worker's line; None when it takes too long, empty when the worker is gone."""
        end = time.monotonic() + limit
        answer = b""
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([channel], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            part = channel.recv(1 << 20)
            if not part:
                return b""
            answer += part
        return answer

    def _started(self) -> socket.socket:
        if self._process is not None and self._process.poll() is None and self._channel is not None:
            return self._channel
        self.stop()
        ours, theirs = socket.socketpair()
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        command = [sys.executable, "-m", "tracer.validate.interpreter_worker", str(theirs.fileno())]
        command += ["--stock"] if self._stock else []
        self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
        theirs.close()
        self._channel = ours
        return ours

    def stop(self) -> None:
        """End the worker; the next run starts another."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process = self._channel = None


_shared: Interpreter | None = None


def interpreter() -> Interpreter:
    """The one of this process; it ends with the process."""
    global _shared
    if _shared is None:
        _shared = Interpreter()
        atexit.register(_shared.stop)
    return _shared
