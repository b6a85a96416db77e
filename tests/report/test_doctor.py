from __future__ import annotations

import importlib.metadata

from tracer.report import doctor


def checks(monkeypatch, requirements):
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: requirements)
    return {check.name: check for check in doctor.examine()}


def test_what_is_installed_as_pinned_is_well(monkeypatch):
    found = importlib.metadata.version("torch").split("+")[0]
    assert checks(monkeypatch, [f"torch=={found}"])["torch"].ok


def test_another_version_is_not(monkeypatch):
    check = checks(monkeypatch, ["torch==1.0.0"])["torch"]
    assert not check.ok
    assert "needs ==1.0.0" in check.detail


def test_an_absent_distribution_is_not(monkeypatch):
    check = checks(monkeypatch, ["no-such-distribution>=1"])["no-such-distribution"]
    assert (check.ok, check.detail) == (False, "absent, needs >=1")


def test_extras_are_no_requirement(monkeypatch):
    assert "no-such-distribution" not in checks(monkeypatch, ['no-such-distribution>=1; extra == "dev"'])


def test_a_moved_private_name_is_named(monkeypatch):
    import tracer.capture

    assert checks(monkeypatch, [])["private names"].ok
    monkeypatch.setattr(tracer.capture, "missing_names", lambda: ("torch._inductor.moved",))
    check = checks(monkeypatch, [])["private names"]
    assert not check.ok
    assert "torch._inductor.moved" in check.detail


def test_templates_are_found(monkeypatch, tmp_path):
    import tracer.emit.templates

    assert checks(monkeypatch, [])["templates"].ok
    monkeypatch.setattr(tracer.emit.templates, "TEMPLATES", tmp_path)
    assert not checks(monkeypatch, [])["templates"].ok
