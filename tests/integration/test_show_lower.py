from __future__ import annotations

import pytest


@pytest.fixture
def harvested(harvest, tiny, tmp_path):
    assert harvest("--model", tiny, "--only", "silu", "--out", "h").code == 0
    return tmp_path / "h" / "tiny-llama"


@pytest.mark.parametrize(
    ("stage", "file"),
    [("triton", "triton_kernel.py"), ("inductor", "inductor_kernel.py"), ("wrapper", "wrapper.py")],
)
def test_show_prints_the_file_of_a_stage(harvest, harvested, stage, file):
    outcome = harvest("show", "silu.1", "--stage", stage, "--out", "h")
    assert outcome.code == 0
    assert outcome.out == (harvested / "torch.nn.functional.silu.1_spyre" / file).read_text()


def test_show_prints_every_op_that_matches(harvest, harvested):
    outcome = harvest("show", "silu", "--stage", "entry", "--out", "h")
    assert outcome.out.count('"status": "ok"') == 2


def test_show_of_an_unknown_op_is_one_sentence(harvest, harvested):
    outcome = harvest("show", "no_such_op", "--out", "h")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("HV507 ")


def test_lower_prints_the_ktir_of_the_folder_again(harvest, harvested):
    folder = harvested / "torch.nn.functional.silu.1_spyre"
    (file,) = folder.glob("*.ktir")
    for argument in (folder, folder / "triton_kernel.py"):
        outcome = harvest("lower", argument)
        assert outcome.code == 0
        assert outcome.out.strip() == file.read_text()[file.read_text().index("module {") :].strip()


def test_lower_of_another_folder_is_one_sentence(harvest, tmp_path):
    outcome = harvest("lower", tmp_path)
    assert outcome.code == 4
    assert outcome.err.startswith("HV506 ")
    assert "it has no wrapper.py" in outcome.err


def test_lower_of_a_path_that_is_not_there_names_the_path(harvest):
    for path in ("nofolder", "nofolder/triton_kernel.py"):
        outcome = harvest("lower", path)
        assert outcome.code == 4
        assert outcome.err.startswith(f"HV901 {path} cannot be read: no such file")
