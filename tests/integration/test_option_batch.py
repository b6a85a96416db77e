from __future__ import annotations


def test_that_many_sequences_at_a_time(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu", "--batch", 3, "--phases", "prefill", "--out", "h")
    (op,) = registry(tmp_path / "h")["tiny-llama"]["ops"].values()
    assert "[3, 12, 128]" in op["identity"]
