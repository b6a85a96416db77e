from __future__ import annotations


def test_the_default_is_harvested(harvest, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu.1")
    assert (
        tmp_path / "harvested" / "tiny-llama" / "torch.nn.functional.silu.1_spyre" / "wrapper.py"
    ).is_file()


def test_another_directory(harvest, tiny, tmp_path):
    harvest("--model", tiny, "--only", "silu.1", "--out", tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "kernels.json").is_file()
    assert not (tmp_path / "harvested").exists()


def test_a_directory_that_cannot_be_written(harvest, tiny, tmp_path):
    (tmp_path / "file").write_text("no directory")
    outcome = harvest("--model", tiny, "--only", "silu.1", "--out", "file", "--quiet")
    assert outcome.code == 4
    assert outcome.err.startswith("HV502 ")
    assert len(outcome.err.splitlines()) == 1
