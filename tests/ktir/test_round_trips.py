"""Harvested files, read in plain and in generic form, print as they are stored."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from xdsl.printer import Printer

from tracer.ktir.text.module import parse, print_module

FILES = sorted((Path(__file__).parents[2] / "harvested").rglob("*.ktir"))


def module_text(path: Path) -> str:
    """The file without the comments above its module."""
    text = path.read_text()
    return text[text.index("module {") :]


@pytest.mark.skipif(not FILES, reason="no harvested files here")
def test_harvested_files_print_as_they_are() -> None:
    for path in FILES:
        text = module_text(path)
        module = parse(path.read_text(), path.name)
        assert print_module(module) == text, path
        assert parse(text).is_structurally_equivalent(module), path


@pytest.mark.skipif(not FILES, reason="no harvested files here")
def test_the_generic_form_is_read_as_the_plain_one() -> None:
    for path in FILES:
        text = module_text(path)
        out = io.StringIO()
        Printer(out, print_generic_format=True).print_op(parse(text))
        assert out.getvalue() != text
        assert print_module(parse(out.getvalue())) == text, path


@pytest.mark.skipif(not FILES, reason="no harvested files here")
def test_the_public_parser_reads_them() -> None:
    parser = pytest.importorskip("ktir_cpu.parser", reason="ktir_cpu is not installed")
    for path in FILES:
        module = parser.KTIRParser().parse_module(module_text(path))
        assert len(module.functions) == 1, path
