from __future__ import annotations

import io

import pytest
from rich.console import Console

from tracer.harvest_op import OpResult
from tracer.pipeline import Progress
from tracer.report.progress import ProgressPrinter

STEPS = [
    Progress("tiny", 0, 2),
    Progress("tiny", 1, 2, OpResult("torch.f.1", "ok")),
    Progress("tiny", 2, 2, OpResult("torch.f.2", "refused", message="HV301 torch.f.2: [red]odd[/red].")),
]


def shown(terminal: bool, quiet: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100)
    with ProgressPrinter(console, quiet) as progress:
        progress.started("tiny")
        for step in STEPS:
            progress(step)
    return file.getvalue()


def test_plain_lines_where_there_is_no_terminal():
    text = shown(terminal=False, quiet=False)
    assert "\x1b" not in text
    assert text.splitlines()[:2] == ["tiny: tracing", "tiny: 0 of 2 ops"]
    assert text.splitlines()[-1] == "tiny: 2 of 2 ops, torch.f.2"


def test_a_bar_on_a_terminal():
    text = shown(terminal=True, quiet=False)
    assert "\x1b" in text
    assert "tiny: 0 of 2 ops" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_shows_errors_only(terminal):
    assert shown(terminal, quiet=True) == "HV301 torch.f.2: [red]odd[/red].\n"


def test_a_name_from_a_configuration_stays_on_its_line():
    file = io.StringIO()
    with ProgressPrinter(Console(file=file, width=100), False) as progress:
        progress.started("ti\nny\x1b[31m")
    assert file.getvalue() == "ti\\nny\\x1b[31m: tracing\n"
