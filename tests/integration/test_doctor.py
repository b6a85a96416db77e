from __future__ import annotations

import json

import pytest

import tracer.report.doctor as doctor


@pytest.fixture
def installed(monkeypatch):
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: ["torch>=2"])


def test_a_sound_installation(harvest, installed):
    outcome = harvest("doctor")
    assert outcome.code == 0
    assert "BAD" not in outcome.out


def test_a_moved_private_name_fails_and_is_named(harvest, installed, monkeypatch):
    import tracer.capture

    monkeypatch.setattr(tracer.capture, "missing_names", lambda: ("torch._inductor.moved",))
    outcome = harvest("doctor", "--json")
    assert outcome.code == 1
    (bad,) = [check for check in json.loads(outcome.out) if not check["ok"]]
    assert "torch._inductor.moved" in bad["detail"]
