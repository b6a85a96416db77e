from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tracer.ktir.simulator import Module


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


def test_show_tells_what_is_missing_of_an_op(harvest, harvested):
    (file,) = (harvested / "torch.nn.functional.silu.1_spyre").glob("*.ktir")
    file.unlink()
    outcome = harvest("show", "silu.1", "--stage", "ktir", "--out", "h")
    assert outcome.code == 4
    assert outcome.err.startswith("HV508 torch.nn.functional.silu.1 of tiny-llama has no ktir: h/")


def test_show_of_an_unknown_model_names_it(harvest, harvested):
    outcome = harvest("show", "silu.1", "--model", "nope", "--out", "h")
    assert outcome.code == 4
    assert outcome.err.startswith("HV509 no model under h is called `nope`; there is tiny-llama.")


def test_lower_names_the_file_that_is_no_python(harvest, harvested):
    folder = harvested / "torch.nn.functional.silu.1_spyre"
    file = folder / "triton_kernel.py"
    text = file.read_text()
    file.write_text(f"{text}def (\n")
    outcome = harvest("lower", folder)
    assert outcome.code == 4
    assert "of triton_kernel.py: invalid syntax" in outcome.err
    assert f"line {len(text.splitlines()) + 1} of" in outcome.err
    file.write_text(text.replace("def triton_", "def other_"))
    assert ": triton_kernel.py has no triton_" in harvest("lower", folder).err


def test_lower_of_a_file_names_the_file(harvest, tmp_path):
    (tmp_path / "afile").write_text("")
    (tmp_path / "triton_kernel.py").write_text("")
    assert harvest("lower", "afile").err.startswith("HV506 afile is no folder of an op: it is a file.")
    said = "HV506 triton_kernel.py is no folder of an op: beside it is no wrapper.py."
    assert harvest("lower", "triton_kernel.py").err.startswith(said)


def test_lower_of_a_path_that_is_not_there_names_the_path(harvest):
    for path in ("nofolder", "nofolder/triton_kernel.py"):
        outcome = harvest("lower", path)
        assert outcome.code == 4
        assert outcome.err.startswith(f"HV901 {path} cannot be read: no such file")


def test_lower_at_another_size_and_number_of_cores(harvest, harvested):
    folder = harvested / "torch.nn.functional.silu.1_spyre"
    outcome = harvest("lower", folder, "--arg", "x0_size=5001", "--cores", "3")
    assert outcome.code == 0
    assert "grid = [3]" in outcome.out
    (name,) = (file.stem for file in folder.glob("*.ktir"))
    x = torch.randn(5001, dtype=torch.float16)
    result = Module.parse(outcome.out).function(name).run([x, torch.empty_like(x)], uninitialized=[1])
    torch.testing.assert_close(result.outputs[0], torch.nn.functional.silu(x))


MEAN = Path(__file__).parents[2] / "harvested" / "Meta-Llama-3.1-8B-Instruct" / "torch.mean.1_spyre"


def test_lower_of_an_axis_that_its_block_does_not_hold_is_refused(harvest):
    longer = ("--arg", "r0_size=5000", "--arg", "in0_stride_x0=5000")
    outcome = harvest("lower", MEAN, *longer)
    assert (outcome.code, outcome.out) == (4, "")
    said = "takes r0_size in one block, and 5000 elements are more than 4096. Try: --arg R0_BLOCK=8192"
    assert said in outcome.err
    outcome = harvest("lower", MEAN, *longer, "--arg", "R0_BLOCK=8192")
    x = torch.randn(12, 5000)
    result = Module.parse(outcome.out).function("triton_per_fused_mean_0").run([x, torch.empty(12, 1)])
    torch.testing.assert_close(result.outputs[0], x.mean(1, keepdim=True))


@pytest.mark.parametrize("value", ["x0_size", "x0_size=-1", "x0_size=1.5", "in_ptr0=1", "CORES=2", "n=3"])
def test_lower_at_no_number_is_one_sentence(harvest, harvested, value):
    outcome = harvest("lower", harvested / "torch.nn.functional.silu.1_spyre", "--arg", value)
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith(f"HV905 {value} is no NAME=NUMBER of these kernels. Try: --arg with a name")
    assert "x0_size, X0_BLOCK, and" in outcome.err


def test_lower_at_another_extent_than_its_text_holds_for_is_refused(harvest, harvested):
    folder = harvested / "torch.nn.functional.silu.1_spyre"
    kernel = folder / "triton_kernel.py"
    kernel.write_text(kernel.read_text().replace("x0 = tile * X0_BLOCK", "x0 = tile * X0_BLOCK + 77"))
    outcome = harvest("lower", folder, "--arg", "x0_size=5001")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("HV906 --arg x0_size=5001: 77 in the kernels' text may follow the traced")
    assert harvest("lower", folder, "--cores", "2").code == 0
