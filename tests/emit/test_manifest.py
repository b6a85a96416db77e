from __future__ import annotations

import dataclasses
import json

import pytest

from tracer.emit import manifest
from tracer.emit.errors import BrokenSum, MalformedManifest, UnwritableFolder
from tracer.emit.manifest import Entry, ModelEntry


def entry(status="ok", calls=2, **fields):
    return Entry(status, "torch.f($0)", calls, ("prefill",), ("model",), **fields)


OK = entry(
    digest="d", files={"wrapper.py": "a"}, stages=("k",), tiers={"T0": {"interpreter": {"digest": "d"}}}
)


def model(**ops):
    return ModelEntry("config", {"dtype": "fp16"}, ops or {"torch.f.1": OK})


def test_what_was_written_is_read(tmp_path):
    registry = {"m": model(), "n": model(**{"torch.g.1": entry("refused", code="HV301", reason="no")})}
    assert manifest.write(tmp_path, registry)
    assert manifest.read(tmp_path) == registry


def test_an_unchanged_registry_is_not_written_again(tmp_path):
    manifest.write(tmp_path, {"m": model()})
    before = (tmp_path / manifest.FILE).stat().st_mtime_ns
    assert not manifest.write(tmp_path, {"m": model()})
    assert (tmp_path / manifest.FILE).stat().st_mtime_ns == before


def test_no_registry_is_an_empty_one(tmp_path):
    assert manifest.read(tmp_path) == {}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 2, "models": {}}', '{"schema": 1, "models": {"m": {}}}', '{"schema": 1}'],
)
def test_a_malformed_registry_is_refused(tmp_path, text):
    (tmp_path / manifest.FILE).write_text(text)
    with pytest.raises(MalformedManifest, match="no registry"):
        manifest.read(tmp_path)


def test_order_of_insertion_does_not_show(tmp_path):
    names = ["torch.add.10", "torch.add.2", "torch.Tensor.to.1", "torch.add.1"]
    texts = []
    for order in (names, names[::-1]):
        manifest.write(tmp_path, {"b": model(**dict.fromkeys(order, OK)), "a": model()})
        texts.append((tmp_path / manifest.FILE).read_text())
    assert texts[0] == texts[1]
    keys = list(json.loads(texts[0])["models"]["b"]["ops"])
    assert keys.index("torch.add.2") < keys.index("torch.add.10")


def test_one_changed_fact_is_one_changed_line(tmp_path):
    texts = []
    for calls in (2, 3):
        changed = dataclasses.replace(OK, calls=calls)
        manifest.write(tmp_path, {"m": model(**{"torch.f.1": changed, "torch.g.1": OK})})
        texts.append((tmp_path / manifest.FILE).read_text().splitlines())
    differing = [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]]
    # The op's own line, and the model's two sums.
    assert len(differing) == 3


def test_the_sum_of_statuses_is_checked():
    found = model(a=entry(calls=2), b=entry("view", calls=3), c=entry("extern", calls=1, code="aten.sort"))
    assert found.calls == {"ok": 2, "view": 3, "extern": 1, "total": 6}
    found.check("m", 6)
    with pytest.raises(BrokenSum, match="7 calls were recorded and 6"):
        found.check("m", 7)


def test_a_failed_write_leaves_the_old_registry(tmp_path, monkeypatch):
    manifest.write(tmp_path, {"m": model()})
    before = (tmp_path / manifest.FILE).read_bytes()

    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(manifest.os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        manifest.write(tmp_path, {"m": model(**{"torch.g.1": OK})})
    assert (tmp_path / manifest.FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [manifest.FILE]


def test_a_lock_that_cannot_be_made_is_told(tmp_path):
    (manifest.state(tmp_path) / "lock").mkdir()
    with pytest.raises(UnwritableFolder, match=r"HV502 .* cannot be written"), manifest.locked(tmp_path):
        pass


def test_a_number_is_reserved_until_its_op_is_made():
    reserved = {"torch.f.1": "f()", "torch.f.2": "f(1)"}
    entry = ModelEntry("config", {}, {"torch.f.1": OK}, reserved=reserved)
    assert entry.to_json()["reserved"] == {"torch.f.2": "f(1)"}
    assert entry.names == {OK.identity: "torch.f.1", "f()": "torch.f.1", "f(1)": "torch.f.2"}
    assert ModelEntry.from_json(entry.to_json()).names["f(1)"] == "torch.f.2"
    assert (
        "reserved" not in ModelEntry("config", {}, {"torch.f.1": OK}, reserved={"torch.f.1": "f()"}).to_json()
    )
