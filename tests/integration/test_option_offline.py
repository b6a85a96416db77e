from __future__ import annotations

import socket


def test_the_network_is_not_asked(harvest, monkeypatch):
    def refuse(*arguments, **keywords):
        raise AssertionError("the network was asked")

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    outcome = harvest("--model", "nobody/no-such-model", "--offline", "--quiet")
    assert outcome.code == 4
    assert outcome.err.startswith("HV104 ")
