from __future__ import annotations


def test_the_prefill_has_that_many_tokens(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu", "--seq-len", 5, "--phases", "prefill", "--out", "h")
    (op,) = registry(tmp_path / "h")["tiny-llama"]["ops"].values()
    assert "[1, 5, 128]" in op["identity"]
