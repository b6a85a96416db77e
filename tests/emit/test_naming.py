from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.emit import naming
from tracer.rewrite.kernel import Parameter, Plan, SpyreKernel

HOSTILE = [
    "../../etc/passwd",
    "..",
    "a/b",
    "a\x00b",
    'x"""\nimport os',
    "name with blank",
    "ü" * 300,
    "-rf",
    "a\nb",
]


def kernel(name: str, size: int, source: str | None = None, buffer: str = "a") -> SpyreKernel:
    parameters = (
        Parameter("p", "*fp16", buffer),
        Parameter("n", "i32", size),
        Parameter("CORES", "constexpr", 1),
    )
    return SpyreKernel(
        name, source or f"def {name}(p, n, CORES):\n    pass\n", parameters, 1, Plan(1, 1, 0, 0)
    )


def test_folder_and_test_file_of_an_op():
    assert naming.folder_name("torch.nn.functional.silu.1") == "torch.nn.functional.silu.1_spyre"
    assert naming.test_name("torch.nn.functional.silu.1") == "test_ktir_torch_nn_functional_silu_1_spyre.py"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_become_one_path_component(text):
    for name in (naming.folder_name(text), naming.test_name(text), naming.ktir_name(text)):
        assert "/" not in name
        assert not name.startswith((".", "-"))
        assert name.isprintable()
        assert len(name.encode()) < 200


def test_different_hostile_names_stay_different():
    assert len({naming.folder_name(text) for text in HOSTILE}) == len(HOSTILE)


@given(st.text(max_size=300))
def test_every_identifier_is_one(text):
    assert naming.identifier(text).isidentifier()


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("torch.nn.functional.silu.1", "silu"),
        ("torch.Tensor.__getitem__.2", "getitem"),
        ("torch.Tensor.index_copy_.1", "index_copy_"),
        ("torch.Tensor.__and__.1", "_and"),
        ("torch.ops.aten.add.3", "add"),
    ],
)
def test_launcher_is_named_after_the_op(op, name):
    assert naming.launcher_name(op) == name


def test_stages_of_one_name_and_other_sizes_get_names_of_their_own():
    first, second, third = naming.unique_kernels([kernel("k", 4), kernel("k", 8), kernel("k", 4)])
    assert [first.name, second.name, third.name] == ["k", "k_2", "k"]
    assert second.source.startswith("def k_2(")


def test_one_kernel_launched_twice_on_other_buffers_keeps_its_name():
    both = naming.unique_kernels([kernel("k", 4, buffer="a"), kernel("k", 4, buffer="b")])
    assert [found.name for found in both] == ["k", "k"]


def test_a_name_that_a_suffix_would_collide_with_is_skipped():
    names = [
        found.name for found in naming.unique_kernels([kernel("k", 4), kernel("k_2", 4), kernel("k", 8)])
    ]
    assert len(set(names)) == 3
    assert dataclasses.is_dataclass(kernel("k", 4))


def test_long_kernel_names_give_short_unique_files():
    files = {naming.ktir_name("triton_poi_fused_" + "add_mul_" * 40 + str(index)) for index in range(3)}
    assert len(files) == 3
    assert max(len(name) for name in files) <= 120
