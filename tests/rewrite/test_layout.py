from __future__ import annotations

import ast

import pytest

from tracer.rewrite.layout import WIDTH, assign, call, define, split_arguments, without_parentheses


@pytest.mark.parametrize("width", [10, 60, 100, 400])
def test_calls_fit_the_line_and_mean_the_same(width: int):
    items = [f"argument_{i}" for i in range(width // 10)]
    lines = call("x = f", items, "", 0)
    assert all(len(line) <= WIDTH for line in lines)
    assert ast.dump(ast.parse("\n".join(lines))) == ast.dump(ast.parse(f"x = f({', '.join(items)})"))


def test_layouts():
    assert call("f", ["a", "b"], ":", 1) == ["    f(a, b):"]
    middle = [f"argument_{i}" for i in range(9)]
    assert call("x = function", middle, "", 0) == ["x = function(", f"    {', '.join(middle)}", ")"]
    long = [f"argument_{i}" for i in range(20)]
    assert call("f", long, "", 0) == ["f(", *(f"    {item}," for item in long), ")"]


def test_assignments():
    assert assign("x", "y + 1", 1) == ["    x = y + 1"]
    long = f"tl.where({'a' * 60}, {'b' * 60}, 0.0)"
    assert assign("x", long, 0) == ["x = tl.where(", f"    {'a' * 60},", f"    {'b' * 60},", "    0.0,", ")"]
    assert assign("", f"f({'a' * 120})", 0) == ["f(", f"    {'a' * 120},", ")"]


def test_arguments_that_are_long_calls_are_broken_in_turn():
    inner = f"g({'a' * 60}, {'b' * 60})"
    assert call("f", [inner, "c"], "", 0) == [
        "f(", "    g(", f"        {'a' * 60},", f"        {'b' * 60},", "    ),", "    c,", ")",
    ]  # fmt: skip


def test_arguments_keep_their_brackets():
    assert split_arguments("[a, b], f(c, d), e[1, 2]") == ["[a, b]", "f(c, d)", "e[1, 2]"]


def test_parameters_that_fit_are_on_one_line():
    assert define("k", [["in_ptr0", "out_ptr0"], ["x0_size"]]) == ["def k(in_ptr0, out_ptr0, x0_size):"]


def test_parameters_that_do_not_fit_have_a_line_for_each_group():
    groups = [["in_ptr0"], ["x0_size", "x1_size"], [f"in0_stride_x{i}" for i in range(12)]]
    lines = define("k", groups)
    assert lines[:3] == ["def k(", "    in_ptr0,", "    x0_size, x1_size,"]
    assert all(len(line) <= WIDTH for line in lines)
    (function,) = ast.parse("\n".join([*lines, "    pass"])).body
    assert isinstance(function, ast.FunctionDef)
    assert [a.arg for a in function.args.args] == [name for group in groups for name in group]


def test_parentheses_around_the_whole_are_dropped():
    assert without_parentheses("(tl.sum(x) > 0)") == "tl.sum(x) > 0"
    for text in ("x", "(a) + (b)", "f(x)", "(a, b)"):
        assert without_parentheses(text) == text
