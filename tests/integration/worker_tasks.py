"""Tasks for worker processes: they must be importable by name in a process of their own."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from pathlib import Path

from tracer import cli, workers


def square(value: int) -> int:
    return value * value


def dies_at_three(value: int) -> int:
    if value == 3:
        os._exit(9)
    return value * value


def sleeps_from_one_on(value: int) -> int:
    time.sleep(60 if value else 0)
    return value


def lost(value: int) -> int:
    return -value


def holds_a_semaphore(marks: str) -> str:
    """Make a semaphore, as progress bars do, say so, and work on."""
    lock = multiprocessing.RLock()
    with lock:
        Path(marks, str(os.getpid())).touch()
        time.sleep(60)
    return marks


def work_on(**options: object) -> int:
    """What a command with two processes does; the rest of the command line is the folder of their marks."""
    with workers.interruptible():
        return len(list(workers.run(holds_a_semaphore, sys.argv[1:] * 2, 2, lost=str)))


if __name__ == "__main__":
    cli.app = work_on  # type: ignore[assignment]
    cli.main([])
