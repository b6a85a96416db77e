"""Small models for the whole room."""

from __future__ import annotations

import pytest

from tracer.models.config import ModelConfig
from tracer.models.trace import Trace, trace

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 128,
}
VIT = {
    "architectures": ["ViTForImageClassification"],
    "model_type": "vit",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 1,
    "image_size": 32,
    "patch_size": 8,
}
T5 = {
    "model_type": "t5",
    "d_model": 32,
    "d_ff": 64,
    "d_kv": 8,
    "num_heads": 4,
    "num_layers": 1,
    "vocab_size": 100,
}


@pytest.fixture(scope="session")
def llama() -> ModelConfig:
    return ModelConfig("tiny-llama", LLAMA, "path")


@pytest.fixture(scope="session")
def t5() -> ModelConfig:
    return ModelConfig("tiny-t5", T5, "path")


@pytest.fixture(scope="session")
def traces(llama: ModelConfig, t5: ModelConfig) -> dict[str, Trace]:
    return {
        "llama": trace(llama, max_cache_len=32),
        "vit": trace(ModelConfig("tiny-vit", VIT, "path")),
        "t5": trace(t5, max_cache_len=16),
    }
