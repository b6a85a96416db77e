from __future__ import annotations


def test_two_processes_give_the_same_bytes_as_one(harvest, tiny, tmp_path, tree):
    for jobs in (1, 2):
        assert harvest("--model", tiny, "--only", "silu", "--jobs", jobs, "--out", f"h{jobs}").code == 0
    one, two = tree(tmp_path / "h1"), tree(tmp_path / "h2")
    assert len(one) > 5
    assert one == two
