from __future__ import annotations


def test_nothing_is_shown_when_all_is_well(harvest, tiny):
    outcome = harvest("--model", tiny, "--only", "silu.1", "--quiet")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_without_it_there_is_progress_and_a_table(harvest, tiny):
    outcome = harvest("--model", tiny, "--only", "silu.1")
    assert "1 of 1 ops" in outcome.err
    assert "tiny-llama" in outcome.out
    assert "5 create" in outcome.out
