from __future__ import annotations


def test_the_static_cache_holds_that_many_tokens(harvest, registry, tiny, tmp_path):
    harvest("--model", tiny, "--only", "index_copy_", "--max-cache-len", 40, "--out", "h")
    ops = registry(tmp_path / "h")["tiny-llama"]["ops"]
    assert ops
    assert all("[1, 2, 40, 16]" in op["identity"] for op in ops.values())
