"""Values that follow from Python alone."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode

from tracer.models.values import Values


@pytest.fixture
def values() -> Values:
    return Values(FakeTensorMode())


def test_values_follow_from_factories(values: Values) -> None:
    with values.fake_mode, values:
        positions = torch.arange(12)
        assert isinstance(positions, FakeTensor)
        assert bool((positions.max() + 1) > 11)
        assert positions[3:5].tolist() == [3, 4]
        assert torch.nonzero(positions > 9).shape == (2, 1)


def test_writes_are_followed_into_views(values: Values) -> None:
    with values.fake_mode, values:
        counter = torch.zeros(3, dtype=torch.int64)
        view = counter[1:]
        counter.add_(2)
        assert view.tolist() == [2, 2]


def test_unknown_writes_are_forgotten_in_views(values: Values) -> None:
    with values.fake_mode:
        unknown = torch.empty(3, dtype=torch.int64)
        with values:
            counter = torch.zeros(3, dtype=torch.int64)
            view = counter[1:]
            counter.copy_(unknown)
            with pytest.raises(Exception, match=r".*"):
                view.tolist()


def test_unknown_branches_are_false_and_counted(values: Values) -> None:
    with values.fake_mode:
        unknown = torch.empty(3)
        with values:
            assert not (unknown > 0).any()
            with pytest.raises(DataDependentOutputException):
                unknown.sum().item()
    assert values.assumed == 1


def test_large_tensors_are_not_followed(values: Values) -> None:
    with values.fake_mode, values:
        big = torch.zeros(1 << 17)
        assert not bool(big.sum() == 0)
    assert values.assumed == 1


def test_copies_of_fake_tensors_are_fake(values: Values) -> None:
    import copy

    with values.fake_mode, values:
        layer = torch.nn.Linear(4, 4)
        layer.register_buffer("scale", torch.ones(4))
        copied = copy.deepcopy(layer)
        assert isinstance(copied.scale, FakeTensor)
        assert copied.scale is not layer.scale
