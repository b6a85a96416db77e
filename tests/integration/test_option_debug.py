from __future__ import annotations


def test_a_refusal_shows_a_traceback_only_with_it(harvest):
    plain = harvest("--model", "no-such-model", "--offline")
    debug = harvest("--model", "no-such-model", "--offline", "--debug")
    assert "Traceback" not in plain.err
    assert "Traceback" in debug.err
    assert plain.code == debug.code == 4


def test_a_refusal_of_an_earlier_run_says_how_to_get_its_traceback(harvest, tiny, monkeypatch):
    import tracer.rewrite
    from tracer.errors import HarvestError

    def refused(*arguments):
        raise HarvestError(reason="no")

    monkeypatch.setattr(tracer.rewrite, "rewrite", refused)
    arguments = ("--model", tiny, "--only", "silu.1", "--quiet", "--debug", "--out", "h")
    assert "Traceback" in harvest(*arguments).err
    again = harvest(*arguments).err
    assert "Traceback" not in again
    assert again == (
        "tiny-llama: an earlier run settled torch.nn.functional.silu.1;"
        " --force makes them again, with tracebacks.\n"
    )
    assert "Traceback" in harvest(*arguments, "--force").err


def test_an_internal_error_is_one_sentence_without_it(harvest, tiny, monkeypatch):
    import tracer.pipeline

    def broken(*arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr(tracer.pipeline, "harvest_model", broken)
    plain = harvest("--model", tiny, "--quiet")
    assert (plain.code, len(plain.err.splitlines())) == (3, 1)
    assert "RuntimeError: a bug" in plain.err
    assert "Traceback" in harvest("--model", tiny, "--debug").err


def test_a_failed_op_shows_its_traceback_with_it(harvest, tiny, monkeypatch):
    import tracer.capture

    def broken(*arguments):
        raise RuntimeError("a bug")

    monkeypatch.setattr(tracer.capture, "capture", broken)
    plain = harvest("--model", tiny, "--only", "silu.1", "--quiet", "--out", "h")
    assert plain.err.startswith("torch.nn.functional.silu.1: capture failed with RuntimeError: a bug")
    assert "Traceback" not in plain.err
    assert "Traceback" in harvest("--model", tiny, "--only", "silu.1", "--debug", "--out", "h").err
