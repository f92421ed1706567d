"""The positions of untouched bytes after edits."""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ldlm_lint.files.edited import edit_key
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily

_LINE = lazily(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_WORD = lazily(rb"[\w.'\"\x80-\xff]")
_INDENT = b" \t"
# Comparing lines pairwise takes quadratic time.
_LONGEST = 500


class Piece(NamedTuple):
    """The bytes ``[start, end)`` become ``new``; a piece of ``layout`` only changes the indentation of a line."""

    start: int
    end: int
    new: bytes
    layout: bool = False


class Moves:
    """The edits of one file as the smallest pieces of certain changes, and the mapping of positions.

    An edit that replaces several lines counts only for the lines that differ in more than their indentation.
    """

    def __init__(self, data: bytes, edits: Iterable[Edit], encoding: str) -> None:
        self._data = data
        unique = sorted(set(edits), key=edit_key)
        self.pieces = [piece for edit in unique for piece in _pieces(data, edit, encoding)]
        self.texts = [piece for piece in self.pieces if not piece.layout]
        self._starts = [piece.start for piece in self.pieces]
        self._text_starts = [piece.start for piece in self.texts]
        self._shifts = [0]
        for piece in self.pieces:
            self._shifts.append(self._shifts[-1] + len(piece.new) - (piece.end - piece.start))

    def place(self, offset: int, *, behind: bool) -> int | None:
        """The new position of a border between two bytes, None if it is inside a replacement.

        An insertion at the border itself is in front of it with ``behind``, else after it.
        """
        index = bisect.bisect_left(self._starts, offset)
        if index and self.pieces[index - 1].end > offset:
            return None
        while behind and index < len(self.pieces) and self.pieces[index].start == self.pieces[index].end == offset:
            index += 1
        return offset + self._shifts[index]

    def touching(self, start: int, end: int) -> list[Piece]:
        """The pieces, except those of layout, that change something of ``[start, end)``."""
        first = max(bisect.bisect_left(self._text_starts, start) - 1, 0)
        last = bisect.bisect_right(self._text_starts, end)
        return [piece for piece in self.texts[first:last] if self._changes(piece, start, end)]

    def beside(self, start: int, end: int) -> list[Piece]:
        """The pieces, except those of layout, that begin or end where ``[start, end)`` does."""
        return [piece for piece in self.texts if piece.start == end or piece.end == start]

    def _changes(self, piece: Piece, start: int, end: int) -> bool:
        if piece.start < piece.end:
            return piece.start < end and start < piece.end
        if piece.start == start:
            return self._sticks(piece.new[-1:], self._data[start : start + 1])
        if piece.start == end:
            return self._sticks(self._data[end - 1 : end], piece.new[:1])
        return start < piece.start < end

    @staticmethod
    def _sticks(left: bytes, right: bytes) -> bool:
        """Whether two adjacent bytes belong to one word; a dot after a word begins a new one."""
        return bool(_WORD.match(left) and _WORD.match(right) and right != b".")

    def is_new(self, offset: int) -> bool:
        """Whether the byte at an offset of the new data comes from an edit."""
        for piece, shift in zip(self.pieces, self._shifts, strict=False):
            begin = piece.start + shift
            if begin <= offset < begin + len(piece.new):
                return True
        return False


def _pieces(data: bytes, edit: Edit, encoding: str) -> Iterator[Piece]:
    start, new = edit.span.start, edit.text.encode(encoding)
    old = data[start : edit.span.end]
    before, after = _LINE.findall(old), _LINE.findall(new)
    if not before or max(len(before), len(after)) > _LONGEST:
        yield _piece(data, start, edit.span.end, new)
        return
    offsets = [start]
    for line in before:
        offsets.append(offsets[-1] + len(line))
    whole = not _line_before(data, start).strip(_INDENT)
    keys, new_keys = _keys(before, whole), _keys(after, whole)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, keys, new_keys, autojunk=False).get_opcodes():
        if tag != "equal":
            yield _piece(data, offsets[a], offsets[b], b"".join(after[c:d]))
            continue
        for index in range(b - a):
            indent, new_indent = _indent(before[a + index]), _indent(after[c + index])
            if indent != new_indent:
                yield _piece(data, offsets[a + index], offsets[a + index] + len(indent), new_indent)


def _piece(data: bytes, start: int, end: int, new: bytes) -> Piece:
    blank = not data[start:end].strip(_INDENT) and not new.strip(_INDENT)
    return Piece(start, end, new, blank and not _line_before(data, start).strip(_INDENT))


def _keys(lines: list[bytes], whole: bool) -> list[bytes]:
    """The lines without their indentation; the first one has none if it begins in the middle."""
    return [line.lstrip(_INDENT) if index or whole else line for index, line in enumerate(lines)]


def _indent(line: bytes) -> bytes:
    return line[: len(line) - len(line.lstrip(_INDENT))]


def _line_before(data: bytes, offset: int) -> bytes:
    """The text between the beginning of the line and an offset."""
    start = max(data.rfind(b"\n", 0, offset), data.rfind(b"\r", 0, offset)) + 1
    return data[start:offset].removeprefix(b"\xef\xbb\xbf") if start == 0 else data[start:offset]
