"""Run one function over many tasks, here or on several processes, in order, whatever single tasks do.

A task that takes too long or takes its process with it becomes a result like any other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def run(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int, *, lost: Callable[[Task], Result]
) -> Iterator[Result]:
    """`function(task)` for every task, in the order of the tasks.

    `function` must be a module-level function and handle its own exceptions. `lost(task)` is the result of a
    task whose process died. With one job everything runs in this process.
    """
    if jobs <= 1 or len(tasks) <= 1:
        yield from map(function, tasks)
        return
    pending = list(tasks)
    workers = min(jobs, len(pending))
    while pending:
        done = 0
        with _pool(workers) as pool:
            # One future a task: a chunk would be lost whole if its process died.
            futures: list[Future[Result]] = [pool.submit(function, task) for task in pending]
            try:
                for future in futures:
                    yield future.result()
                    done += 1
            except BrokenProcessPool:
                # Whoever broke the pool is among the tasks that were running; with one worker it is known.
                if workers == 1:
                    yield lost(pending[done])
                    done += 1
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        broken, pending = done < len(pending), pending[done:]
        workers = 1 if broken else workers


@contextmanager
def _pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(os.getpid(),)
    ) as pool:
        yield pool


def _start(parent: int) -> None:
    # Ctrl-C is for the parent, which lets running tasks finish; a worker whose parent was killed ends itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and a request to end wait until the body is done: what belongs together stays together.

    Masking the signals would not do: another thread of the process would take them, and Python would still
    interrupt the main one.
    """
    pending: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda received, frame: pending.append(received))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if pending:
            signal.raise_signal(pending[0])


@contextmanager
def time_limit(seconds: float, error: Exception) -> Iterator[None]:
    """Raise `error` in the body after `seconds`. Without effect outside a process's main thread, or for 0."""
    if (
        seconds <= 0
        or threading.current_thread() is not threading.main_thread()
        or not hasattr(signal, "setitimer")
    ):
        yield
        return

    def alarm(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
