from __future__ import annotations


def test_calls_follow_the_layers(harvest, registry, tiny, tmp_path):
    calls = []
    for layers in (1, 2):
        harvest("--model", tiny, "--only", "silu.1", "--layers", layers, "--out", f"h{layers}")
        (op,) = registry(tmp_path / f"h{layers}")["tiny-llama"]["ops"].values()
        calls.append(op["calls"])
    assert calls == [1, 2]
