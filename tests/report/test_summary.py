from __future__ import annotations

import dataclasses
import json

from rich.console import Console

from tracer.emit.folder import Change
from tracer.emit.manifest import Entry, ModelEntry
from tracer.harvest_op import OpResult
from tracer.models.errors import UnknownModel
from tracer.pipeline import Report
from tracer.report.summary import as_json, refusal_json, table


def report(**changes) -> Report:
    ops = {
        "torch.f.1": Entry("ok", "f", 4, ("prefill",), ()),
        "torch.f.2": Entry("view", "g", 3, ("prefill",), ()),
        "torch.f.10": Entry("refused", "h", 2, ("prefill",), (), code="HV301", reason="[bold]odd[/bold]"),
        "torch.g.1": Entry("extern", "i", 1, ("prefill",), (), code="aten.sort", reason="a library"),
    }
    fields = {
        "model": "tiny",
        "entry": ModelEntry("c", {"dtype": "fp16"}, ops),
        "changes": [Change("create", "tiny/a"), Change("create", "tiny/b"), Change("identical", "tiny/c")],
        "results": [
            OpResult(f"torch.f.{index}", "ok", seconds={"lower": float(index)}) for index in range(9)
        ],
        "seconds": {"trace": 1.0, "lower": 2.0},
        "ran": ops,
        "wall": 3.25,
    }
    return Report(**{**fields, **changes})


def shown(*reports: Report) -> str:
    console = Console(width=100, force_terminal=False)
    with console.capture() as capture:
        console.print(table(reports))
    return capture.get()


def test_json_is_json_and_its_sums_agree():
    data = json.loads(json.dumps(as_json(report())))
    assert data["calls"] == {"ok": 4, "view": 3, "extern": 1, "refused": 2, "failed": 0, "total": 10}
    assert data["ops"] == {"ok": 1, "view": 1, "extern": 1, "refused": 1, "failed": 0}
    assert data["files"] == {"create": 2, "update": 0, "identical": 1, "remove": 0}
    assert [op["op"] for op in data["not_ok"]] == ["torch.f.10", "torch.g.1"]
    assert [change["path"] for change in data["changes"]] == ["tiny/a", "tiny/b"]


def test_the_slowest_five_are_named_longest_first():
    assert [op["op"] for op in as_json(report())["slowest"]] == [
        f"torch.f.{index}" for index in (8, 7, 6, 5, 4)
    ]


def test_the_table_names_the_model_its_counts_and_every_reason():
    text = shown(report())
    row = next(line for line in text.splitlines() if line.startswith("tiny "))
    assert row.split()[1:] == ["10", "4", "1", "1", "1", "1", "0", "3.2"]
    assert "HV301" in text
    assert "aten.sort" in text
    assert "2 create, 1 identical" in text


def test_a_reason_is_text_not_markup():
    assert "[bold]odd[/bold]" in shown(report())


def test_a_phase_that_stopped_is_named():
    why = {"code": "HV106", "reason": "no cache"}
    entry = ModelEntry("c", {}, {}, {"decode": why})
    assert "phase decode stopped early: HV106 no cache" in shown(report(entry=entry))
    assert as_json(report(entry=entry))["failures"] == {"decode": why}


def test_what_differs_from_the_model_that_was_asked_for_is_said():
    entry = ModelEntry("c", {}, {}, adapted=("it has 2 layers, for it does not build with 1",))
    assert "tiny: it has 2 layers, for it does not build with 1" in shown(report(entry=entry))
    assert as_json(report(entry=entry))["adapted"] == list(entry.adapted)
    assert ModelEntry.from_json(entry.to_json()) == dataclasses.replace(entry, adapted=list(entry.adapted))
    assert "adapted" not in ModelEntry("c", {}, {}).to_json()


def test_a_refused_model_has_the_keys_of_any_and_an_error():
    data = json.loads(json.dumps(refusal_json("no/such", UnknownModel(model="no/such", near=""))))
    assert list(data) == list(as_json(report()))
    assert as_json(report())["error"] is None
    assert data["model"] == "no/such"
    assert data["calls"]["total"] == 0
    assert data["error"]["code"] == "HV101"
    assert data["error"]["message"].startswith("HV101 no model is called `no/such`. Try: ")


def test_an_interrupted_run_says_how_to_go_on():
    assert "run the same command again" in shown(report(interrupted=True))
    assert "run the same command again" not in shown(report())
