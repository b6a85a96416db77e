from __future__ import annotations

import json

import torch


def test_stdout_is_one_object_a_model(harvest, tiny, tmp_path):
    outcome = harvest("--model", tiny, "--only", "silu", "--json", "--out", "h")
    data = json.loads(outcome.out)
    assert data["schema"] == 1
    assert data["model"] == "tiny-llama"
    assert data["ops"]["ok"] == 2
    assert data["calls"]["total"] == sum(data["calls"][status] for status in data["ops"])
    assert set(data["seconds"]) >= {"total", "trace", "capture", "rewrite", "lower", "emit"}
    assert outcome.err  # progress stays on stderr


def test_a_refused_model_has_its_object_too(harvest, tiny):
    outcome = harvest(
        "--model", "no-such-model", "--model", tiny, "--only", "silu", "--offline", "--json", "--out", "h"
    )
    assert outcome.code == 4
    refused, made = map(json.loads, outcome.out.splitlines())
    assert (refused["model"], refused["error"]["code"]) == ("no-such-model", "HV101")
    assert refused["error"]["message"] in outcome.err.splitlines()
    assert (made["model"], made["error"]) == ("tiny-llama", None)
    assert set(refused) == set(made)


def test_a_phase_that_stopped_is_told_with_its_code(harvest, tiny, registry, tmp_path, monkeypatch):
    from transformers.models.llama.modeling_llama import LlamaMLP

    def broken(self, x):
        torch.nn.functional.silu(self.gate_proj(x))
        raise ValueError("no such luck")

    monkeypatch.setattr(LlamaMLP, "forward", broken)
    outcome = harvest("--model", tiny, "--only", "silu", "--json", "--quiet", "--out", "h")
    assert outcome.code == 1
    data = json.loads(outcome.out)
    failure = data["failures"]["prefill"]
    assert failure["code"] == "HV106"
    assert "no such luck" in failure["reason"]
    assert data["options"]["phases"] == ["prefill"]
    assert registry(tmp_path / "h")["tiny-llama"]["failures"] == data["failures"]
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"HV106 {failure['reason']}")
    assert "in phase prefill" in line
