"""Bad input: one sentence with a code and what to try, and nothing half-written."""

from __future__ import annotations

import json

import pytest

from tracer.errors import HarvestError


class Refused(HarvestError):
    code = "HV399"
    message = "the kernel is {what}"
    advice = "another kernel."


def configure(tiny, **changes):
    path = tiny / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def refuse(outcome, code):
    assert outcome.code == 4
    assert outcome.err.startswith(f"{code} ")
    assert "Try: " in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"llama"', "{}", '{"model_type": 7}', '{"model_type": "no-such-type"}']
)
def test_a_malformed_config(harvest, tiny, tmp_path, text):
    (tiny / "config.json").write_text(text)
    refuse(harvest("--model", tiny, "--quiet", "--offline", "--out", "h"), "HV102")
    assert not (tmp_path / "h" / "kernels.json").exists()


@pytest.mark.parametrize("changes", [{"hidden_size": 65}, {"hidden_size": "wide"}, {"vocab_size": None}])
def test_what_transformers_says_is_told_without_its_classes(harvest, tiny, changes):
    configure(tiny, **changes)
    outcome = harvest("--model", tiny, "--quiet", "--offline", "--out", "h")
    refuse(outcome, "HV102")
    assert "Error" not in outcome.err
    assert "alidat" not in outcome.err
    assert ".." not in outcome.err.replace("...", "")


def test_a_config_that_wants_remote_code(harvest, tiny):
    configure(tiny, model_type="mine", auto_map={"AutoConfig": "configuration_mine.MineConfig"})
    refuse(harvest("--model", tiny, "--quiet", "--offline"), "HV103")


def test_a_config_that_no_model_can_be_built_from(harvest, tiny):
    configure(tiny, hidden_size=-64)
    outcome = harvest("--model", tiny, "--quiet", "--offline")
    assert outcome.code in (4, 5)
    assert outcome.err.startswith("HV1")
    assert len(outcome.err.splitlines()) == 1


def test_a_phase_that_stops_before_the_op_is_the_reason(harvest, tiny):
    configure(tiny, num_key_value_heads=3)
    outcome = harvest("--model", tiny, "--only", "silu", "--quiet", "--out", "h")
    assert outcome.code == 5
    assert outcome.err.startswith("HV106 `tiny-llama` could not be run on fake tensors in phase prefill: ")
    assert len(outcome.err.splitlines()) == 1


def test_what_a_sentence_quotes_stays_on_its_line(harvest):
    outcome = harvest("--model", "no\nsuch\x1b[31m", "--quiet", "--out", "h")
    refuse(outcome, "HV101")
    assert "`no\\nsuch\\x1b[31m`" in outcome.err


def test_a_malformed_registry(harvest, tiny, tmp_path):
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "kernels.json").write_text("{")
    refuse(harvest("--model", tiny, "--only", "silu", "--quiet", "--out", "h"), "HV503")
    assert (tmp_path / "h" / "kernels.json").read_text() == "{"


@pytest.mark.parametrize("room", ["capture", "rewrite", "lower"])
def test_an_op_that_a_stage_refuses(harvest, registry, tiny, tmp_path, monkeypatch, room):
    import importlib

    def refused(*arguments):
        raise Refused(what="odd", line="  tmp0 = odd()")

    monkeypatch.setattr(importlib.import_module(f"tracer.{room}"), room, refused)
    outcome = harvest("--model", tiny, "--only", "silu.1", "--quiet", "--out", "h")
    assert outcome.code == 5
    assert outcome.err == (
        "HV399 torch.nn.functional.silu.1: the kernel is odd (at `tmp0 = odd()`). Try: another kernel.\n"
    )
    op = registry(tmp_path / "h")["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]
    assert (op["status"], op["code"], op["reason"]) == ("refused", "HV399", "the kernel is odd")
    assert not list((tmp_path / "h").glob("tiny-llama/*_spyre"))


@pytest.mark.parametrize("room", ["capture", "rewrite", "lower"])
def test_an_op_that_breaks_a_stage_does_not_break_the_others(
    harvest, registry, tiny, tmp_path, monkeypatch, room
):
    import importlib

    module = importlib.import_module(f"tracer.{room}")
    original, calls = getattr(module, room), []

    def broken(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise ZeroDivisionError("a bug\nover two lines")
        return original(*arguments)

    monkeypatch.setattr(module, room, broken)
    outcome = harvest("--model", tiny, "--only", "silu", "--quiet", "--out", "h")
    assert outcome.code == 1
    ops = registry(tmp_path / "h")["tiny-llama"]["ops"]
    assert [op["status"] for op in ops.values()] == ["failed", "ok"]
    assert ops["torch.nn.functional.silu.1"]["code"] == room
    assert ops["torch.nn.functional.silu.1"]["reason"] == "ZeroDivisionError: a bug"


def test_a_failed_op_is_tried_again(harvest, registry, tiny, tmp_path, monkeypatch):
    import tracer.rewrite

    def broken(*arguments):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(tracer.rewrite, "rewrite", broken)
        assert harvest("--model", tiny, "--only", "silu.1", "--quiet", "--out", "h").code == 5
    assert harvest("--model", tiny, "--only", "silu.1", "--quiet", "--out", "h").code == 0
    assert registry(tmp_path / "h")["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]["status"] == "ok"


def test_an_op_that_hangs_is_a_status(harvest, registry, tiny, tmp_path, monkeypatch):
    import tracer.rewrite

    def hangs(*arguments):
        while True:
            pass

    monkeypatch.setattr(tracer.rewrite, "rewrite", hangs)
    outcome = harvest("--model", tiny, "--only", "silu.1", "--timeout", "3", "--quiet", "--out", "h")
    assert outcome.err.startswith("HV505 torch.nn.functional.silu.1: the op took longer than 3 seconds")
    op = registry(tmp_path / "h")["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]
    assert (op["status"], op["code"]) == ("failed", "rewrite")


def test_a_hostile_model_name_stays_inside_the_output(harvest, tiny, tmp_path):
    folder = tmp_path / 'x"""; import os #'
    folder.mkdir()
    (folder / "config.json").write_text((tiny / "config.json").read_text())
    assert harvest("--model", folder, "--only", "silu.1", "--out", "h").code == 0
    (model,) = [path for path in (tmp_path / "h").iterdir() if path.is_dir() and path.name != ".harvest"]
    assert '"' not in model.name
    for path in model.rglob("*.py"):
        compile(path.read_text(), path.name, "exec")
