"""Harvesting a model again: same bytes, same numbers, and nothing left of what the model no longer does."""

from __future__ import annotations

import importlib.util
import json
import shutil

import pytest

from tracer import cli

SMALL = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 32,
    "max_position_embeddings": 32,
}
OPTIONS = ("--out", "h", "--seq-len", "2", "--max-cache-len", "4", "--offline", "--quiet")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory with a small model and all of its harvest in `h`. Not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small").mkdir()
    (folder / "small" / "config.json").write_text(json.dumps(SMALL))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with pytest.raises(SystemExit):
            cli.main(["--model", "small", *OPTIONS])
    return folder


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


def test_a_complete_run_removes_what_vanished_and_a_partial_one_does_not(harvest, whole, tmp_path, registry):
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    gone = tmp_path / "h" / "small" / "torch.nn.functional.silu.1_spyre"
    assert gone.is_dir()
    (tmp_path / "small" / "config.json").write_text(json.dumps({**SMALL, "hidden_act": "relu"}))
    harvest("--model", "small", *OPTIONS, "--only", "relu")
    assert gone.is_dir()
    assert "torch.nn.functional.silu.1" in registry(tmp_path / "h")["small"]["ops"]
    harvest("--model", "small", *OPTIONS)
    assert not gone.exists()
    assert "torch.nn.functional.silu.1" not in registry(tmp_path / "h")["small"]["ops"]
    assert (tmp_path / "h" / "small" / "torch.nn.functional.relu.1_spyre").is_dir()


def test_all_calls_are_accounted_for(whole, registry):
    model = registry(whole / "h")["small"]
    assert sum(op["calls"] for op in model["ops"].values()) == model["calls"]["total"] > 100
    assert all(op["status"] in ("ok", "view") or op["reason"] for op in model["ops"].values())
    folders = {path.name for path in (whole / "h" / "small").iterdir()}
    assert folders == {f"{name}_spyre" for name, op in model["ops"].items() if op["status"] == "ok"}


def test_oracles_of_a_whole_model_run(whole):
    """Every wrapper can be loaded by path, makes inputs, and its oracle gives what the wrapper declares."""
    wrappers = sorted((whole / "h").rglob("wrapper.py"))
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


def test_two_harvests_at_a_time_keep_what_the_other_made(harvest, tiny, tmp_path, registry, monkeypatch):
    import tracer.pipeline
    from tracer.pipeline import Options, harvest_model

    original = tracer.pipeline.harvest_op

    def another_meanwhile(task):
        with monkeypatch.context() as patch:
            patch.setattr(tracer.pipeline, "harvest_op", original)
            harvest_model(str(tiny), Options(out=tmp_path / "h", only="silu.2", offline=True))
        return original(task)

    monkeypatch.setattr(tracer.pipeline, "harvest_op", another_meanwhile)
    assert harvest("--model", tiny, "--only", "silu.1", "--out", "h").code == 0
    assert list(registry(tmp_path / "h")["tiny-llama"]["ops"]) == [
        "torch.nn.functional.silu.1",
        "torch.nn.functional.silu.2",
    ]
