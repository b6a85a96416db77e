"""What the captured kernels compute, in Triton's interpreter, against PyTorch in float64."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("interpreted.py")


def run(*arguments: str) -> dict[str, float | str]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def names() -> list[str]:
    text = PROGRAM.read_text()
    keys = text[text.index("CALLS = {") : text.index("\n}\n")].splitlines()
    return [line.split('"')[1] for line in keys if line.startswith('    "')]


@pytest.fixture(scope="module")
def errors() -> dict[str, float | str]:
    return run()


@pytest.mark.parametrize("name", names())
def test_kernels_round_once(errors: dict[str, float | str], name: str) -> None:
    """One rounding is half a unit; reductions in float32 add far less than another half."""
    error = errors[name]
    assert isinstance(error, float), error
    assert error <= 1.0


def test_every_call_was_run(errors: dict[str, float | str]) -> None:
    assert set(errors) == set(names())
    assert len(errors) > 30


@pytest.mark.parametrize("control", ["other kernel", "half of K"])
def test_a_wrong_kernel_is_seen(control: str) -> None:
    error = run(f"--control={control}")[control]
    assert isinstance(error, float)
    assert error > 100.0
