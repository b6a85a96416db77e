"""Ctrl-C, SIGTERM and SIGKILL in the middle: nothing half-written, and a second run completes the work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracer.capture.errors import CodegenFailure
from tracer.emit.digest import read_digests
from tracer.harvest_op import OpResult

ONLY = ("--only", "torch.m*", "--phases", "prefill")


def start(tiny, out, **environment):
    command = [
        sys.executable,
        "-m",
        "tracer.cli",
        "--model",
        str(tiny),
        *ONLY,
        "--offline",
        "--out",
        str(out),
    ]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment}
    )


def wait_for_folders(out, count):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if len(list(out.glob("tiny-llama/*_spyre"))) >= count:
            return
        time.sleep(0.01)
    raise AssertionError("the run wrote no folder in time")


@pytest.fixture
def whole(harvest, tiny, tmp_path, tree):
    """The tree of a run that nobody disturbs."""
    assert harvest("--model", tiny, *ONLY, "--out", tmp_path / "whole").code == 0
    return tree(tmp_path / "whole")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_second_run_completes_the_work(harvest, tiny, tmp_path, tree, whole, number):
    out = tmp_path / "h"
    run = start(tiny, out)
    wait_for_folders(out, 2)
    run.send_signal(number)
    code = run.wait(timeout=60)
    left = tree(out)
    assert code == (-signal.SIGKILL if number == signal.SIGKILL else 2)
    assert {name: text for name, text in left.items() if name != "kernels.json"}.items() <= whole.items()
    if number != signal.SIGKILL:
        ops = json.loads(left["kernels.json"])["models"]["tiny-llama"]["ops"]
        assert {f"{name}_spyre" for name in ops} == {path.name for path in out.glob("tiny-llama/*_spyre")}
    outcome = harvest("--model", tiny, *ONLY, "--out", out, "--json")
    data = json.loads(outcome.out)
    assert outcome.code == 0
    assert data["resumed"] >= 1
    assert data["files"]["update"] == data["files"]["remove"] == 0
    assert tree(out) == whole
    assert list((out / ".harvest" / "staging").iterdir()) == []


def test_an_interruption_between_two_ops_keeps_the_first(harvest, tiny, tmp_path, registry, monkeypatch):
    import tracer.pipeline

    original, calls = tracer.pipeline.harvest_op, []

    def interrupted(task):
        calls.append(task.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(task)

    monkeypatch.setattr(tracer.pipeline, "harvest_op", interrupted)
    outcome = harvest("--model", tiny, *ONLY, "--out", "h")
    assert outcome.code == 2
    assert "run the same command again" in outcome.out
    assert len(registry(tmp_path / "h")["tiny-llama"]["ops"]) == 2
    assert all(read_digests(path) for path in (tmp_path / "h" / "tiny-llama").iterdir())


def test_an_interruption_that_an_op_loses_ends_the_run_without_that_op(
    harvest, tiny, tmp_path, registry, tree, whole, monkeypatch
):
    import tracer.pipeline

    original, calls = tracer.pipeline.harvest_op, []

    def loses_it(task):
        calls.append(task.name)
        if len(calls) == 3:
            # As an import does that runs below C++.
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            return OpResult(task.name, "refused", "HV203", "interrupted in an import")
        return original(task)

    with monkeypatch.context() as patch:
        patch.setattr(tracer.pipeline, "harvest_op", loses_it)
        assert harvest("--model", tiny, *ONLY, "--out", "h").code == 2
    assert len(registry(tmp_path / "h")["tiny-llama"]["ops"]) == 2
    assert harvest("--model", tiny, *ONLY, "--out", "h").code == 0
    assert tree(tmp_path / "h") == whole


def test_what_the_machine_may_have_had_a_part_in_is_tried_again(
    harvest, tiny, tmp_path, tree, whole, monkeypatch
):
    import tracer.capture

    def fails(call, target):
        raise CodegenFailure(detail="ImportError: cannot load a library")

    with monkeypatch.context() as patch:
        patch.setattr(tracer.capture, "capture", fails)
        assert harvest("--model", tiny, *ONLY, "--out", "h").code == 5
    assert harvest("--model", tiny, *ONLY, "--out", "h").code == 0
    assert tree(tmp_path / "h") == whole


def test_an_interruption_in_a_string_of_code_keeps_the_exit_code(tmp_path):
    interrupted = """
import tracer.cli


def interrupt(**options):
    exec("raise KeyboardInterrupt")


tracer.cli.app = interrupt
tracer.cli.main([])
"""
    (tmp_path / "interrupted.py").write_text(interrupted)
    command = [sys.executable, "-m", "interrupted"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (2, "interrupted; run the same command again to go on.\n")


def interrupt(arguments, ready):
    """Exit code and stderr of a command whose process group is interrupted once `ready(its process id)`."""
    run = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while not ready(run.pid) and time.monotonic() < end:
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    # Only when the last process is gone that writes to it, the tracker of semaphores too, does stderr end.
    _, errors = run.communicate(timeout=60)
    return run.returncode, errors


SAID = "interrupted; run the same command again to go on.\n"


def test_workers_take_their_semaphores_along(tmp_path):
    def ready(process):
        return len(list(tmp_path.iterdir())) == 2

    assert interrupt([Path(__file__).with_name("worker_tasks.py"), tmp_path], ready) == (2, SAID)


@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.05, 0.2])
def test_workers_that_are_starting_say_nothing(tmp_path, seconds):
    def ready(process):
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        if not any(b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children):
            return False
        time.sleep(seconds)
        return True

    assert interrupt([Path(__file__).with_name("worker_tasks.py"), tmp_path], ready) == (2, SAID)
