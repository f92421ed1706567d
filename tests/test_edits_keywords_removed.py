"""Taking arguments out of calls, whatever the layout."""

from __future__ import annotations

import ast

from collected import for_every

from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.source import Kind, Source


def removed(text: str, *names: str) -> str | None:
    source = Source.from_bytes("a.py", text.encode(), Kind.PYTHON)
    call = next(node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    spans = [
        source.span_of(one.lineno, one.col_offset, one.end_lineno, one.end_col_offset)
        for one in call.keywords
        if one.arg in names
    ]
    edits = remove_arguments(source, spans)
    return None if edits is None else apply_edits(source.data, edits).decode()


@for_every(
    ("before", "after"),
    [
        ("f(a, x=1)\n", "f(a)\n"),
        ("f(x=1)\n", "f()\n"),
        ("f(x=1, b=2)\n", "f(b=2)\n"),
        ("f((a), x=(1), **kw)\n", "f((a), **kw)\n"),
        ("f(a, x=1, y=2, b=3)\n", "f(a, b=3)\n"),
        ("f(a, x=1, b=3, y=2,)\n", "f(a, b=3,)\n"),
        ("f(\n    a,\n    x=1,  # why\n    b=2,\n)\n", "f(\n    a,\n    b=2,\n)\n"),
        ("f(\n    a,\n    x=[\n        1,\n    ],\n)\n", "f(\n    a,\n)\n"),
        ("f(\r\n    a,\r\n    x=1\r\n)\r\n", "f(\r\n    a,\r\n)\r\n"),
        ("f(a,\n  x=1, b=2)\n", "f(a,\n  b=2)\n"),
        ("f(a,  # first\n  b=2, x=1)\n", "f(a,  # first\n  b=2)\n"),
        ("f(é, x='é', y=2)\n", "f(é)\n"),
    ],
)
def test_arguments_go_with_their_commas(before, after):
    assert removed(before, "x", "y") == after
    ast.parse(after)


def test_an_unusual_layout_is_left_alone():
    assert removed("f(a\n  , x=1)\n", "x") == "f(a\n  )\n"
    assert removed("f(x=1\n  , b=2)\n", "x") is None
