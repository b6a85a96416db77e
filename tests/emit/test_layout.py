from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracer.emit import layout


@given(st.text())
def test_quoted_is_the_text(text):
    assert ast.literal_eval(layout.quoted(text)) == text


def test_double_quotes_unless_that_costs_escapes():
    assert [layout.quoted(text) for text in ("a", "it's", 'say "x"')] == ['"a"', '"it\'s"', "'say \"x\"'"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.tuples(inner, inner)
            | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=20,
    )
)
def test_literal_and_statement_keep_the_value(value):
    text = layout.statement(layout.literal(value), "found = ")
    found: dict[str, object] = {}
    exec(text, found)
    assert found["found"] == value


def test_a_short_statement_stays_on_its_line():
    assert layout.statement("f(a, b)", "x = ", depth=1) == "    x = f(a, b)"


def test_a_long_call_breaks_at_its_arguments():
    arguments = ", ".join(f"argument_{index}" for index in range(12))
    lines = layout.statement(f"f({arguments}, key=(1, 2))", "x = ").split("\n")
    assert lines[0] == "x = f("
    assert lines[1:3] == ["    argument_0,", "    argument_1,"]
    assert lines[-2:] == ["    key=(1, 2),", ")"]


@given(st.text(max_size=500))
def test_a_long_string_is_the_text_and_fits(text):
    code = layout.long_string(text, "FOUND = ")
    found: dict[str, object] = {}
    exec(code, found)
    assert found["FOUND"] == text
    assert max(len(line) for line in code.splitlines()) <= layout.WIDTH


def test_strings_of_an_expression_get_the_formatters_quotes():
    assert layout.requote("f('a', b[\"it's\"], 'x')") == 'f("a", b["it\'s"], "x")'


@given(st.text(alphabet=st.characters(), max_size=400))
def test_nothing_ends_a_docstring(text):
    code = f"def f():\n    pass\n\n{layout.docstring(text)}\n"
    tree = ast.parse(code)
    assert len(tree.body) == 2
    assert isinstance(tree.body[1], ast.Expr)


@given(st.text(alphabet=st.characters(), max_size=400))
def test_nothing_leaves_a_comment(text):
    for mark in ("#", "//"):
        lines = layout.comment(text, mark).splitlines()
        assert all(line.startswith(mark) for line in lines)
    assert ast.parse(layout.comment(text)).body == []


@pytest.mark.parametrize("text", ["word " * 60, "x" * 400, "a, " * 100])
def test_comments_and_docstrings_fit_the_line(text):
    lines = layout.comment(text).splitlines() + layout.docstring(text).splitlines()
    assert max(len(line) for line in lines) <= layout.WIDTH


def test_a_helper_that_two_sources_share_is_defined_once():
    helper = "@triton.jit\ndef add(a, b):\n    return a + b\n"
    sources = [f"{helper}\n\ndef one():\n    pass\n", f"{helper}\n\ndef two():\n    pass\n"]
    found = layout.definitions(sources)
    assert [text.split("def ")[1].split("(")[0] for text in found] == ["add", "one", "two"]
    assert found[0].startswith("@triton.jit")
