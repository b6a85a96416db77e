"""Whole models."""

from __future__ import annotations

import pytest
import torch

from tracer.models.config import ModelConfig
from tracer.models.errors import BadOption, BuildFailure, TraceFailure
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
