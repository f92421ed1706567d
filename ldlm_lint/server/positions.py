"""Bytes of a file as positions of the protocol, which counts columns in the units agreed with the editor."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ldlm_lint.source import Source

Position = dict[str, int]
Range = dict[str, Position]

_UNITS: Mapping[str, tuple[str, int]] = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""For each encoding of positions the codec whose code units are counted, and the bytes of a unit."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def position(source: Source, offset: int, encoding: str) -> Position:
    """The 0-based line and column of a byte offset; ``encoding`` is ``utf-8``, ``utf-16`` or ``utf-32``.

    In a notebook lines are counted from the beginning of the cell, each of which is a document for an editor.
    """
    line, column = source.position(offset)
    # An offset between the two characters of a line's end is after the line's text.
    text = source.lines[line - 1][: column - 1]
    return {"line": source.shown(offset)[0] - 1, "character": units(text, encoding)}


def range_of(source: Source, start: int, end: int, encoding: str) -> Range:
    """The range of the bytes ``[start, end)``."""
    return {"start": position(source, start, encoding), "end": position(source, end, encoding)}


def units(text: str, encoding: str) -> int:
    """The length of a text in code units."""
    if text.isascii():
        return len(text)
    codec, size = _UNITS[encoding]
    return len(text.encode(codec, errors="replace")) // size


def changed(text: str, start: Position, end: Position, new: str, encoding: str) -> str:
    """A text after an editor's change of a range."""
    lines = _LINE.findall(text)
    first, last = (_index(lines, one, encoding) for one in (start, end))
    return text[:first] + new + text[last:]


def _index(lines: list[str], place: Position, encoding: str) -> int:
    before = sum(map(len, lines[: place["line"]]))
    if place["line"] >= len(lines):
        return before
    return before + character(lines[place["line"]].rstrip("\r\n"), place["character"], encoding)


def character(line: str, column: int, encoding: str) -> int:
    """The index of the character at a column of a line; the line's length for a column after its end."""
    if line.isascii():
        return min(column, len(line))
    passed = 0
    for index, one in enumerate(line):
        if passed >= column:
            return index
        passed += units(one, encoding)
    return len(line)
