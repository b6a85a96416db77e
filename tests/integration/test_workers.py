from __future__ import annotations

import contextlib
import importlib
import math
import signal
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from tracer import workers


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    # A spawned process takes over sys.path; the test modules themselves are not on it.
    monkeypatch.syspath_prepend(Path(__file__).parent)
    return importlib.import_module("worker_tasks")


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_the_order_of_the_tasks(jobs, tasks):
    assert list(workers.run(tasks.square, range(6), jobs, lost=tasks.lost)) == [0, 1, 4, 9, 16, 25]


def test_a_task_that_takes_its_process_along_is_a_result(tasks):
    assert list(workers.run(tasks.dies_at_three, range(6), 2, lost=tasks.lost)) == [0, 1, 4, -3, 16, 25]


def test_a_task_that_takes_too_long_raises():
    start = time.monotonic()
    with pytest.raises(TimeoutError), workers.time_limit(0.1, TimeoutError()):
        time.sleep(10)
    assert time.monotonic() - start < 5


def test_a_task_in_time_does_not_raise():
    with workers.time_limit(0.1, TimeoutError()):
        pass
    time.sleep(0.15)


@pytest.mark.parametrize("seconds", [1e30, math.inf])
def test_seconds_beyond_the_clock_are_a_limit_that_is_not_reached(seconds):
    with workers.time_limit(seconds, TimeoutError()):
        time.sleep(0.01)


def test_zero_seconds_are_no_limit():
    with workers.time_limit(0, TimeoutError()):
        time.sleep(0.01)


def interrupt_in_the_middle(steps: list[str]) -> None:
    with workers.uninterrupted():
        signal.raise_signal(signal.SIGINT)
        steps.append("done")
    steps.append("too late")


def test_an_interruption_waits_for_what_belongs_together():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt_in_the_middle(steps)
    assert steps == ["done"]


def interrupt_through(thread: threading.Thread, steps: list[str]) -> None:
    with workers.uninterrupted():
        signal.pthread_kill(thread.ident or 0, signal.SIGINT)
        time.sleep(0.05)
        steps.append("done")
    steps.append("too late")


def test_an_interruption_that_another_thread_takes_waits_as_well():
    steps: list[str] = []
    idle = threading.Event()
    thread = threading.Thread(target=idle.wait)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupt_through(thread, steps)
    finally:
        idle.set()
        thread.join()
    assert steps == ["done"]


def test_an_interruption_that_a_task_loses_is_raised_after_it():
    def loses(task: int) -> int:
        with contextlib.suppress(KeyboardInterrupt):
            if task == 1:
                signal.raise_signal(signal.SIGINT)
        return task

    results = workers.run(loses, range(3), 1, lost=lambda task: -task)
    with workers.interruptible():
        assert next(results) == 0
        with pytest.raises(KeyboardInterrupt):
            next(results)
    workers.check_interruption()


def sleep_on() -> None:
    with workers.time_limit(0.1, TimeoutError()):
        with contextlib.suppress(TimeoutError):
            time.sleep(10)
        time.sleep(10)


def test_a_limit_that_a_task_loses_is_raised_again(monkeypatch):
    monkeypatch.setattr(workers, "_AGAIN", 0.1)
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        sleep_on()
    assert time.monotonic() - start < 5


def test_an_interruption_does_not_wait_for_tasks(tasks):
    start = time.monotonic()
    results = workers.run(tasks.sleeps_from_one_on, range(4), 2, lost=tasks.lost)
    assert next(results) == 0
    with pytest.raises(KeyboardInterrupt):
        results.throw(KeyboardInterrupt)
    assert time.monotonic() - start < 20
