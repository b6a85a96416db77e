from __future__ import annotations

import pytest


@pytest.mark.parametrize("pattern", ["silu", "torch.nn.functional.si*", "*.silu.?"])
def test_a_part_of_the_name_or_a_pattern(harvest, registry, tiny, tmp_path, pattern):
    assert harvest("--model", tiny, "--only", pattern, "--out", "h").code == 0
    assert list(registry(tmp_path / "h")["tiny-llama"]["ops"]) == [
        "torch.nn.functional.silu.1",
        "torch.nn.functional.silu.2",
    ]


def test_nothing_that_matches_is_nothing_harvested(harvest, tiny, tmp_path):
    outcome = harvest("--model", tiny, "--only", "no_such_op", "--quiet", "--out", "h")
    assert outcome.code == 5
    assert outcome.err.startswith("HV113 no op of tiny-llama matches `--only no_such_op`; it calls ")
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "h" / "kernels.json").exists()


@pytest.mark.parametrize("pattern", ["sillu", "torch.*.sillu.*", "torch.nn.functional.sillu.1"])
def test_names_near_to_a_pattern_are_told(harvest, tiny, pattern):
    outcome = harvest("--model", tiny, "--only", pattern, "--quiet", "--out", "h")
    assert outcome.code == 5
    assert "near to it: torch.nn.functional.silu." in outcome.err


def test_the_other_ops_of_the_registry_stay(harvest, registry, tiny, tmp_path, tree):
    harvest("--model", tiny, "--only", "silu", "--out", "h")
    before = tree(tmp_path / "h" / "tiny-llama")
    harvest("--model", tiny, "--only", "neg", "--out", "h")
    after = tree(tmp_path / "h" / "tiny-llama")
    assert before.items() < after.items()
    names = registry(tmp_path / "h")["tiny-llama"]["ops"]
    assert {"torch.nn.functional.silu.1", "torch.neg.1"} <= set(names)


@pytest.mark.parametrize("pattern", ["", " "])
def test_an_empty_pattern_is_no_pattern(harvest, tiny, pattern, tmp_path):
    outcome = harvest("--model", tiny, "--only", pattern, "--out", "h")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err == "HV904 Invalid value for --only: it names none. Try: `harvest --help`.\n"
    assert not (tmp_path / "h").exists()
