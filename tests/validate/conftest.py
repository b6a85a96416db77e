from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tracer.validate.folder import Folder


@functools.cache
def files_of(identity: str) -> dict[str, str]:
    """The folder that the tool makes of a call, as text."""
    from tracer.capture import capture
    from tracer.emit.naming import unique_kernels
    from tracer.emit.render import OpRecord, render_folder
    from tracer.lower import lower
    from tracer.rewrite import rewrite
    from tracer.validate.call_text import parse_identity

    call = parse_identity(identity)
    captured = capture(call)
    kernels = unique_kernels(rewrite(captured))
    ktirs = tuple(lower(kernel) for kernel in kernels)
    return render_folder(
        OpRecord(f"{call.name}.1", "tiny", captured, kernels, ktirs, 1, ("prefill",), ("model",))
    )


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Folder]:
    """Writes the folder of a call; `change` maps a file's suffix to (old, new) texts that it replaces."""

    def make(identity: str, **change: tuple[str, str]) -> Folder:
        path = tmp_path / f"{identity.partition('(')[0]}.1_spyre"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name, text in files_of(identity).items():
            for kind, (old, new) in change.items():
                if name == f"{kind}.py" or name.endswith(f".{kind}"):
                    assert old in text, f"{old} is not in {name}:\n{text}"
                    text = text.replace(old, new)
            (path / name).write_text(text)
        return Folder(path)

    return make
