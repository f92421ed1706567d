"""The positions of a notebook's code in its file: for viewers that show the file without cells."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ldlm_lint.files.edited import OverlapError, apply_edits
from ldlm_lint.model import Edit, Span
from ldlm_lint.notebooks import document
from ldlm_lint.notebooks.document import Cell, Notebook, NotebookError
from ldlm_lint.notebooks.magics import restored
from ldlm_lint.notebooks.rewrite import changes, pieces
from ldlm_lint.notebooks.text import python_text
from ldlm_lint.patterns import lazily
from ldlm_lint.region import Region
from ldlm_lint.source import Source

# The encoding of one character in a JSON string.
_CHARACTER = lazily(r"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|\\u\w{4}|\\?.", re.DOTALL)


@dataclass(frozen=True)
class Stored:
    """A notebook's file, and the text of its cells that was linted."""

    source: Source
    notebook: Notebook

    def region(self, span: Span) -> Region | None:
        """The place of a span, None if it is not in a cell."""
        part = self.source.part_at(span.start)
        if part is None:
            return None
        cell = self._cells[part.number]
        start, end = (len(restored(self.source.data[part.start : at].decode())) for at in (span.start, span.end))
        first = self._place(cell, start)
        return self._region(first, self._place(cell, end, behind=True) if end > start else first)

    def replacements(self, edits: Iterable[Edit]) -> list[tuple[Region, str]]:
        """The changes of a fix's edits in the file; empty if its cells do not allow them."""
        try:
            changed = list(changes(self.notebook, apply_edits(self.source.data, edits)))
        except (NotebookError, OverlapError):
            return []
        return [self._difference(*one) for one in changed]

    def _difference(self, start: int, end: int, new: str) -> tuple[Region, str]:
        """The minimal difference when ``new`` replaces the text from ``start`` to ``end``."""
        old = self.notebook.text[start:end]
        same = _alike(old, new)
        last = _alike(old[same:][::-1], new[same:][::-1])
        return self._region(start + same, end - last), new[same : len(new) - last]

    def _place(self, cell: Cell, index: int, behind: bool = False) -> int:
        """The place of a character of a cell, or the one after the character before: they differ between two lines."""
        at = cell.start
        for start, value in self._strings(cell):
            if index < len(value) + behind:
                return self._inside(start, index)
            index -= len(value)
            at = self._inside(start, len(value))
        return at

    def _strings(self, cell: Cell) -> Iterator[tuple[int, str]]:
        if self.notebook.text[cell.start] != "[":
            return iter([(cell.start, cell.text)])
        values, places = pieces(self.notebook.text, cell.start)
        return ((start, value) for (start, _), value in zip(places, values, strict=True))

    def _inside(self, start: int, index: int) -> int:
        """The place of a character in the string that begins at ``start``."""
        signs = _CHARACTER.finditer(self.notebook.text, start + 1)
        last = next(itertools.islice(signs, index - 1, index), None) if index else None
        return last.end() if last is not None else start + 1

    def _region(self, start: int, end: int) -> Region:
        (line, column, first), (end_line, end_column, behind) = self._position(start), self._position(end)
        return Region(line, column, end_line, end_column, first, behind)

    def _position(self, at: int) -> tuple[int, int, int]:
        """Line, column and byte of a character of the file."""
        line = bisect.bisect_right(self._lines, at, key=lambda begin: begin[0]) - 1
        start, first = self._lines[line]
        return line + 1, at - start + 1, first + len(self.notebook.text[start:at].encode())

    @functools.cached_property
    def _lines(self) -> tuple[tuple[int, int], ...]:
        """Where each line of the file begins: the character of its text and the byte of the file."""
        lines = self.notebook.text.split("\n")
        characters = itertools.accumulate((len(line) + 1 for line in lines), initial=0)
        bytes_ = itertools.accumulate((len(line.encode()) + 1 for line in lines), initial=len(self.notebook.bom))
        return tuple(zip(characters, bytes_, strict=True))

    @functools.cached_property
    def _cells(self) -> dict[int, Cell]:
        return {cell.number: cell for cell in self.notebook.cells}


def stored(source: Source) -> Stored | None:
    """The file that a text was read from, None if it does not exist or no longer contains that text."""
    try:
        data = Path(source.path).read_bytes()
        return Stored(source, document.read(data)) if python_text(data) == source.data else None
    except (OSError, NotebookError):
        return None


def _alike(one: str, other: str) -> int:
    """How many letters two texts begin with alike."""
    differs = (at for at, (letter, another) in enumerate(zip(one, other, strict=False)) if letter != another)
    return next(differs, min(len(one), len(other)))
