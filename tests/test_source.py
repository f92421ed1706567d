"""Bytes and positions: every way in which parsers count becomes the same span of file bytes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import tree_sitter
import tree_sitter_bash
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st

from ldlm_lint import source as module
from ldlm_lint.source import Kind, Segment, Source, UnreadableError

BOM = b"\xef\xbb\xbf"


def python(data: bytes) -> Source:
    return Source.from_bytes("/p/module.py", data, Kind.PYTHON)


def shell(data: bytes) -> Source:
    return Source.from_bytes("/p/run.sh", data, Kind.SHELL)


@for_every(
    "data, kind, line, words",
    [
        pytest.param(b"a\nb\0\n", Kind.PYTHON, 2, "NUL bytes", id="nul"),
        pytest.param(b"\0", Kind.SHELL, 1, "NUL bytes", id="nul-in-a-script"),
        pytest.param("x".encode("utf-16"), Kind.PYTHON, 1, "NUL bytes", id="utf-16"),
        pytest.param(b"a\n\n'\xe9'\n", Kind.PYTHON, 3, "not valid utf-8", id="latin-1"),
        pytest.param(b"a\r\n\r\n# \xe9\r\n", Kind.SHELL, 3, "not valid utf-8", id="script-in-latin-1"),
        pytest.param(b"# coding: nope\n", Kind.PYTHON, 1, "its encoding is not known", id="unknown-cookie"),
        pytest.param(b"# coding: ascii\n'\xc3\xa9'\n", Kind.PYTHON, 2, "not valid ascii", id="wrong-cookie"),
        pytest.param(
            BOM + b"# coding: latin-1\n", Kind.PYTHON, 1, "its encoding is not known", id="mark-against-cookie"
        ),
        pytest.param(b"# x\n# \xe9\n", Kind.PYTHON, 2, "not valid utf-8", id="where-a-cookie-could-be"),
        pytest.param(b"# coding: rot13\n", Kind.PYTHON, 1, "rot13 is not an encoding of text", id="no-text"),
        pytest.param(b"# coding: undefined\n", Kind.PYTHON, 1, "undefined is not an encoding of text", id="undefined"),
        pytest.param(b"# coding: utf-16\n", Kind.PYTHON, 1, "utf-16", id="cookie-that-denies-itself"),
        pytest.param(
            "# coding: iso-2022-jp\n'日本'".encode("iso-2022-jp"), Kind.PYTHON, 1, "not supported", id="shift-states"
        ),
        pytest.param(b"'\xed\xa0\x80'", Kind.PYTHON, 1, "not valid utf-8", id="surrogate"),
    ],
)
def test_unreadable(data: bytes, kind: Kind, line: int, words: str) -> None:
    with pytest.raises(UnreadableError, match=words) as caught:
        Source.from_bytes("/p/x", data, kind)
    assert caught.value.line == line


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()], ids=["missing", "directory"])
def test_unreadable_path(tmp_path: Path, make) -> None:
    make(tmp_path / "x.py")
    with pytest.raises(UnreadableError) as caught:
        Source.read(tmp_path / "x.py", Kind.PYTHON)
    assert str(caught.value)


def test_large_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    path = tmp_path / "x.py"
    path.write_bytes(b"#" * 10)
    assert Source.read(path, Kind.PYTHON).data == b"#" * 10
    path.write_bytes(b"#" * 11)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("it was read"))
    with pytest.raises(UnreadableError, match=r"larger than 10 bytes \(11\)"):
        Source.read(path, Kind.PYTHON)


@for_every(
    "data, kind, encoding, text",
    [
        pytest.param(b"", Kind.PYTHON, "utf-8", "", id="empty"),
        pytest.param(BOM, Kind.PYTHON, "utf-8", "", id="mark-alone"),
        pytest.param(BOM + b"x", Kind.PYTHON, "utf-8", "x", id="mark"),
        pytest.param(BOM + b"x", Kind.SHELL, "utf-8", "x", id="mark-of-a-script"),
        pytest.param(b"# coding: latin-1\n'\xe9'", Kind.PYTHON, "iso-8859-1", "# coding: latin-1\n'é'", id="cookie"),
        pytest.param("# coding: shift-jis\n'日'".encode("shift-jis"), Kind.PYTHON, "shift-jis", None, id="two-bytes"),
        pytest.param(b"\n# vim: set fileencoding=cp1252 :\n\x80", Kind.PYTHON, "cp1252", None, id="cookie-of-vim"),
        pytest.param(
            "# coding: latin-1\né".encode(), Kind.SHELL, "utf-8", "# coding: latin-1\né", id="no-cookies-in-scripts"
        ),
    ],
)
def test_encoding(data: bytes, kind: Kind, encoding: str, text: str | None) -> None:
    read = Source.from_bytes("/p/x", data, kind)
    assert read.encoding == encoding
    if text is not None:
        assert read.text == text


@for_every(
    "data, lines, newline",
    [
        pytest.param(b"", ("",), "\n", id="empty"),
        pytest.param(b"a", ("a",), "\n", id="one"),
        pytest.param(b"a\nb\n", ("a", "b", ""), "\n", id="unix"),
        pytest.param(b"a\r\nb\r\n", ("a", "b", ""), "\r\n", id="windows"),
        pytest.param(b"a\rb", ("a", "b"), "\r", id="old-mac"),
        pytest.param(b"a\r\nb\nc\r", ("a", "b", "c", ""), "\r\n", id="mixed"),
        pytest.param(
            "a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode(), ("a\x0bb\x0cc\x1cd\x85e\u2028f", ""), "\n", id="no-line-ends"
        ),
    ],
)
def test_lines_end_where_pythons_tokenizer_ends_them(data: bytes, lines: tuple[str, ...], newline: str) -> None:
    read = python(data)
    assert read.lines == lines
    assert read.newline == newline
    assert len(read.line_starts) == len(lines)


TEXTS = [
    pytest.param("x = 1\ny = 'é'; z = 2\n".encode(), id="utf-8"),
    pytest.param(BOM + "x = '😀'; y = 1\n\nz = 2".encode(), id="mark"),
    pytest.param("x = 'é'\r\ny = '→'; z = 2\r\n".encode(), id="windows"),
    pytest.param(b"# coding: latin-1\nx = '\xe9\xe8'; y = 1\n", id="latin-1"),
    pytest.param("x = '''a\n  é'''; y = 1\n".encode(), id="over-lines"),
]


@pytest.mark.parametrize("data", TEXTS)
def test_spans_of_pythons_positions_are_the_text(data: bytes) -> None:
    """Columns of ``ast`` (and astroid) count the bytes of the line in UTF-8, whatever the file is written in."""
    read = python(data)
    nodes = [one for one in ast.walk(ast.parse(read.text)) if isinstance(one, (ast.expr, ast.stmt))]
    assert len(nodes) > 3
    for node in nodes:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        span = read.span_of(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        assert read.slice(span).replace("\r\n", "\n") == ast.get_source_segment(read.text, node).replace("\r\n", "\n")


def test_tree_sitters_byte_offsets_are_those_of_the_file() -> None:
    read = shell("# é\nexport A=1\n".encode())
    root = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(read.data).root_node
    command = next(one for one in root.children if one.type == "declaration_command")
    assert read.slice(read.span(command.start_byte, command.end_byte)) == "export A=1"


@pytest.mark.parametrize("data", TEXTS)
def test_offsets_of_characters(data: bytes) -> None:
    read = python(data)
    for index, character in enumerate(read.text):
        start, end = read.offset_of_character(index), read.offset_of_character(index + 1)
        assert read.data[start:end].decode(read.encoding) == character


@pytest.mark.parametrize("data", TEXTS)
def test_positions_count_characters_from_one(data: bytes) -> None:
    read = python(data)
    line, column = 1, 1
    for index, character in enumerate(read.text):
        assert read.position(read.offset_of_character(index)) == (line, column)
        ends = character == "\n"
        line, column = (line + 1, 1) if ends else (line, column + 1)
    assert read.position(len(data)) == (line, column)


@pytest.mark.parametrize(
    "line, column, expected",
    [
        pytest.param(0, 0, 0, id="before-the-first-line"),
        pytest.param(-5, 3, 3, id="far-before-it"),
        pytest.param(9, 0, 8, id="past-the-last-line"),
        pytest.param(1, 99, 3, id="past-the-end-of-the-line"),
        pytest.param(2, 2, 5, id="inside-a-character"),
    ],
)
def test_positions_that_are_none_stay_in_the_file(line: int, column: int, expected: int) -> None:
    assert python("abc\naé\n".encode()).offset(line, column) == expected


def test_segments_map_a_virtual_text_to_its_file() -> None:
    segments = (Segment(0, 100, cell=0), Segment(6, 300, cell=2))
    read = Source("/p/book.ipynb", b"x = 1\ny = 2\n", Kind.PYTHON, segments=segments)
    first, second = read.span_of(1, 0, 1, 5), read.span_of(2, 4, 2, 5)
    assert (first.start, first.end, first.cell) == (100, 105, 0)
    assert (second.start, second.end, second.cell) == (304, 305, 2)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(st.sampled_from("aé→😀 \t\n\r\x0c\x0b\u2028='"), max_size=60), st.booleans())
def test_any_text(text: str, mark: bool) -> None:
    read = shell((BOM if mark else b"") + text.encode())
    assert read.text == text
    assert len(read.lines) == len(read.line_starts)
    for line, (characters, start) in enumerate(zip(read.lines, read.line_starts, strict=True), 1):
        assert read.offset(line, 0) == start
        end = read.offset(line, len(characters.encode()))
        assert read.data[start:end].decode() == characters
        assert read.position(start) == (line, 1)
        assert read.position(end) == (line, len(characters) + 1)


@for_every("text", ["", "a", "é\nb\n", "x = 'é'\n\n y", "a\r\né\nb", "a\rb\nc", "\n\n", "é\x0c\u2028\nb"])
@for_every("mark", ["", "\ufeff"])
def test_every_line_starts_where_it_stands_in_the_file(mark, text):
    source = Source.from_bytes("/x/a.py", (mark + text).encode(), Kind.PYTHON)
    ends = [*source.line_starts[1:], len(source.data)]
    found = [source.data[start:end].decode() for start, end in zip(source.line_starts, ends, strict=True)]
    assert "".join(found) == text
    assert [line.rstrip("\r\n") for line in found] == list(source.lines)



def test_a_place_in_a_file_is_told_without_its_lines() -> None:
    # A report places findings in every file that has any, and all of these are in memory together.
    source = Source.from_bytes("a.py", "é = 1\nx = 2\n".encode(), Kind.PYTHON)
    assert source.shown(10) == (2, 4)
    assert source.cell_lines(0) == (1, 3)
    assert not {"lines", "text"} & vars(source).keys()
