"""Lines that fixes insert beside statements: with their indentation, in front of their comments, never inside a line."""

from __future__ import annotations

import pytest
from snippets import source

from ldlm_lint.edits.beginnings import insert_at_beginning
from ldlm_lint.files.edited import apply_edits


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_goes_in_front_of_a_statement_and_its_comments(newline):
    text = "def f(n):\n\t# About z,\n\t# in two lines.\n\tz = 3  # three\n".replace("\n", newline)
    edit = insert_at_beginning(source(text.encode()), 1, "new()", (), ())
    assert apply_edits(text.encode(), [edit]).decode() == text.replace("\t# About", f"\tnew(){newline}\t# About")


@pytest.mark.parametrize(
    "like, before, behind",
    [
        pytest.param((3,), (), "b()  # b\n", id="behind-what-is-like-it"),
        pytest.param((3,), (2,), "def f():\n", id="not-behind-what-it-precedes"),
        pytest.param((5,), (), "def f():\n", id="not-in-a-loop"),
    ],
)
def test_a_line_goes_to_its_like(like, before, behind):
    text = "def f():\n    a()\n    b()  # b\n    for c in d:\n        e()\n"
    edit = insert_at_beginning(source(text.encode()), 1, "new()", like, before)
    assert apply_edits(text.encode(), [edit]).decode() == text.replace(behind, f"{behind}    new()\n")


@pytest.mark.parametrize("text", ["def f(): a()\n", "def f():\n    @g\n    def h(): ...\n", "x = 1\n"])
def test_nothing_goes_into_a_line_that_holds_more(text):
    assert insert_at_beginning(source(text.encode()), 1 if "f" in text else 2, "new()", (), ()) is None


def test_a_file_without_a_last_line_ending_gets_nothing_behind_it():
    text = b"def f():\n    g()"
    edit = insert_at_beginning(source(text), 1, "h()", (2,), ())
    assert apply_edits(text, [edit]) == b"def f():\n    h()\n    g()"
