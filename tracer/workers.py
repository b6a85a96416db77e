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
from multiprocessing import util
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

_AGAIN = 5.0
"""Seconds after which a limit that was reached is raised again."""

_GRACE = 5.0
"""Seconds in which a worker may leave by itself."""


def run(
    function: Callable[[Task], Result], tasks: Sequence[Task], jobs: int, *, lost: Callable[[Task], Result]
) -> Iterator[Result]:
    """`function(task)` for every task, in the order of the tasks.

    `function` must be a module-level function and handle its own exceptions. `lost(task)` is the result of a
    task whose process died. With one job everything runs in this process.

    Raises:
        KeyboardInterrupt: an interruption arrived; what was being worked on is no result.
    """
    if jobs <= 1 or len(tasks) <= 1:
        for task in tasks:
            result = function(task)
            check_interruption()
            yield result
        return
    pending = list(tasks)
    workers = min(jobs, len(pending))
    while pending:
        done = 0
        with _pool(workers) as pool:
            try:
                # One future a task: a chunk would be lost whole if its process died.
                with uninterrupted(), _start_deaf():
                    futures: list[Future[Result]] = [pool.submit(function, task) for task in pending]
                for future in futures:
                    yield future.result()
                    done += 1
            except BrokenProcessPool:
                # Whoever broke the pool is among the tasks that were running; with one worker it is known.
                if workers == 1:
                    yield lost(pending[done])
                    done += 1
            except BaseException:
                # What is half done is lost in any case, and a person who interrupts does not want to wait.
                _end(multiprocessing.active_children())
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


@contextmanager
def _start_deaf() -> Iterator[None]:
    """Let processes that the body starts hold Ctrl-C back until `_start`, not end with a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(parent: int) -> None:
    # Ctrl-C is for the parent, which ends its workers; a worker whose parent was killed ends itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, lambda number, frame: _leave())

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        _leave()

    threading.Thread(target=watch, daemon=True).start()


def _leave() -> None:
    # Raising SystemExit would not do: the pool makes it the result of the task. Nor would ending at once:
    # what libraries made (the progress bars below torch.fx make a semaphore) would outlive the process, and
    # the standard library's tracker would complain of it on stderr.
    util._exit_function()  # type: ignore[attr-defined]
    os._exit(1)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Let the processes leave; one that stays in foreign code is killed."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + _GRACE
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        process.kill()


_received: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and a request to end raise KeyboardInterrupt in the body, and be remembered.

    Foreign code may lose the exception, as an import from C++ does; `check_interruption` raises it again.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        _received.append(number)
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        _received.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


def check_interruption() -> None:
    """Raise KeyboardInterrupt where an interruption arrived since `interruptible` began."""
    if _received:
        raise KeyboardInterrupt


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
    """Raise `error` in the body after `seconds`, and again where foreign code lost it.

    Without effect outside a process's main thread, or for 0.
    """
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
    # An infinite number is one that the system's clock does not take.
    signal.setitimer(signal.ITIMER_REAL, min(seconds, threading.TIMEOUT_MAX), _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
