from __future__ import annotations

import os

import pytest

from tracer.emit import folder
from tracer.emit.digest import digest, folder_digest, read_digests
from tracer.emit.errors import EditedFile, UnwritableFolder

FILES = {"wrapper.py": "one\n", "k.ktir": "two\n"}
KNOWN = {name: digest(text) for name, text in FILES.items()}


def write(out, files=FILES, known=KNOWN, **options):
    return {
        change.path: change.verb for change in folder.write(out, out / "m" / "op", files, known, **options)
    }


def test_verbs(tmp_path):
    assert write(tmp_path, known={}) == {"m/op/k.ktir": "create", "m/op/wrapper.py": "create"}
    assert set(write(tmp_path).values()) == {"identical"}
    changed = {"wrapper.py": "other\n", "new.ktir": "three\n"}
    verbs = write(tmp_path, changed)
    assert verbs == {"m/op/k.ktir": "remove", "m/op/new.ktir": "create", "m/op/wrapper.py": "update"}
    assert {path.name: path.read_text() for path in (tmp_path / "m" / "op").iterdir()} == changed


def test_identical_files_are_not_touched(tmp_path):
    write(tmp_path, known={})
    before = (tmp_path / "m" / "op" / "wrapper.py").stat()
    write(tmp_path)
    after = (tmp_path / "m" / "op" / "wrapper.py").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_an_edited_file_is_kept(tmp_path):
    write(tmp_path, known={})
    (tmp_path / "m" / "op" / "wrapper.py").write_text("edited\n")
    with pytest.raises(EditedFile, match=r"wrapper\.py"):
        write(tmp_path, {**FILES, "k.ktir": "new\n"})
    assert (tmp_path / "m" / "op" / "wrapper.py").read_text() == "edited\n"
    assert (tmp_path / "m" / "op" / "k.ktir").read_text() == "two\n"


def test_an_edited_file_is_overwritten_by_force(tmp_path):
    write(tmp_path, known={})
    (tmp_path / "m" / "op" / "wrapper.py").write_text("edited\n")
    assert write(tmp_path, force=True)["m/op/wrapper.py"] == "update"
    assert (tmp_path / "m" / "op" / "wrapper.py").read_text() == "one\n"


def test_a_file_of_unknown_origin_counts_as_edited(tmp_path):
    write(tmp_path, known={})
    with pytest.raises(EditedFile):
        write(tmp_path, {**FILES, "k.ktir": "new\n"}, known={})


def test_files_of_other_origin_stay(tmp_path):
    write(tmp_path, known={})
    (tmp_path / "m" / "op" / "NOTES.md").write_text("mine\n")
    (tmp_path / "m" / "op" / "__pycache__").mkdir()
    write(tmp_path, {"wrapper.py": "new\n"})
    assert sorted(path.name for path in (tmp_path / "m" / "op").iterdir()) == ["NOTES.md", "wrapper.py"]


def test_a_dry_run_writes_nothing(tmp_path):
    assert set(write(tmp_path, known={}, dry_run=True).values()) == {"create"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [1, 2])
def test_a_run_that_dies_leaves_a_whole_folder_or_none(tmp_path, monkeypatch, step):
    write(tmp_path, known={})
    rename, calls = os.rename, []

    def dying(source, target):
        calls.append(target)
        if len(calls) == step:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(folder.os, "rename", dying)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, {"wrapper.py": "new\n", "k.ktir": "new\n"})
    monkeypatch.undo()
    left = read_digests(tmp_path / "m" / "op")
    assert left in ({}, KNOWN)
    write(tmp_path, {"wrapper.py": "new\n", "k.ktir": "new\n"})
    assert (tmp_path / "m" / "op" / "k.ktir").read_text() == "new\n"
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["op"]


def test_an_unwritable_output_is_one_refusal(tmp_path):
    (tmp_path / "m").write_text("a file where a folder should be")
    with pytest.raises(UnwritableFolder, match="cannot be written"):
        write(tmp_path, known={})


def test_remove_takes_what_was_generated_and_nothing_else(tmp_path):
    write(tmp_path, known={})
    target = tmp_path / "m" / "op"
    (target / "NOTES.md").write_text("mine\n")
    changes = folder.remove(tmp_path, target, KNOWN)
    assert [change.verb for change in changes] == ["remove", "remove"]
    assert [path.name for path in target.iterdir()] == ["NOTES.md"]
    (target / "NOTES.md").unlink()
    write(tmp_path, known={})
    folder.remove(tmp_path, target, KNOWN)
    assert not target.exists()


def test_an_edited_folder_is_not_removed(tmp_path):
    write(tmp_path, known={})
    (tmp_path / "m" / "op" / "wrapper.py").write_text("edited\n")
    with pytest.raises(EditedFile):
        folder.remove(tmp_path, tmp_path / "m" / "op", KNOWN)
    assert len(list((tmp_path / "m" / "op").iterdir())) == 2


def test_the_folder_digest_is_that_of_python_and_ktir(tmp_path):
    write(tmp_path, known={})
    target = tmp_path / "m" / "op"
    before = folder_digest(target)
    (target / "NOTES.md").write_text("mine\n")
    assert folder_digest(target) == before
    (target / "k.ktir").write_text("other\n")
    assert folder_digest(target) != before
