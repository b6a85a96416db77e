from __future__ import annotations

import json

import pytest

import tracer.validate
from tracer.evidence_run import Evidence, merge
from tracer.validate.evidence import pieces

PASS = {"status": "pass", "digest": "d"}
FAIL = {"status": "fail", "digest": "d", "reason": "HV601 T2 differs", "advice": "look."}
SKIP = {"status": "skip", "digest": "d", "reason": "HV613 not shown", "advice": "wait."}
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
    assert outcome.err == "tiny-llama/torch.nn.functional.silu.1: T1: HV601 T2 differs. Try: look.\n"


def test_one_reason_is_one_line():
    tiers = {"T0": {"interpreter": FAIL, "gpu": PASS}, "T1": FAIL, "T2": {"builtin": PASS}}
    assert Evidence("m", "o", tiers).failed == ["T0 interpreter, T1: HV601 T2 differs. Try: look."]


OPEN = {"T0": {"interpreter": PASS}, "T2": {"builtin": PASS, "ktir_cpu": PASS}, "T1": PASS, "controls": PASS}


def test_a_gpu_that_could_not_run_an_op_is_no_failure():
    assert Evidence("m", "o", merge(OPEN, {"T0": {"gpu": SKIP}})).failed == []


@pytest.mark.parametrize("tiers", [{"T1": SKIP}, {"T2": {"ktir_cpu": SKIP}}])
def test_what_may_be_skipped_is_said_and_no_failure(harvest, harvested, monkeypatch, tiers):
    monkeypatch.setattr(
        tracer.validate, "validate_folder", lambda path, full_size: Taken(merge(OPEN, tiers)), raising=False
    )
    outcome = harvest("validate", "silu.1", "--out", "h")
    assert outcome.code == 0
    assert outcome.err.endswith(": skipped: HV613 not shown. Try: wait.)\n")
    assert harvest("validate", "silu.1", "--out", "h", "--quiet").err == ""


@pytest.mark.parametrize(
    "tiers", [{"T0": {"interpreter": SKIP}}, {"T2": {"builtin": SKIP}}, {"controls": SKIP}]
)
def test_what_must_pass_is_not_skipped_in_silence(harvest, harvested, monkeypatch, tiers):
    monkeypatch.setattr(
        tracer.validate, "validate_folder", lambda path, full_size: Taken(merge(OPEN, tiers)), raising=False
    )
    outcome = harvest("validate", "silu.1", "--out", "h", "--quiet")
    assert outcome.code == 1
    assert outcome.err.endswith(": HV613 not shown. Try: wait.\n")


def test_an_interruption_keeps_what_was_taken(harvest, harvested, registry, monkeypatch):
    def taken(path, full_size):
        if path.name.startswith("torch.nn.functional.silu.2"):
            raise KeyboardInterrupt
        return Taken({"T1": PASS})

    monkeypatch.setattr(tracer.validate, "validate_folder", taken, raising=False)
    assert harvest("validate", "--out", "h").code == 2
    assert "tiers" in registry(harvested)["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]


def test_nothing_to_validate_is_one_sentence(harvest, harvested, tree, tmp_path):
    (tmp_path / "empty").mkdir()
    before = tree(tmp_path)
    for arguments, said in (
        (("no_such_op", "--out", "h"), "no op of tiny-llama that has a kernel holds `no_such_op`"),
        (("--out", "empty"), "empty has no kernels.json"),
        (("--out", "nowhere"), "nowhere does not exist"),
    ):
        outcome = harvest("validate", *arguments)
        assert (outcome.code, outcome.out) == (5, "")
        assert outcome.err.startswith(f"HV616 there is nothing to validate: {said}")
        assert outcome.err.count("\n") == 1
    assert tree(tmp_path) == before
    assert not list((tmp_path / "empty").iterdir())
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_with_an_edited_source_fails(harvest, harvested):
    source = harvested / "tiny-llama" / "torch.nn.functional.silu.1_spyre" / "triton_kernel.py"
    source.write_text(source.read_text().replace("tl.exp(", "tl.exp2("))
    outcome = harvest("validate", "silu.1", "--out", "h", "--quiet")
    assert outcome.code == 1
    assert str(source.parent) not in outcome.err
    t1 = next(line for line in outcome.err.splitlines() if " T1: " in line)
    assert "HV615 triton_kernel.py:" in t1
    assert "Try: harvest the op again" in t1
