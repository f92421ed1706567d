"""Lines that fixes insert beside statements: with their indentation, in front of their comments, never inside a line."""

from __future__ import annotations

import pytest
from snippets import source

from ldlm_lint.autofix.edits import apply_edits
from ldlm_lint.autofix.lines import block_of, insert_before, insert_behind, stands_alone, step_of
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Source

CODE = "def f(n):\n\tx = 1; y = 2\n\n\t# About z,\n\t# in two lines.\n\tz = 3  # three\n\tif n: w = 4\n\tfor i in n:\n\t\t\tprint(i)\n"


def statements(file: Source):
    """The statements of the function that a text holds."""
    return parse(file, "module").module.body[0].body


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_goes_in_front_of_a_statement_and_its_comments(newline):
    file = source(CODE.replace("\n", newline).encode())
    edit = insert_before(file, statements(file)[2], "new()")
    expected = CODE.replace("\t# About", "\tnew()\n\t# About").replace("\n", newline)
    assert apply_edits(file.data, [edit]) == expected.encode()


def test_comments_of_another_block_are_left_alone():
    file = source(b"def f():\n  if a:\n    b()\n    # of b\n  c()\n")
    edit = insert_before(file, statements(file)[1], "new()")
    assert apply_edits(file.data, [edit]) == b"def f():\n  if a:\n    b()\n    # of b\n  new()\n  c()\n"


def test_a_line_goes_behind_a_statement_and_its_comment():
    file = source(CODE.encode())
    edit = insert_behind(file, statements(file)[2], "new()")
    assert apply_edits(file.data, [edit]).decode() == CODE.replace("# three\n", "# three\n\tnew()\n")


def test_a_line_goes_behind_the_last_statement_of_a_file():
    file = source(b"def f():\n    g()\n")
    edit = insert_behind(file, statements(file)[0], "h()")
    assert apply_edits(file.data, [edit]) == b"def f():\n    g()\n    h()\n"


def test_nothing_goes_into_a_line_that_holds_more():
    file = source(CODE.encode())
    first, second, third, condition, loop = statements(file)
    assert insert_behind(file, first, "new()") is None
    assert insert_before(file, second, "new()") is None
    assert insert_before(file, condition.body[0], "new()") is None
    assert [stands_alone(file, one) for one in (first, second, third, condition, loop)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_a_file_without_a_last_line_ending_gets_nothing_behind_it():
    file = source(b"def f():\n    g()")
    assert insert_behind(file, statements(file)[0], "h()") is None


@pytest.mark.parametrize("index, expected", [(4, "\t\t"), (2, "\t")])
def test_blocks_are_indented_as_their_neighbours(index, expected):
    file = source(CODE.encode())
    assert step_of(file, statements(file)[index]) == expected


def test_a_block_is_what_stands_beside_a_statement():
    file = source(b"def f():\n    try:\n        a()\n        b()\n    finally:\n        c()\n")
    attempt = statements(file)[0]
    assert block_of(attempt.finalbody[0]) == attempt.finalbody
    assert block_of(attempt.body[1]) == attempt.body
