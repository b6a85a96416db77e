"""Inputs by a model's documentation, and by what its errors say."""

from __future__ import annotations

import pytest
import torch

from tracer.models.config import resolve
from tracer.models.documented import documented, evaluate, extents
from tracer.models.inputs import Inputs
from tracer.models.repair import repairs
from tracer.models.trace import trace

SIZES = {"batch_size": 2, "num_patches": 16, "patch_size": 4}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`torch.FloatTensor` of shape `(batch_size, num_patches, 3 * patch_size ** 2)`", 3),
        ("of shape (batch_size,)", 1),
        ("shape: [a, b]", 2),
        ("*optional*", None),
    ],
)
def test_extents_of_a_documented_shape(text: str, found: int | None) -> None:
    shape = extents(text)
    assert (None if shape is None else len(shape)) == found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("batch_size", 2),
        ("3 * patch_size * patch_size", 48),
        ("config.num_patches + 1", 17),
        ("num_patches // 4", 4),
        ("unknown + 1", None),
        ("__import__('os')", None),
        ("batch size", None),
        ("1.5", None),
    ],
)
def test_value_of_a_documented_extent(text: str, value: int | None) -> None:
    assert evaluate(text, SIZES.get) == value


class Encoder(torch.nn.Module):
    """Wants 24 features and, on another line, a mask."""

    config = type("Config", (), {"hidden_size": 8})()

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(24, 8)

    def forward(self, states: torch.FloatTensor, mask: torch.LongTensor | None = None) -> torch.Tensor:
        """Encode.

        Args:
            states (`torch.FloatTensor` of shape `(batch_size, sequence_length, 24)`):
                What is encoded.
        """
        inner = self.inner(states)
        return inner * mask.sum()


def proposed(made: Inputs) -> list[Inputs]:
    model = Encoder()
    tensors = {name: torch.ones(shape) for name, (_, shape) in made.items()}
    with pytest.raises((RuntimeError, AttributeError)) as caught:
        model(**tensors)
    return list(repairs(made, caught.value, model, batch=2, seq_len=5))


def test_the_innermost_module_says_how_many_features() -> None:
    found = proposed({"states": ("float", (2, 5, 8))})
    assert found[0] == {"states": ("float", (2, 5, 24))}


def test_an_input_that_is_none_where_it_fails_is_given() -> None:
    found = proposed({"states": ("float", (2, 5, 24))})
    assert found[0] == {"states": ("float", (2, 5, 24)), "mask": ("int", (2, 5))}


def test_documentation_is_read() -> None:
    assert documented(Encoder(), "states") == ("batch_size", "sequence_length", "24")
    assert documented(Encoder(), "mask") is None


@pytest.mark.parametrize("model", ["siglip2", "mimi_decoder"])
def test_models_whose_inputs_no_table_has(model: str) -> None:
    traced = trace(resolve(model, offline=True), layers=1)
    assert traced.phases == ("forward",)
    assert traced.failures == ()


def test_what_no_repair_mends_keeps_its_own_phases() -> None:
    traced = trace(resolve("lightglue", offline=True), layers=1)
    assert [failure.fields["phase"] for failure in traced.failures] == ["forward", "keypoint_detector"]
