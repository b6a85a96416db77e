from __future__ import annotations

import json


def test_stdout_is_one_object_a_model(harvest, tiny, tmp_path):
    outcome = harvest("--model", tiny, "--only", "silu", "--json", "--out", "h")
    data = json.loads(outcome.out)
    assert data["schema"] == 1
    assert data["model"] == "tiny-llama"
    assert data["ops"]["ok"] == 2
    assert data["calls"]["total"] == sum(data["calls"][status] for status in data["ops"])
    assert set(data["seconds"]) >= {"total", "trace", "capture", "rewrite", "lower", "emit"}
    assert outcome.err  # progress stays on stderr


def test_an_error_leaves_stdout_empty(harvest):
    outcome = harvest("--model", "no-such-model", "--offline", "--json")
    assert outcome.out == ""
