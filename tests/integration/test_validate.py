from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

import tracer.validate
from tracer.emit import manifest
from tracer.evidence_run import Evidence, merge, validate_tree
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


KILLED_IN_THE_SECOND = """
import os, sys
import tracer.validate
from tracer import cli

def taken(path, full_size):
    if path.name.startswith("torch.nn.functional.silu.2"):
        os.kill(os.getpid(), 9)
    return PASSED

PASSED = type("Passed", (), {"to_json": lambda self: {"T1": {"status": "pass", "digest": "d"}}})()
tracer.validate.validate_folder = taken
cli.main(["validate", "--out", "h"])
"""


@pytest.fixture
def killed(harvested):
    """The output of a validation that was killed in the second of two folders."""
    command = [sys.executable, "-c", KILLED_IN_THE_SECOND]
    ended = subprocess.run(command, cwd=harvested.parent, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    return harvested


def watch(monkeypatch, tiers):
    seen = []

    def taken(path, full_size):
        seen.append(path.name)
        return Taken(tiers)

    monkeypatch.setattr(tracer.validate, "validate_folder", taken, raising=False)
    return seen


FIRST, SECOND = (f"torch.nn.functional.silu.{n}_spyre" for n in (1, 2))


def test_a_killed_validation_keeps_what_was_taken_and_goes_on(
    harvest, killed, registry, monkeypatch, tmp_path
):
    ops = registry(killed)["tiny-llama"]["ops"]
    assert [op.get("tiers") for op in ops.values()] == [{"T1": PASS}, None]
    seen = watch(monkeypatch, {"T1": PASS})
    assert harvest("validate", "--out", "h").err.startswith(f"1 of 2: tiny-llama/{FIRST[:-6]}\n2 of 2: ")
    assert seen == [SECOND]
    whole = (killed / "kernels.json").read_bytes()
    # A run that came to its end is no unfinished one, and finds the same.
    harvest("validate", "--out", "h")
    assert seen == [SECOND, FIRST, SECOND]
    assert (killed / "kernels.json").read_bytes() == whole


def test_evidence_of_a_killed_validation_is_taken_again_on_another_folder(harvest, killed, monkeypatch):
    seen = watch(monkeypatch, {"T1": PASS})
    source = killed / "tiny-llama" / FIRST / "triton_kernel.py"
    source.write_text(source.read_text() + "\n")
    harvest("validate", "--out", "h")
    assert seen == [FIRST, SECOND]


def test_what_failed_before_an_interruption_is_taken_again(harvest, harvested, monkeypatch):
    def fails_then_stops(path, full_size):
        if path.name == SECOND:
            raise KeyboardInterrupt
        return Taken({"T1": FAIL})

    monkeypatch.setattr(tracer.validate, "validate_folder", fails_then_stops, raising=False)
    assert harvest("validate", "--out", "h").code == 2
    seen = watch(monkeypatch, {"T1": PASS})
    assert harvest("validate", "--out", "h").code == 0
    assert seen == [FIRST, SECOND]


def test_what_another_command_enters_meanwhile_stays(harvest, harvested, registry, monkeypatch):
    def signed_meanwhile(path, full_size):
        entries = manifest.read(harvested)
        model = entries["tiny-llama"]
        ops = {name: replace(entry, tiers={**entry.tiers, "T3": SIGNED}) for name, entry in model.ops.items()}
        manifest.write(harvested, {"tiny-llama": replace(model, ops=ops)})
        return Taken({"T1": PASS})

    monkeypatch.setattr(tracer.validate, "validate_folder", signed_meanwhile, raising=False)
    assert harvest("validate", "--out", "h").code == 0
    ops = registry(harvested)["tiny-llama"]["ops"]
    assert [op["tiers"] for op in ops.values()] == [{"T1": PASS, "T3": SIGNED}] * 2


def test_an_op_that_is_gone_meanwhile_gets_no_evidence(harvest, harvested, monkeypatch):
    def gone_meanwhile(path, full_size):
        manifest.write(harvested, {})
        return Taken({"T1": PASS})

    monkeypatch.setattr(tracer.validate, "validate_folder", gone_meanwhile, raising=False)
    assert harvest("validate", "silu.1", "--out", "h").code == 0
    assert manifest.read(harvested) == {}


def test_evidence_that_is_entered_during_a_harvest_stays(harvest, harvested, registry, tiny, monkeypatch):
    import tracer.pipeline

    original = tracer.pipeline.harvest_op

    def validated_meanwhile(task):
        with monkeypatch.context() as patch:
            patch.setattr(tracer.validate, "validate_folder", lambda p, full_size: Taken({"T1": PASS}))
            validate_tree(harvested, task.name)
        return original(task)

    monkeypatch.setattr(tracer.pipeline, "harvest_op", validated_meanwhile)
    assert harvest("--model", tiny, "--only", "silu", "--out", "h", "--force").code == 0
    ops = registry(harvested)["tiny-llama"]["ops"]
    assert [op["tiers"] for op in ops.values()] == [{"T1": PASS}] * 2


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
