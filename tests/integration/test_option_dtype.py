from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("option", "dtype"), [("fp16", "float16"), ("bf16", "bfloat16"), ("fp32", "float32")]
)
def test_the_model_is_built_in_the_dtype(harvest, registry, tiny, tmp_path, option, dtype):
    harvest("--model", tiny, "--only", "silu", "--dtype", option, "--out", "h")
    model = registry(tmp_path / "h")["tiny-llama"]
    assert model["options"]["dtype"] == option
    assert all(f"torch.{dtype}[" in op["identity"] for op in model["ops"].values())


def test_another_dtype_is_usage(harvest, tiny):
    assert harvest("--model", tiny, "--dtype", "fp8").code == 4
