from __future__ import annotations

import json


def test_nothing_is_written_and_everything_is_said(harvest, tiny, tmp_path):
    outcome = harvest("--model", tiny, "--only", "silu.1", "--dry-run", "--json", "--out", "h")
    assert outcome.code == 0
    assert not (tmp_path / "h").exists()
    data = json.loads(outcome.out)
    assert data["files"]["create"] == 5
    assert {change["verb"] for change in data["changes"]} == {"create"}


def test_an_existing_tree_stays(harvest, tiny, tmp_path, tree):
    harvest("--model", tiny, "--only", "silu.1", "--out", "h")
    before = tree(tmp_path / "h")
    harvest("--model", tiny, "--only", "neg", "--dry-run", "--out", "h")
    assert tree(tmp_path / "h") == before
