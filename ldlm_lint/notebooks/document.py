"""The code cells of a notebook file with their positions; outputs are skipped one cell at a time.

nbformat 4 and, with ``worksheets`` and ``input``, nbformat 3. Only the necessary structure is required of the file:
JSON, a list of cells, and text in the code cells. A notebook in another language than Python, or a cell of a polyglot
notebook in another one, has no code for us.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]  # typeshed leaves it out
from typing import Any, NamedTuple

from ldlm_lint.patterns import lazily

_BLANK = lazily(r"[ \t\r\n]*")
_BOM = b"\xef\xbb\xbf"


def _no_number(_digits: str) -> None:
    """Numbers are irrelevant, and converting thousands of digits takes long."""


_DECODER = json.JSONDecoder(parse_int=_no_number, parse_float=_no_number)
_KEPT = ("cell_type", "source", "input", "language", "metadata")
_OTHER_KERNELS = lazily(r"ir|julia|bash|javascript|typescript|deno|scala|rust|xcpp|\.net|sos|octave", re.IGNORECASE)


class NotebookError(ValueError):
    """A file that is not a notebook; ``line`` (1-based) is where that shows."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class Cell(NamedTuple):
    """A code cell: its number among all cells, from 1, its text, and the characters ``[start, end)`` of its JSON value."""

    number: int
    text: str
    start: int
    end: int


class Notebook(NamedTuple):
    """The JSON text of a file after its BOM, and its cells of Python, in the order of the file."""

    text: str
    bom: bytes
    cells: tuple[Cell, ...]


def read(data: bytes) -> Notebook:
    """The notebook in the bytes of a file; raises NotebookError."""
    bom = _BOM if data.startswith(_BOM) else b""
    try:
        text = data[len(bom) :].decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start + len(bom)) + 1
        raise NotebookError(f"not valid utf-8 ({error.reason})", line) from error
    reader = _Reader(text)
    try:
        cells = reader.cells()
    except JSONDecodeError as error:
        raise NotebookError(f"not a notebook, since it is not valid JSON: {error.msg}", error.lineno) from error
    except RecursionError as error:
        raise NotebookError("not a notebook: its JSON is nested too deeply") from error
    return Notebook(text, bom, cells)


def items(text: str, at: int, visit: Callable[[int], int]) -> int:
    """Visit the items of the JSON array that begins at ``at``; ``visit`` gets an item's place and returns its end."""
    at = _blank(text, at + 1)
    if text[at : at + 1] == "]":
        return at + 1
    while True:
        at = _blank(text, visit(at))
        if text[at : at + 1] == "]":
            return at + 1
        at = _blank(text, _expect(text, at, ","))


def skip(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at ``at``, without numbers, and its end."""
    return _DECODER.raw_decode(text, at)


def _members(text: str, at: int, visit: Callable[[str, int], int]) -> int:
    """Visit the members of the JSON object that begins at ``at``."""
    at = _blank(text, at + 1)
    if text[at : at + 1] == "}":
        return at + 1
    while True:
        key, at = scanstring(text, _expect(text, at, '"'), True)
        at = _blank(text, _expect(text, _blank(text, at), ":"))
        at = _blank(text, visit(key, at))
        if text[at : at + 1] == "}":
            return at + 1
        at = _blank(text, _expect(text, at, ","))


def _blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise JSONDecodeError(f"{sign!r} expected", text, at)
    return at + 1


@dataclass(slots=True)
class _Reader:
    """One pass over the JSON text; ``count`` is the number of cells seen."""

    text: str
    count: int = 0
    found: list[Cell] = field(default_factory=list)
    metadata: Any = None
    lists: int = 0

    def cells(self) -> tuple[Cell, ...]:
        start = _blank(self.text, 0)
        if self.text[start : start + 1] != "{":
            skip(self.text, start)
            raise NotebookError("not a notebook: its JSON is not an object")
        end = _blank(self.text, _members(self.text, start, self._top))
        if end != len(self.text):
            raise JSONDecodeError("Extra data", self.text, end)
        if not self.lists:
            raise NotebookError("not a notebook: it has no list of cells")
        return tuple(self.found) if _is_python(self.metadata) else ()

    def _top(self, key: str, at: int) -> int:
        if key == "cells":
            return self._cells(key, at)
        if key == "worksheets" and self.text[at : at + 1] == "[":
            return items(self.text, at, self._worksheet)
        value, end = skip(self.text, at)
        if key == "metadata":
            self.metadata = value
        return end

    def _worksheet(self, at: int) -> int:
        if self.text[at : at + 1] == "{":
            return _members(self.text, at, self._cells)
        return skip(self.text, at)[1]

    def _cells(self, key: str, at: int) -> int:
        if key != "cells" or self.text[at : at + 1] != "[":
            return skip(self.text, at)[1]
        self.lists += 1
        return items(self.text, at, self._cell)

    def _cell(self, at: int) -> int:
        self.count += 1
        if self.text[at : at + 1] != "{":
            return skip(self.text, at)[1]
        values: dict[str, tuple[Any, int, int]] = {}

        def visit(key: str, at: int) -> int:
            value, end = skip(self.text, at)
            if key in _KEPT:
                values[key] = value, at, end
            return end

        end = _members(self.text, at, visit)
        if "source" in values or "input" in values:
            self._take(values, *values.get("source", values.get("input", ("", at, at))))
        return end

    def _take(self, values: Mapping[str, tuple[Any, int, int]], source: Any, start: int, end: int) -> None:
        """Keep a cell if it holds Python."""
        if values.get("cell_type", ("",))[0] != "code" or not _cell_is_python(values):
            return
        pieces = source if isinstance(source, list) else [source]
        if not all(isinstance(piece, str) for piece in pieces):
            line = self.text.count("\n", 0, start) + 1
            raise NotebookError(f"not a notebook: the source of cell {self.count} is not text", line)
        text = "".join(pieces)
        if not text.isascii() and not text.isprintable() and any("\ud800" <= letter <= "\udfff" for letter in text):
            line = self.text.count("\n", 0, start) + 1
            raise NotebookError(f"cell {self.count} contains half of a surrogate pair, which is not text", line)
        self.found.append(Cell(self.count, text, start, end))


def _is_python(metadata: Any) -> bool:
    """Whether a notebook's code is Python, also if the metadata do not say."""
    language = _inside(metadata, "kernelspec", "language") or _inside(metadata, "language_info", "name")
    if language:
        return "python" in language.lower()
    return not _OTHER_KERNELS.match(_inside(metadata, "kernelspec", "name"))


def _cell_is_python(values: Mapping[str, tuple[Any, int, int]]) -> bool:
    language = _inside(values.get("metadata", (None,))[0], "vscode", "languageId") or values.get("language", ("",))[0]
    return not isinstance(language, str) or not language or "python" in language.lower()


def _inside(metadata: Any, section: str, key: str) -> str:
    part = metadata.get(section) if isinstance(metadata, dict) else None
    value = part.get(key) if isinstance(part, dict) else None
    return value if isinstance(value, str) else ""
