"""Python text in the style of the project's formatter, so that generated files need no formatter.

One rule: what fits on its line stays there; otherwise the outermost bracket that can break puts each item
on a line of its own, with a trailing comma. Text from outside enters only through `quoted`, `comment` and
`docstring`.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Iterable, Mapping

WIDTH = 110
"""Longest line; the same number stands in pyproject.toml."""

INDENT = 4


def quoted(text: str) -> str:
    r"""A Python string literal, in double quotes unless that needs more escapes.

    >>> print(quoted("a'b"), quoted('"'), quoted("\n"))
    "a'b" '"' "\n"
    """
    plain = repr(text)
    if plain.startswith('"') or '"' in text:
        return plain
    return '"' + plain[1:-1].replace("\\'", "'") + '"'


def literal(value: object) -> str:
    """A Python literal of nested containers, strings and numbers on one line. `Raw` is taken as it is."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(literal(item) for item in value)}{',' if len(value) == 1 else ''})"
    return repr(value)


def long_string(text: str, head: str = "") -> str:
    """`head` and a string literal: one where it fits on the line, else its pieces in parentheses.

    Pieces end at blanks, so that one changed word is one changed line.
    """
    if len(head) + len(quoted(text)) <= WIDTH:
        return f"{head}{quoted(text)}"
    pieces: list[str] = []
    rest = text
    while rest:
        end = min(len(rest), WIDTH - INDENT - 2)
        while len(quoted(rest[:end])) > WIDTH - INDENT:
            end -= 1
        blank = rest.rfind(" ", 0, end) + 1
        end = blank if end < len(rest) and blank else end
        pieces.append(quoted(rest[:end]))
        rest = rest[end:]
    return "\n".join([f"{head}(", *(f"{' ' * INDENT}{piece}" for piece in pieces), ")"])


class Raw:
    """A Python expression inside a literal: `Raw("torch.float16")`."""

    def __init__(self, text: str) -> None:
        self.text = text


def requote(expression: str) -> str:
    """The expression with every string in the formatter's quotes."""
    pieces: list[str] = []
    column = 0
    for token in tokenize.generate_tokens(io.StringIO(expression).readline):
        if token.type == tokenize.STRING:
            pieces += [expression[column : token.start[1]], quoted(ast.literal_eval(token.string))]
            column = token.end[1]
    return "".join(pieces) + expression[column:]


def statement(expression: str, head: str = "", tail: str = "", depth: int = 0) -> str:
    """`head + expression + tail` at an indentation of `depth`, broken where it is too wide.

    `expression` is on one line and holds no comments.
    """
    indent = " " * (INDENT * depth)
    line = f"{indent}{head}{expression}{tail}"
    if len(line) <= WIDTH:
        return line
    node = ast.parse(expression, mode="eval").body
    opening, items, closing = _items(node, expression)
    if not items:
        return line
    broken = [statement(item, key, ",", depth + 1) for key, item in items]
    return "\n".join([f"{indent}{head}{opening}", *broken, f"{indent}{closing}{tail}"])


def _items(node: ast.expr, text: str) -> tuple[str, list[tuple[str, str]], str]:
    """Opening text, (prefix, expression) of every item, and closing text of the outermost bracket."""

    line = text.encode()  # Offsets of syntax trees count bytes.

    def source(part: ast.expr) -> str:
        return line[part.col_offset : part.end_col_offset].decode()

    if isinstance(node, ast.Call):
        items = [("", source(argument)) for argument in node.args]
        items += [(f"{keyword.arg}=", source(keyword.value)) for keyword in node.keywords]
        return f"{source(node.func)}(", items, ")"
    if isinstance(node, (ast.List, ast.Tuple)):
        brackets = "[]" if isinstance(node, ast.List) else "()"
        return brackets[0], [("", source(item)) for item in node.elts], brackets[1]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return "{", [(f"{source(key)}: ", source(value)) for key, value in pairs if key is not None], "}"
    return "", [], ""


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` on one line: control and direction characters are written as escapes, blanks are single."""
    return _CONTROL.sub(
        lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), " ".join(text.split(" "))
    )


def wrapped(text: str, width: int, indent: str = "", after: str = "") -> list[str]:
    """`text` in lines of at most `width` characters."""
    return textwrap.wrap(
        plain(text), width, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False
    ) or [indent]


def comment(text: str, mark: str = "#") -> str:
    """`text` as comment lines, one paragraph for every line of it."""
    lines = [line for part in text.split("\n") for line in wrapped(part, WIDTH - len(mark) - 1)]
    return "\n".join(f"{mark} {line}".rstrip() for line in lines)


def docstring(text: str) -> str:
    """`text`, lines that may be indented, as a whole docstring literal that nothing in it can end."""
    lines: list[str] = []
    # Six characters are left for the quotes of a docstring of one line.
    for part in text.strip("\n").split("\n"):
        indent = part[: len(part) - len(part.lstrip(" "))]
        lines += (
            wrapped(part.strip(" "), WIDTH - 6, indent, f"{indent}    " if indent else "")
            if part.strip()
            else [""]
        )
    body = "\n".join(lines).replace('"""', "'''")
    prefix = "r" if "\\" in body else ""
    closing = "\n" if len(lines) > 1 or body.endswith(('"', "\\")) else ""
    return f'{prefix}"""{body}{closing}"""'


def definitions(sources: Iterable[str]) -> list[str]:
    """The distinct top-level definitions of some sources, in order: a helper that two share occurs once."""
    found: dict[str, None] = {}
    for source in sources:
        lines = source.splitlines()
        for node in ast.parse(source).body:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
            found["\n".join(lines[first - 1 : node.end_lineno])] = None
    return list(found)
