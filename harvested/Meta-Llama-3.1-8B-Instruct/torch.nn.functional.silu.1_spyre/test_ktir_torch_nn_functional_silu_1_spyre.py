"""Tiers T0, T1 and T2 of torch.nn.functional.silu.1 of Meta-Llama-3.1-8B-Instruct, and their negative
controls.
"""

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
