"""The server's open buffers: their texts and versions, and their last diagnoses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pygls.uris import from_fs_path, to_fs_path

NOTHING: Mapping[str, Any] = {"diagnostics": [], "fixes": [], "problems": []}
_PYTHON = "python"


@dataclass
class Cell:
    """A cell of an open notebook, which editors treat as a document; ``language`` is empty for one without code."""

    uri: str
    language: str
    version: int
    text: str

    @property
    def stored(self) -> dict[str, Any]:
        """The cell as a notebook's file has it."""
        metadata = {} if self.language == _PYTHON else {"vscode": {"languageId": self.language}}
        kind = "code" if self.language else "markdown"
        return {"cell_type": kind, "metadata": metadata, "source": self.text}


@dataclass
class Paper:
    """One open buffer.

    ``cells`` are those of a notebook, whose ``text`` is the JSON that they make. ``sent`` is the version that the linting
    process has, ``seen`` the one that ``diagnosis`` is about, None before the first; ``trouble`` is what is wrong with
    its configuration, ``faults`` are the places of that, each with ``path``, ``line`` and ``message``. ``unsaved`` is set
    from a change of the text until it is saved.
    """

    uri: str
    path: str
    version: int
    text: str
    cells: list[Cell] = field(default_factory=list)
    sent: int | None = None
    seen: int | None = None
    diagnosis: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    trouble: str = ""
    faults: tuple[Mapping[str, Any], ...] = ()
    unsaved: bool = False

    def change(self, version: int, text: str) -> None:
        """Take the text after a keystroke."""
        self.version, self.text, self.unsaved = version, text, True

    def rewrite(self, version: int) -> None:
        """Take the text of a notebook whose cells have changed."""
        self.change(version, notebook_text(self.cells))

    def documents(self) -> Iterator[tuple[int | None, str, int]]:
        """The documents with diagnostics: the buffer, for a notebook its cells by number; with URIs and versions."""
        if not self.path.lower().endswith(".ipynb"):
            yield None, self.uri, self.version
        for number, cell in enumerate(self.cells, start=1):
            yield number, cell.uri, cell.version


def notebook_text(cells: Iterable[Cell]) -> str:
    """The file of a notebook with these cells, with the parts that a linter reads."""
    return json.dumps({"cells": [cell.stored for cell in cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class Papers:
    """The open buffers by URI, as the editor spells it."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Paper] = {}

    def open(self, uri: str, version: int, text: str, cells: Iterable[Cell] = ()) -> Paper | None:
        """Take a buffer; None for one that is not a file (an unsaved buffer without a name, a revision of git)."""
        place = to_fs_path(uri)
        if place is None:
            return None
        self._by_uri[uri] = Paper(uri, Path(place).as_posix(), version, text, list(cells))
        return self._by_uri[uri]

    def close(self, uri: str) -> Paper | None:
        """Forget a buffer."""
        return self._by_uri.pop(uri, None)

    def get(self, uri: str) -> Paper | None:
        """A buffer that is open."""
        return self._by_uri.get(uri)

    def of_document(self, uri: str) -> tuple[Paper | None, int | None]:
        """The buffer of a document, or the notebook that it is a cell of, and that cell's number."""
        paper = self._by_uri.get(uri)
        if paper is not None:
            return paper, None
        found = ((one, number) for one in self for number, cell, _ in one.documents() if cell == uri)
        return next(found, (None, None))

    def __iter__(self) -> Iterator[Paper]:
        return iter(tuple(self._by_uri.values()))

    def uri_of(self, path: str, cell: int | None = None) -> str:
        """The URI of a file, or of a cell of a notebook, as spelt by the editor if it is open."""
        paper = next((one for one in self if one.path == path), None)
        if paper is None:
            return from_fs_path(path) or Path(path).as_uri()
        return paper.uri if cell is None or cell > len(paper.cells) else paper.cells[cell - 1].uri

    def version_of(self, uri: str) -> int | None:
        """The version of an open document, None for a file that is not open."""
        return next((version for one in self for _, open_uri, version in one.documents() if open_uri == uri), None)
