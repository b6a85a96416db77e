from __future__ import annotations

import pytest


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_only_that_phase(harvest, registry, tiny, tmp_path, phase):
    harvest("--model", tiny, "--only", "silu", "--phases", phase, "--out", "h")
    (op,) = registry(tmp_path / "h")["tiny-llama"]["ops"].values()
    assert op["phases"] == [phase]


@pytest.mark.parametrize("phases", ["", " , "])
def test_no_phase_at_all_is_usage(harvest, tiny, phases):
    outcome = harvest("--model", tiny, "--phases", phases)
    assert outcome.code == 4
    assert "--phases" in outcome.err


@pytest.mark.parametrize("phases", ["training", "prefill,training"])
def test_a_phase_that_the_model_lacks_is_usage(harvest, tiny, phases):
    outcome = harvest("--model", tiny, "--phases", phases, "--only", "silu", "--quiet")
    assert outcome.code == 4
    assert outcome.err.startswith("HV114 tiny-llama has no phase `training`; it has prefill, decode.")

    # The help says of which models these are the phases, and so does the advice.
    for told in (harvest("--help").out, outcome.err):
        assert all(word in told for word in ("prefill", "decode", "generate", "forward", "nested"))
