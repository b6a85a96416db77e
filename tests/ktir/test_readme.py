"""The README's example of the simulator's Python face runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), names)
    with pytest.raises(AssertionError):
        exec(
            compile(example.replace("(result.outputs[0], ", "(result.outputs[0] + 1, "), "README.md", "exec"),
            {},
        )
