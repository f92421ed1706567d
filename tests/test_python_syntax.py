"""Whether a text is Python is said by the parser alone, as it would be with a tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint.python import syntax
from ldlm_lint.source import Kind, Source

HERE = Path(__file__).read_text(encoding="utf-8")
PIECES = ["(", ")", "\n", "\n    ", "\t", "'''", '"', "\\", "#", ":", "def f(x):", "\f", "\r", "print 1", "=", "else:", "é", "f'{x!r}'", "<>"]


def _source(text: str, name: str = "/project/module.py") -> Source:
    return Source(name, text.encode(), Kind.PYTHON)


def _parses(text: str) -> bool:
    try:
        syntax.parsed(text)
    except (SyntaxError, TypeError, ValueError):
        return False
    return True


@for_every(
    "text",
    [
        "",
        "\n",
        "# no line behind it",
        "\f\nfrom __future__ import annotations\n",
        '"""doc"""\nfrom __future__ import annotations\nx: int = 1\n',
        "from __future__ import braces\n",
        "from __future__ import barry_as_FLUFL\n1 <> 2\n",
        "1 <> 2\n",
        "# coding: nowhere\nx = 1\n",
        "x = 1\r\nif x:\r\n    y = 2\r\n",
        "x = 1\ry = 2\r",
        "x = '\\d'\nassert (1, 2)\n",
        "return 3\nyield 4\nawait x\n*a\n",
        "x = 1\\",
        "  x = 1\n",
        "if a:\n\tb\n        c\n",
        "print 'x'\n",
        "<<<<<<< HEAD\nx = 1\n=======\n",
        "x = {{ cookiecutter.name }}\n",
        "{% if a %}\n",
        "x = " + "9" * 5000,
        "(" * 150 + ")" * 150,
        "(" * 300 + ")" * 300,
        "".join(" " * at + "if a:\n" for at in range(120)) + " " * 121 + "b\n",
        "match a:\n    case 1: pass\n",
        "type X = int\n",
        "try:\n    a\nexcept* E:\n    b\n",
        "\ufeffx = 1\n",
        "\ufeff\ufeffx = 1\n",
        "x = '''\n",
        "%matplotlib inline\n",
    ],
)
def test_the_parser_says_the_same_without_a_tree(text: str) -> None:
    assert syntax.parses(one := _source(text)) == _parses(one.text)


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, len(HERE)), length=st.integers(0, 6), put=st.lists(st.sampled_from(PIECES), max_size=3).map("".join))
def test_a_text_that_was_changed_anywhere(at: int, length: int, put: str) -> None:
    text = HERE[:at] + put + HERE[at + length :]
    assert syntax.parses(one := _source(text)) == _parses(one.text)


def test_no_tree_is_made_of_what_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(syntax, "parsed", made.append)
    assert syntax.parses(_source(HERE))
    assert not made
    assert not syntax.parses(_source("x = = 1"))
    assert made == ["x = = 1"]
