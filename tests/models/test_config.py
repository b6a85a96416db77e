"""From a model id to a configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.errors import HarvestError
from tracer.models.build import native_config
from tracer.models.config import ModelConfig, presets, resolve, safe_name
from tracer.models.errors import (
    BadOption,
    MalformedConfig,
    NetworkFailure,
    NoConfiguration,
    RemoteCode,
    UnknownModel,
)


def write(folder: Path, data: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "config.json"
    file.write_text(data if isinstance(data, str) else json.dumps(data))
    return file


@pytest.mark.parametrize(
    "model_id",
    ["Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "meta-LLAMA-3.1-8b-instruct"],
)
def test_presets_go_by_name_and_hub_id(model_id: str) -> None:
    config = resolve(model_id, offline=True)
    assert (config.name, config.source) == ("Meta-Llama-3.1-8B-Instruct", "preset")
    native = native_config(config)
    assert (native.hidden_size, native.num_hidden_layers, native.vocab_size) == (4096, 32, 128256)
    assert (native.num_attention_heads, native.num_key_value_heads, native.intermediate_size) == (
        32,
        8,
        14336,
    )
    assert native.rope_parameters["rope_type"] == "llama3"


def test_every_preset_is_a_configuration() -> None:
    assert len(presets()) >= 2
    for name in presets():
        assert native_config(resolve(name, offline=True)).num_hidden_layers > 1


def test_a_model_type_has_defaults() -> None:
    config = resolve("gpt2", offline=True)
    assert config.source == "model_type"
    assert native_config(config).n_embd == 768


def test_paths_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "gpt2", {"model_type": "bert"})
    monkeypatch.chdir(tmp_path)
    assert resolve("gpt2", offline=True).data == {"model_type": "bert"}
    assert resolve("gpt2/config.json", offline=True).name == "gpt2"
    assert resolve(str(tmp_path / "gpt2"), offline=True).source == "path"


def test_unknown_names_get_near_matches() -> None:
    with pytest.raises(UnknownModel, match=r"did you mean .*granite"):
        resolve("granit", offline=True)
    with pytest.raises(UnknownModel) as caught:
        resolve("qqqqzzzz", offline=True)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        "{",
        "[]",
        "3",
        '{"hidden_size": 8}',
        '{"model_type": "no such type"}',
        '{"model_type": 3}',
        "[" * 100_000,
    ],
)
def test_malformed_configurations_are_refused(tmp_path: Path, data: str) -> None:
    write(tmp_path, data)
    with pytest.raises(MalformedConfig):
        resolve(str(tmp_path), offline=True)


def test_values_that_transformers_refuses_are_malformed(tmp_path: Path) -> None:
    write(tmp_path, {"model_type": "llama", "hidden_size": "wide"})
    with pytest.raises(MalformedConfig, match="hidden_size"):
        native_config(resolve(str(tmp_path), offline=True))


def test_bytes_that_are_no_text_are_malformed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00{}")
    with pytest.raises(MalformedConfig):
        resolve(str(tmp_path), offline=True)


def test_remote_code_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"model_type": "own", "auto_map": {"AutoConfig": "configuration_own.OwnConfig"}})
    with pytest.raises(RemoteCode, match=r"configuration_own\.OwnConfig"):
        resolve(str(tmp_path), offline=True)


def test_a_known_type_with_auto_map_uses_transformers_code(tmp_path: Path) -> None:
    write(tmp_path, {"model_type": "llama", "auto_map": {"AutoConfig": "x.Y"}})
    assert native_config(resolve(str(tmp_path), offline=True)).model_type == "llama"


def test_offline_never_asks_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = []

    def download(*args: object, **kwargs: object) -> str:
        asked.append(kwargs["local_files_only"])
        raise huggingface_hub.errors.LocalEntryNotFoundError("not here")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(NetworkFailure, match="someone/something") as caught:
        resolve("someone/something", offline=True)
    assert str(caught.value).endswith("download its config.json and pass the path, or leave out --offline.")
    assert asked == [True]
    with pytest.raises(NetworkFailure, match="someone/something"):
        resolve("someone/something")
    assert asked[1:] == [True, False]


@pytest.mark.parametrize(
    ("kind", "refusal", "said"),
    [
        ("GatedRepoError", NetworkFailure, "log in"),
        ("RepositoryNotFoundError", UnknownModel, "no model is called"),
        ("EntryNotFoundError", NoConfiguration, "the repository has no config.json"),
    ],
)
def test_what_the_hub_says_is_told(
    monkeypatch: pytest.MonkeyPatch, kind: str, refusal: type[HarvestError], said: str
) -> None:
    import huggingface_hub

    errors = huggingface_hub.errors

    def download(*args: object, **kwargs: object) -> str:
        if kwargs["local_files_only"]:
            raise errors.LocalEntryNotFoundError("not here")
        cls = getattr(errors, kind)
        raise cls.__new__(cls)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    with pytest.raises(refusal, match=said):
        resolve("someone/something")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty", "the directory has no config.json"),
        ("empty/notes.txt", "does not end in .json"),
        ("./nowhere", "no such file"),
        ("nowhere.json", "no such file"),
    ],
)
def test_paths_without_configuration_are_no_unknown_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notes.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoConfiguration, match=said):
        resolve(name, offline=True)


def test_an_empty_directory_hides_no_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve("gpt2", offline=True).source == "model_type"


@given(st.text(max_size=200), st.text(max_size=200))
def test_safe_names_are_one_component_and_stay_apart(first: str, second: str) -> None:
    for name in (first, second):
        safe = safe_name(name)
        assert safe
        assert len(safe) <= 100
        assert not safe.startswith((".", "-"))
        assert set(safe) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    assert (safe_name(first) == safe_name(second)) == (first == second)


@pytest.mark.parametrize("name", ["Meta-Llama-3.1-8B-Instruct", "granite", "qwen2_5_vl"])
def test_ordinary_names_are_kept(name: str) -> None:
    assert safe_name(name) == name


def test_digest_follows_the_content() -> None:
    assert (
        ModelConfig("a", {"x": 1, "y": 2}, "path").digest == ModelConfig("b", {"y": 2, "x": 1}, "path").digest
    )
    assert ModelConfig("a", {"x": 1}, "path").digest != ModelConfig("a", {"x": 2}, "path").digest


@pytest.mark.parametrize(
    ("model_type", "kinds"),
    [
        ("gemma3_text", ["sliding_attention", "full_attention"]),
        ("nemotron_h", ["linear_attention", "moe", "full_attention", "mlp"]),
        ("gpt_oss", ["sliding_attention", "full_attention"]),
    ],
)
def test_truncation_keeps_every_kind_of_layer(model_type: str, kinds: list[str]) -> None:
    native = native_config(resolve(model_type, offline=True), layers=2)
    assert native.num_hidden_layers == len(kinds)
    assert list(native.layer_types) == kinds


def test_truncation_reaches_nested_configurations_and_stages() -> None:
    nested = native_config(resolve("llava", offline=True), layers=1)
    assert nested.text_config.num_hidden_layers == 1
    assert nested.vision_config.num_hidden_layers == 1
    assert list(native_config(resolve("swin", offline=True), layers=1).depths) == [1, 1, 1, 1]
    assert native_config(resolve("t5", offline=True), layers=1).num_decoder_layers == 1
    assert native_config(resolve("gpt2", offline=True), layers=99).n_layer == 12


def test_outputs_that_are_taken_keep_their_number() -> None:
    dpt = native_config(resolve("dpt", offline=True), layers=1)
    assert (dpt.num_hidden_layers, list(dpt.backbone_out_indices)) == (4, [0, 1, 2, 3])
    backbone = native_config(resolve("zoedepth", offline=True), layers=1).backbone_config
    assert (backbone.num_hidden_layers, backbone.out_indices) == (4, [1, 2, 3, 4])
    assert backbone.stage_names == ["stem", "stage1", "stage2", "stage3", "stage4"]
    # Where they are among the layers that stay, they stay as well.
    kept = native_config(resolve("dpt", offline=True), layers=12)
    assert list(kept.backbone_out_indices) == [2, 5, 8, 11]
    data = {"model_type": "beit", "out_indices": [1, 3]}
    assert native_config(ModelConfig("b", data, "path"), layers=5).out_indices == [1, 3]


def test_layers_with_settings_of_their_own_are_kinds() -> None:
    gemma = native_config(resolve("gemma4_text", offline=True), layers=1)
    assert gemma.layer_types == ["sliding_attention", "full_attention"]
    dims = [layer.head_dim for layer in gemma.per_layer_config]
    whole = native_config(resolve("gemma4_text", offline=True))
    first = whole.layer_types.index("full_attention")
    assert dims == [whole.per_layer_config[0].head_dim, whole.per_layer_config[first].head_dim]
    assert dims[0] != dims[1]


def test_no_layers_is_refused() -> None:
    with pytest.raises(BadOption):
        native_config(resolve("gpt2", offline=True), layers=0)


def test_a_class_of_another_configuration_wants_a_part():
    """The registry of causal models has musicgen's decoder, too, for the configuration of the whole."""
    from transformers import MusicgenConfig

    from tracer.models.build import model_class

    assert model_class(MusicgenConfig(), "musicgen").__name__ == "MusicgenForConditionalGeneration"
