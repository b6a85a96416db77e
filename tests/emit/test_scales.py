"""Which inputs are scaled down, so that nothing that the op computes from them saturates."""

from __future__ import annotations

from tracer.capture import capture
from tracer.emit.pieces import input_expression
from tracer.emit.scales import input_scales
from tracer.validate.call_text import parse_identity

ATTENTION = (
    "torch.nn.functional.multi_head_attention_forward($0, $1, $1, 256, 4, $2, $3, None, None, False, 0.0, $4,"
    " $5, training=False); $0=torch.float16[1, 1, 256]:[256, 256, 1]+0; $1=torch.float16[20, 1, 256]:[256,"
    " 256, 1]+0; $2=torch.float16[768, 256]:[256, 1]+0; $3=torch.float16[768]:[1]+0; $4=torch.float16[256,"
    " 256]:[256, 1]+0; $5=torch.float16[256]:[1]+0"
)
LINEAR = (
    "torch.nn.functional.linear($0, $1, None); $0=torch.float16[1, 5, 300]:[1500, 300, 1]+0;"
    " $1=torch.float16[40, 300]:[300, 1]+0"
)
SDPA = "torch.nn.functional.scaled_dot_product_attention($0, $1, $2); " + "; ".join(
    f"${i}=torch.float16[1, 2, 8, 64]:[1024, 512, 64, 1]+0" for i in range(3)
)


def scales(identity: str) -> dict[str, float]:
    return input_scales(capture(parse_identity(identity)))


def test_weights_and_biases_before_a_softmax_are_small_and_data_is_not():
    found = scales(ATTENTION)
    assert set(found) == {"in_proj_weight", "in_proj_bias", "x4"}
    # 1/sqrt(256) for the last projection, less for what the scores are computed from.
    assert found["x4"] == 2.0**-4
    assert found["in_proj_weight"] < found["x4"] < found["in_proj_bias"] < 1


def test_an_op_without_an_exponential_keeps_its_values():
    assert scales(LINEAR) == {}


def test_scores_that_are_divided_by_the_root_of_their_length_do_not_saturate():
    assert scales(SDPA) == {}


def test_the_scale_stands_in_the_generated_inputs():
    assert input_expression("w", None, scale=0.125).endswith("generator=generator, scale=0.125)")
    assert "scale" not in input_expression("w", None)
