"""Tiers T0, T1 and T2 of torch.nn.functional.embedding.1 of Meta-Llama-3.1-8B-Instruct, and their negative
controls.
"""

import pytest

from tracer import testing

FOLDER = testing.folder(__file__)


def test_triton_equals_oracle():
    testing.check_triton(FOLDER)


def test_spyre_shape():
    testing.check_spyre_shape(FOLDER)


def test_ktir_equals_oracle():
    testing.check_ktir(FOLDER)


def test_wrong_kernels_fail():
    testing.check_negative_controls(FOLDER)


@pytest.mark.slow
def test_triton_equals_oracle_at_full_size():
    testing.check_triton(FOLDER, full_size=True)


@pytest.mark.slow
def test_ktir_equals_oracle_at_full_size():
    testing.check_ktir(FOLDER, full_size=True)
