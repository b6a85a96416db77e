from __future__ import annotations

import json

import pytest

import tracer.validate
from tracer.evidence_run import merge, pieces

PASS = {"status": "pass", "digest": "d"}
FAIL = {"status": "fail", "digest": "d", "reason": "T2 differs"}
SIGNED = {"status": "pass", "digest": "old", "by": "a person"}


class Taken:
    def __init__(self, tiers):
        self.tiers = tiers

    def to_json(self):
        return self.tiers


def test_what_was_not_taken_stays():
    old = {"T0": {"interpreter": FAIL, "gpu": PASS}, "T3": SIGNED}
    new = {"T0": {"interpreter": PASS, "gpu": None}, "T1": PASS}
    assert merge(old, new) == {"T0": {"interpreter": PASS, "gpu": PASS}, "T1": PASS, "T3": SIGNED}


def test_new_evidence_replaces_old():
    assert merge({"T1": {**FAIL, "extra": 1}}, {"T1": PASS}) == {"T1": PASS}


def test_pieces_are_named():
    tiers = {"T0": {"interpreter": PASS}, "T1": FAIL}
    assert [name for name, _ in pieces(tiers)] == ["T0 interpreter", "T1"]


@pytest.fixture
def harvested(harvest, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu", "--out", "h")
    return tmp_path / "h"


def test_evidence_is_entered(harvest, harvested, registry, monkeypatch):
    monkeypatch.setattr(
        tracer.validate, "validate_folder", lambda path, full_size: Taken({"T1": PASS}), raising=False
    )
    outcome = harvest("validate", "silu.1", "--out", "h", "--json")
    assert outcome.code == 0
    assert [entry["op"] for entry in json.loads(outcome.out)] == ["torch.nn.functional.silu.1"]
    ops = registry(harvested)["tiny-llama"]["ops"]
    assert ops["torch.nn.functional.silu.1"]["tiers"] == {"T1": PASS}
    assert "tiers" not in ops["torch.nn.functional.silu.2"]


def test_evidence_survives_a_second_harvest(harvest, harvested, registry, tiny, monkeypatch):
    monkeypatch.setattr(
        tracer.validate, "validate_folder", lambda path, full_size: Taken({"T1": PASS}), raising=False
    )
    harvest("validate", "--out", "h")
    before = (harvested / "kernels.json").read_bytes()
    harvest("--model", tiny, "--only", "silu", "--out", "h", "--force")
    assert (harvested / "kernels.json").read_bytes() == before


def test_a_failure_is_named_and_counts(harvest, harvested, monkeypatch):
    monkeypatch.setattr(
        tracer.validate, "validate_folder", lambda path, full_size: Taken({"T1": FAIL}), raising=False
    )
    outcome = harvest("validate", "silu.1", "--out", "h", "--quiet")
    assert outcome.code == 1
    assert outcome.err == "tiny-llama/torch.nn.functional.silu.1: T1: T2 differs\n"


def test_an_interruption_keeps_what_was_taken(harvest, harvested, registry, monkeypatch):
    def taken(path, full_size):
        if path.name.startswith("torch.nn.functional.silu.2"):
            raise KeyboardInterrupt
        return Taken({"T1": PASS})

    monkeypatch.setattr(tracer.validate, "validate_folder", taken, raising=False)
    assert harvest("validate", "--out", "h").code == 2
    assert "tiers" in registry(harvested)["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]


def test_nothing_to_validate_is_nothing(harvest, harvested):
    assert harvest("validate", "no_such_op", "--out", "h").code == 5
