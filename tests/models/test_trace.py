"""Whole models."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tracer.models.build import one_line
from tracer.models.config import ModelConfig
from tracer.models.errors import BadOption, BuildFailure, MissingPackage, TraceFailure
from tracer.models.trace import Trace, trace


def test_a_decoder_has_two_phases(traces: dict[str, Trace]) -> None:
    found = traces["llama"]
    assert (found.phases, found.failures) == (("prefill", "decode"), ())
    names = {op.call.name: op for op in found.ops}
    assert "decode" in names["torch.Tensor.index_copy_"].phases
    assert names["torch.Tensor.index_copy_"].call.tensors[0].shape == (1, 2, 32, 16)
    zeros = [op for op in found.ops if op.call.name == "torch.zeros" and op.call.args[0] == (1, 2, 32, 16)]
    assert [op.count for op in zeros] == [6]


def test_counts_follow_the_layers(traces: dict[str, Trace]) -> None:
    silu = [op for op in traces["llama"].ops if op.call.name == "torch.nn.functional.silu"]
    assert [(op.count, op.phases) for op in silu] == [(3, ("prefill",)), (3, ("decode",))]
    assert silu[0].modules == ("model.layers.*.mlp.act_fn",)
    head = [op for op in traces["llama"].ops if op.call.tensors[1:] and op.call.tensors[1].shape == (128, 64)]
    assert {op.modules for op in head if op.call.name.endswith("linear")} == {("lm_head",)}


def test_layers_truncates(llama: ModelConfig) -> None:
    short = trace(llama, layers=1, phases=["prefill"])
    assert [op.count for op in short.ops if op.call.name == "torch.nn.functional.silu"] == [1]
    assert short.phases == ("prefill",)


def test_options_reach_the_tensors(llama: ModelConfig) -> None:
    found = trace(llama, dtype=torch.bfloat16, batch=2, seq_len=5, phases=["prefill"], layers=1)
    silu = next(op for op in found.ops if op.call.name == "torch.nn.functional.silu")
    assert (silu.call.tensors[0].shape, silu.call.tensors[0].dtype) == ((2, 5, 96), "torch.bfloat16")


def test_traces_repeat(llama: ModelConfig, traces: dict[str, Trace]) -> None:
    assert trace(llama, max_cache_len=32) == traces["llama"]


def test_an_encoder_has_one_phase(traces: dict[str, Trace]) -> None:
    found = traces["vit"]
    assert found.phases == ("forward",)
    assert next(op for op in found.ops if op.call.name.endswith("conv2d")).call.tensors[0].shape == (
        1,
        3,
        32,
        32,
    )


def test_an_encoder_decoder_decodes_against_two_caches(traces: dict[str, Trace]) -> None:
    found = traces["t5"]
    assert (found.phases, found.failures) == (("prefill", "decode"), ())
    lengths = {op.call.tensors[0].shape[2] for op in found.ops if op.call.name == "torch.Tensor.index_copy_"}
    assert 16 in lengths


@pytest.mark.parametrize(("dtype", "kept"), [(torch.float16, True), (torch.bfloat16, False)])
def test_parameters_have_the_dtypes_that_loading_gives_them(
    t5: ModelConfig, dtype: torch.dtype, kept: bool
) -> None:
    # T5 asks for `wo` in float32 where the rest is float16.
    found = trace(t5, dtype=dtype, phases=["prefill"])
    weights = {op.call.tensors[1].dtype for op in found.ops if op.call.name.endswith("linear")}
    assert weights == {str(dtype), *(["torch.float32"] if kept else [])}


def test_routers_stay_in_float32() -> None:
    data = {
        "model_type": "ernie4_5_moe",
        "hidden_size": 32,
        "intermediate_size": 32,
        "moe_intermediate_size": 16,
        "moe_num_experts": 4,
        "moe_k": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "vocab_size": 50,
    }
    found = trace(ModelConfig("tiny-moe", data, "path"), dtype=torch.bfloat16, phases=["prefill"])
    weights = {op.call.tensors[1] for op in found.ops if op.call.name.endswith("linear")}
    assert {weight.dtype for weight in weights if weight.shape == (4, 32)} == {"torch.float32"}
    assert {weight.dtype for weight in weights if weight.shape == (32, 32)} == {"torch.bfloat16"}


def test_a_decoder_is_given_all_that_its_encoder_returns() -> None:
    # Moonshine's decoder reads a mask from its encoder's output, which no hidden state holds.
    data = {
        "model_type": "moonshine",
        "hidden_size": 32,
        "intermediate_size": 32,
        "encoder_num_hidden_layers": 1,
        "decoder_num_hidden_layers": 1,
        "encoder_num_attention_heads": 2,
        "decoder_num_attention_heads": 2,
        "vocab_size": 99,
    }
    found = trace(ModelConfig("tiny-moonshine", data, "path"), max_cache_len=16)
    assert (found.phases, found.failures) == (("prefill", "decode"), ())


def test_a_tower_that_text_does_not_reach_is_a_phase() -> None:
    data = {
        "model_type": "llava",
        "text_config": {
            "model_type": "llama",
            "hidden_size": 32,
            "intermediate_size": 32,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "num_hidden_layers": 1,
            "vocab_size": 99,
        },
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_attention_heads": 2,
            "num_hidden_layers": 2,
            "image_size": 28,
            "patch_size": 14,
        },
    }
    found = trace(ModelConfig("tiny-llava", data, "path"))
    assert found.phases == ("prefill", "decode", "model.vision_tower")
    assert any(op.phases == ("model.vision_tower",) and op.call.name.endswith("conv2d") for op in found.ops)
    # What joins the two needs an image among the tokens.
    assert found.unreached == ("model.multi_modal_projector",)


SERIES = {
    "prediction_length": 8,
    "context_length": 24,
    "lags_sequence": [1, 2, 5],
    "num_time_features": 2,
    "d_model": 32,
}


@pytest.mark.parametrize("kind", ["informer", "time_series_transformer"])
def test_a_time_series_reaches_back_by_the_largest_lag(kind: str) -> None:
    found = trace(ModelConfig("series", {"model_type": kind, **SERIES}, "path"), batch=3, layers=1)
    assert (found.phases, found.failures) == (("forward",), ())
    shapes = {spec.shape for op in found.ops for spec in op.call.tensors}
    assert {(3, 24 + 5), (3, 24 + 5, 2), (3, 8), (3, 8, 2)} <= shapes


def test_a_series_that_a_dtype_does_not_carry_is_refused_with_the_reason() -> None:
    config = ModelConfig("series", {"model_type": "autoformer", **SERIES}, "path")
    assert "Unsupported dtype Half" in str(trace(config, layers=1).failures[0])
    assert trace(config, layers=1, dtype=torch.float32).failures == ()


CODEBOOKS = {
    "model_type": "musicgen_decoder",
    "hidden_size": 32,
    "ffn_dim": 32,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "num_codebooks": 3,
    "vocab_size": 99,
}


def test_every_codebook_has_a_row_of_tokens() -> None:
    found = trace(ModelConfig("codebooks", CODEBOOKS, "path"), batch=2, seq_len=5, max_cache_len=16)
    assert (found.phases, found.failures) == (("prefill", "decode"), ())
    tokens = {spec.shape for op in found.ops for spec in op.call.tensors if spec.dtype == "torch.int64"}
    assert {(6, 5), (6, 1)} <= tokens


XLNET = {"model_type": "xlnet", "d_model": 32, "d_inner": 32, "n_head": 2, "n_layer": 1, "vocab_size": 99}


def test_parameters_of_another_dtype_are_cast_where_the_model_does_not_run_with_them() -> None:
    # XLNet declares float32 whatever is asked for, and multiplies it by what is float16.
    found = trace(ModelConfig("tiny-xlnet", XLNET, "path"))
    assert (found.phases, found.failures) == (("forward",), ())
    einsums = [op.call for op in found.ops if op.call.name.endswith("einsum")]
    assert {spec.dtype for call in einsums for spec in call.tensors} == {"torch.float16"}
    assert found.adapted == ("its parameters are all float16, for it does not run with others",)


def test_the_quoted_error_is_that_of_the_main_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.models.trace.unify", lambda model, dtype: False)
    found = trace(ModelConfig("tiny-xlnet", XLNET, "path"))
    assert "expected scalar type torch.float16 but found torch.float32" in str(found.failures[0])


def test_a_model_that_needs_more_layers_to_be_built_has_them() -> None:
    # RT-DETR ties the boxes of the second layer to those of the first.
    model = trace(ModelConfig("rt", {"model_type": "rt_detr_v2", "num_queries": 5}, "path"), layers=1)
    assert (model.phases, model.failures) == (("forward",), ())
    assert model.adapted == ("it has 2 layers, for it does not build with 1",)


def test_a_model_that_does_not_build_is_told_what_to_try() -> None:
    with pytest.raises(BuildFailure, match="prediction_length") as caught:
        trace(ModelConfig("informer", {"model_type": "informer"}, "model_type"), layers=1)
    assert "Try: the config.json of a published model" in str(caught.value)
    with pytest.raises(BuildFailure, match="transformers has no model for") as caught:
        trace(ModelConfig("part", {"model_type": "vibevoice_diffusion"}, "model_type"))
    assert "Try: the model that this is a part of" in str(caught.value)


def test_layers_are_blamed_where_the_whole_model_builds(
    llama: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import LlamaForCausalLM

    def build(self: object, config: Any, **_: object) -> None:
        if config.num_hidden_layers == 1:
            raise ValueError("one layer is too few")
        raise_or_build(self, config)

    raise_or_build = LlamaForCausalLM.__init__
    monkeypatch.setattr("tracer.models.build.MORE_LAYERS", 0)
    monkeypatch.setattr(LlamaForCausalLM, "__init__", build)
    with pytest.raises(BuildFailure, match=r"one layer is too few.* Try: no --layers"):
        trace(llama, layers=1)


def test_a_package_that_is_missing_is_named(llama: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import LlamaForCausalLM

    def fail(self: object, *_: object, **__: object) -> None:
        raise ImportError("\nBackbone requires the abacus library.\nYou can install it.\n")

    monkeypatch.setattr(LlamaForCausalLM, "__init__", fail)
    with pytest.raises(MissingPackage, match=r"HV116 .*requires the abacus library\. Try: install it"):
        trace(llama)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mat1 and mat2 differ\nException raised from f at g.cpp:1", "ValueError: mat1 and mat2 differ"),
        ("Validation error:\n  no such size", "ValueError: Validation error: no such size"),
        ("Unknown <class 'a.b.C'> here", "ValueError: Unknown C here"),
        ("No such type. One of " + ", ".join(["llama"] * 99), "ValueError: No such type."),
        ("x " * 200, f"ValueError: {'x ' * 94}..."),
        ("", "ValueError:"),
    ],
)
def test_an_error_is_quoted_on_one_line(text: str, line: str) -> None:
    assert one_line(ValueError(text)) == line


@pytest.mark.parametrize("checked", [True, False])
def test_checks_of_distributions_are_as_before_once_a_model_is_traced(
    llama: ModelConfig, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", checked)
    trace(llama, layers=1)
    assert torch.distributions.Distribution._validate_args is checked


@pytest.mark.parametrize("option", ["seq_len", "batch", "max_cache_len"])
def test_sizes_must_be_positive(llama: ModelConfig, option: str) -> None:
    with pytest.raises(BadOption, match=option):
        trace(llama, **{option: 0})  # type: ignore[arg-type]


def test_unknown_phases_are_refused(llama: ModelConfig) -> None:
    with pytest.raises(BadOption, match="prefill, decode"):
        trace(llama, phases=["nothing"], layers=1)


def test_impossible_dimensions_are_one_error() -> None:
    data = {"model_type": "gpt2", "n_embd": 10, "n_head": 3, "n_layer": 1}
    with pytest.raises((BuildFailure, TraceFailure)) as caught:
        trace(ModelConfig("odd", data, "path"))
    assert caught.value.code.startswith("HV10")


def test_endless_phases_stop(llama: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracer.models.record.MAX_CALLS", 60)
    found = trace(llama)
    assert found.phases == ()
    assert "HV110" in str(found.failures[0])
    assert found.ops


def test_a_failing_phase_keeps_what_it_did(llama: ModelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama.modeling_llama import LlamaMLP

    def fail(self: object, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no such luck")

    monkeypatch.setattr(LlamaMLP, "forward", fail)
    found = trace(llama, layers=1)
    assert found.phases == ()
    assert "no such luck" in str(found.failures[0])
    assert any(op.call.name == "torch.nn.functional.softmax" for op in found.ops)
    assert not any(op.call.name == "torch.nn.functional.silu" for op in found.ops)
