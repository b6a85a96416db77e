from __future__ import annotations

import pytest


def test_a_local_directory(harvest, registry, tiny, tmp_path):
    assert harvest("--model", tiny, "--only", "silu", "--out", "h").code == 0
    assert list(registry(tmp_path / "h")) == ["tiny-llama"]


def test_two_models_share_a_registry(harvest, registry, tiny, tmp_path):
    (tmp_path / "other.json").write_text((tiny / "config.json").read_text())
    assert harvest("--model", tiny, "--model", "other.json", "--only", "silu", "--out", "h").code == 0
    assert list(registry(tmp_path / "h")) == ["other", "tiny-llama"]


def test_a_bare_model_type(harvest, registry, tmp_path):
    assert harvest("--model", "gpt2", "--layers", 1, "--only", "torch.add.1", "--out", "h").code == 0
    assert list(registry(tmp_path / "h")) == ["gpt2"]


def test_an_unknown_model_is_one_sentence(harvest, tmp_path):
    outcome = harvest("--model", "no-such-model", "--offline", "--quiet")
    assert outcome.code == 4
    assert outcome.err.startswith("HV101 ")
    assert len(outcome.err.splitlines()) == 1
    assert not (tmp_path / "harvested" / "kernels.json").exists()


@pytest.mark.parametrize("arguments", [[], ["--model"], ["--nonsense"], ["--model", "m", "--seq-len", "0"]])
def test_a_wrong_command_line_is_usage(harvest, arguments):
    outcome = harvest(*arguments)
    assert outcome.code == 4
    assert outcome.err.startswith("HV904 ")
    assert outcome.err.endswith(" Try: `harvest --help`.\n")
    assert len(outcome.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["simulate"], "harvest simulate"),
        (["lint", "--nonsense"], "harvest lint"),
        (["simulate", "x.ktir", "--pipeline", "psychic"], "harvest simulate"),
        (["nonsense"], "harvest"),
    ],
)
def test_every_command_refuses_in_one_sentence(harvest, arguments, command):
    outcome = harvest(*arguments)
    assert outcome.code == 4
    assert outcome.err.startswith("HV904 ")
    assert outcome.err.endswith(f" Try: `{command} --help`.\n")
    assert len(outcome.err.splitlines()) == 1


def test_a_directory_without_configuration_is_named_as_such(harvest, tmp_path):
    (tmp_path / "sam1").mkdir()
    for model in (tmp_path / "sam1", "./sam1"):
        outcome = harvest("--model", model, "--offline", "--quiet")
        assert outcome.code == 4
        assert outcome.err.startswith(f"HV112 `{model}` is no model: the directory has no config.json.")
        assert "did you mean" not in outcome.err


def test_a_hub_id_that_is_not_cached_is_no_unknown_model(harvest):
    outcome = harvest("--model", "ibm-granite/granite-9", "--offline", "--quiet")
    assert outcome.code == 4
    assert outcome.err.startswith("HV104 ")
    assert "did you mean" not in outcome.err
    assert "config.json" in outcome.err
    assert "--offline" in outcome.err
