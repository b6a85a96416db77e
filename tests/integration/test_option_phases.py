from __future__ import annotations

import pytest


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_only_that_phase(harvest, registry, tiny, tmp_path, phase):
    harvest("--model", tiny, "--only", "silu", "--phases", phase, "--out", "h")
    (op,) = registry(tmp_path / "h")["tiny-llama"]["ops"].values()
    assert op["phases"] == [phase]


@pytest.mark.parametrize("phases", ["", "training", "prefill,training"])
def test_another_phase_is_usage(harvest, tiny, phases):
    outcome = harvest("--model", tiny, "--phases", phases)
    assert outcome.code == 4
    assert "prefill, decode" in outcome.err
