"""Harvesting a model again: same bytes, same numbers, and nothing left of what the model no longer does."""

from __future__ import annotations

import json

SMALL = {"num_hidden_layers": 1, "vocab_size": 32, "max_position_embeddings": 32}


def configure(tiny, **changes):
    path = tiny / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_second_time_every_file_is_identical(harvest, tiny, tmp_path, tree):
    harvest("--model", tiny, "--only", "silu", "--out", "h")
    before = tree(tmp_path / "h")
    outcome = harvest("--model", tiny, "--only", "silu", "--out", "h", "--force", "--json")
    data = json.loads(outcome.out)
    assert data["files"] == {"create": 0, "update": 0, "identical": 10, "remove": 0}
    assert tree(tmp_path / "h") == before


def test_numbers_stay_when_an_op_comes_first_that_was_not_there(harvest, tiny, tmp_path, registry):
    harvest("--model", tiny, "--only", "silu", "--phases", "decode", "--out", "h")
    before = registry(tmp_path / "h")["tiny-llama"]["ops"]
    harvest("--model", tiny, "--only", "silu", "--out", "h")
    after = registry(tmp_path / "h")["tiny-llama"]["ops"]
    assert list(before) == ["torch.nn.functional.silu.1"]
    assert after["torch.nn.functional.silu.1"]["identity"] == before["torch.nn.functional.silu.1"]["identity"]
    assert "[1, 12, 128]" in after["torch.nn.functional.silu.2"]["identity"]


def test_a_complete_run_removes_what_vanished_and_a_partial_one_does_not(harvest, tiny, tmp_path, registry):
    configure(tiny, **SMALL)
    options = ("--model", tiny, "--out", "h", "--seq-len", 2, "--max-cache-len", 4, "--quiet")
    harvest(*options)
    gone = tmp_path / "h" / "tiny-llama" / "torch.nn.functional.silu.1_spyre"
    assert gone.is_dir()
    configure(tiny, hidden_act="relu")
    harvest(*options, "--only", "relu")
    assert gone.is_dir()
    assert "torch.nn.functional.silu.1" in registry(tmp_path / "h")["tiny-llama"]["ops"]
    harvest(*options)
    assert not gone.exists()
    assert "torch.nn.functional.silu.1" not in registry(tmp_path / "h")["tiny-llama"]["ops"]


def test_an_op_that_is_refused_now_leaves_no_folder(harvest, tiny, tmp_path, monkeypatch):
    import tracer.lower
    from tracer.errors import HarvestError

    def refused(*arguments):
        raise HarvestError(reason="no")

    harvest("--model", tiny, "--only", "silu.1", "--out", "h")
    folder = tmp_path / "h" / "tiny-llama" / "torch.nn.functional.silu.1_spyre"
    assert folder.is_dir()
    monkeypatch.setattr(tracer.lower, "lower", refused)
    harvest("--model", tiny, "--only", "silu.1", "--out", "h", "--force")
    assert not folder.exists()


def test_all_calls_are_accounted_for(harvest, tiny, tmp_path, registry):
    configure(tiny, **SMALL)
    harvest("--model", tiny, "--out", "h", "--seq-len", 2, "--max-cache-len", 4, "--quiet")
    model = registry(tmp_path / "h")["tiny-llama"]
    assert sum(op["calls"] for op in model["ops"].values()) == model["calls"]["total"] > 100
    assert all(op["status"] in ("ok", "view") or op["reason"] for op in model["ops"].values())
    folders = {path.name for path in (tmp_path / "h" / "tiny-llama").iterdir()}
    assert folders == {f"{name}_spyre" for name, op in model["ops"].items() if op["status"] == "ok"}


def test_oracles_of_a_whole_model_run(harvest, tiny, tmp_path):
    """Every wrapper of a small model can be loaded by path, makes inputs, and its oracle gives what it declares."""
    import importlib.util

    configure(tiny, **SMALL)
    harvest("--model", tiny, "--out", "h", "--seq-len", 2, "--max-cache-len", 4, "--quiet")
    wrappers = sorted((tmp_path / "h").rglob("wrapper.py"))
    assert len(wrappers) > 50
    for path in wrappers:
        spec = importlib.util.spec_from_file_location("wrapper", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        outputs = module.run(module.make_inputs(seed=1))
        assert len(outputs) == len(module.OUTPUTS)
        for name, output in zip(module.OUTPUTS, outputs, strict=True):
            shape, _, dtype = module.BUFFERS[name]
            assert (tuple(output.shape), output.dtype) == (shape, dtype), path
            assert not output.is_floating_point() or output.isfinite().any(), path
