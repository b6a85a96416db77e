"""An op's number does not depend on which ops were made first."""

from __future__ import annotations


def test_parts_of_a_model_get_the_numbers_of_the_whole(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "torch.mul*", "--out", "whole")
    for pattern in ("torch.mul.3", "torch.mul*"):
        harvest("--model", tiny, "--only", pattern, "--out", "parts")

    def identities(out):
        ops = registry(tmp_path / out)["tiny-llama"]["ops"]
        return {name: op["identity"] for name, op in ops.items()}

    assert identities("parts") == identities("whole")
    assert "torch.mul.3" not in registry(tmp_path / "parts")["tiny-llama"]["reserved"]
    assert "torch.neg.1" in registry(tmp_path / "parts")["tiny-llama"]["reserved"]
