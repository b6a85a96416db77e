from __future__ import annotations

from tracer.emit.journal import Finished, Journal

ONE = Finished("key", "ok", stages=("k",), files={"wrapper.py": "d"})


def test_what_was_added_is_there_in_the_next_run(tmp_path):
    with Journal(tmp_path, "m") as journal:
        journal.add("torch.f.1", ONE)
    assert Journal(tmp_path, "m").finished == {"torch.f.1": ONE}


def test_a_run_that_is_killed_loses_nothing_it_added(tmp_path):
    Journal(tmp_path, "m").add("torch.f.1", ONE)
    assert Journal(tmp_path, "m").finished == {"torch.f.1": ONE}


def test_a_half_written_line_is_skipped(tmp_path):
    with Journal(tmp_path, "m") as journal:
        journal.add("torch.f.1", ONE)
    path = tmp_path / ".harvest" / "m.jsonl"
    path.write_text(path.read_text() + '{"op": "torch.g.1", "key": "tr')
    assert list(Journal(tmp_path, "m").finished) == ["torch.f.1"]


def test_the_last_line_of_an_op_counts(tmp_path):
    with Journal(tmp_path, "m") as journal:
        journal.add("torch.f.1", ONE)
        journal.add("torch.f.1", Finished("other", "refused", "HV301", "no"))
    assert Journal(tmp_path, "m").finished["torch.f.1"].status == "refused"
    assert len((tmp_path / ".harvest" / "m.jsonl").read_text().splitlines()) == 1


def test_reading_only_writes_nothing(tmp_path):
    with Journal(tmp_path, "m", read_only=True) as journal:
        journal.add("torch.f.1", ONE)
    assert list(tmp_path.iterdir()) == []


def test_git_ignores_it(tmp_path):
    Journal(tmp_path, "m").add("torch.f.1", ONE)
    assert (tmp_path / ".harvest" / ".gitignore").read_text() == "*\n"
