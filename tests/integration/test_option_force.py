from __future__ import annotations

import json


def edited(tmp_path):
    return tmp_path / "h" / "tiny-llama" / "torch.nn.functional.silu.1_spyre" / "wrapper.py"


def test_an_edited_file_is_kept_without_it(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu.1", "--out", "h")
    digest = registry(tmp_path / "h")["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]["digest"]
    edited(tmp_path).write_text("mine")
    outcome = harvest("--model", tiny, "--only", "silu.1", "--out", "h", "--quiet")
    assert outcome.code != 0
    assert outcome.err.startswith("HV501 torch.nn.functional.silu.1: wrapper.py")
    assert edited(tmp_path).read_text() == "mine"
    op = registry(tmp_path / "h")["tiny-llama"]["ops"]["torch.nn.functional.silu.1"]
    assert (op["status"], op["code"], op["digest"]) == ("refused", "HV501", digest)


def test_an_edited_file_is_overwritten_with_it(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu.1", "--out", "h")
    original = edited(tmp_path).read_text()
    edited(tmp_path).write_text("mine")
    outcome = harvest("--model", tiny, "--only", "silu.1", "--out", "h", "--force", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["files"]["update"] == 1
    assert edited(tmp_path).read_text() == original


def test_everything_is_made_again_with_it(harvest, tiny):
    for options, resumed in (([], 0), ([], 1), (["--force"], 0)):
        outcome = harvest("--model", tiny, "--only", "silu.1", "--out", "h", "--json", *options)
        assert json.loads(outcome.out)["resumed"] == resumed
