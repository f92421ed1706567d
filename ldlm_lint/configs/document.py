"""A configuration file as data with positions: every key, list item and value, in the order of the file."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.source import Kind, Source

Key = str | int
Path = tuple[Key, ...]
"""The keys from the root of a document to a value; list items by their index."""
_Place = tuple[int, Path]


class Shape(enum.Enum):
    """The kind of a value."""

    SCALAR = "scalar"
    MAPPING = "mapping"
    SEQUENCE = "sequence"


class Entry(NamedTuple):
    """A value of a document and its position.

    ``value`` is a scalar as Python data (str, int, float, bool, None); None for a mapping or sequence. ``text`` is the
    scalar without its quotes, ``span`` the value as written with them, ``key_span`` its key (None for a list item and
    the root). ``document`` counts the documents of a YAML stream from 0. ``shared``: the value comes from another place
    (a YAML alias or merge key), so that an edit would change both. ``tag`` is the YAML tag as written (``!ref``,
    ``!new:torch.optim.Adam``), whose meaning only the program knows; the span leaves it out.
    """

    path: Path
    shape: Shape
    value: object
    text: str
    span: Span
    key_span: Span | None = None
    document: int = 0
    shared: bool = False
    tag: str = ""

    @property
    def name(self) -> str:
        """The last key; empty for a list item and the root."""
        return self.path[-1] if self.path and isinstance(self.path[-1], str) else ""

    @property
    def whole(self) -> Span:
        """The key and its value together."""
        start = self.span.start if self.key_span is None or self.shared else self.key_span.start
        return Span(self.span.path, start, self.span.end, self.span.cell)


@dataclass(frozen=True)
class Document:
    """The entries of a configuration file in its order; containers are before their contents.

    The root's entry has the empty path. A key that is written twice has two entries, of which the last one is
    effective.
    """

    path: str
    kind: Kind
    entries: tuple[Entry, ...]

    @cached_property
    def _tables(self) -> tuple[dict[_Place, Entry], dict[_Place, list[Path]]]:
        """The entries that count by their place, and the paths below each place."""
        found: dict[_Place, Entry] = {}
        below: dict[_Place, list[Path]] = {}
        for one in self.entries:
            place = (one.document, one.path)
            if place in found:
                # The contents of a key that is repeated later do not count either.
                lost = below.pop(place, [])
                while lost:
                    gone = (one.document, lost.pop())
                    found.pop(gone, None)
                    lost += below.pop(gone, ())
            elif one.path:
                below.setdefault((one.document, one.path[:-1]), []).append(one.path)
            found[place] = one
        return found, below

    @cached_property
    def documents(self) -> int:
        """How many documents the file holds."""
        return max((one.document for one in self.entries), default=-1) + 1

    def get(self, *path: Key, document: int = 0) -> Entry | None:
        """The entry at a path, None if there is none."""
        return self._tables[0].get((document, path))

    def children(self, *path: Key, document: int = 0) -> Iterator[Entry]:
        """The entries directly below a path, each once."""
        found, below = self._tables
        return (found[document, one] for one in below.get((document, path), ()))

    def scalars(self) -> Iterator[Entry]:
        """Every effective scalar."""
        return (one for one in self._tables[0].values() if one.shape is Shape.SCALAR)

    def named(self, name: str) -> Iterator[Entry]:
        """Every effective entry with this last key."""
        return (one for one in self._tables[0].values() if one.name == name)


class DocumentError(Exception):
    """A file that is invalid for its kind, at a 1-based line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class DataError(DocumentError):
    """A file of data rather than of settings: it is valid, and contains no settings."""


class ChartError(DocumentError):
    """A template of a Helm chart: by design not YAML before it is rendered, so there is nothing to fix."""


def spans(source: Source) -> Callable[[int, int], Span]:
    """From the character range of a source's text to the span of file bytes after it."""
    bom, text, path = source.bom, source.text, source.path
    plain = len(source.segments) == 1
    if text.isascii():
        if plain:
            return lambda start, end: Span(path, start + bom, end + bom)
        return lambda start, end: source.span(start + bom, end + bom)
    table = [bom]
    for letter in text:
        table.append(table[-1] + len(letter.encode()))
    return lambda start, end: source.span(table[start], table[end])
