"""The open buffers as the server sees them: their versions, and what was last found in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pygls.uris import from_fs_path, to_fs_path

NOTHING: Mapping[str, Any] = {"diagnostics": [], "fixes": [], "problems": []}


@dataclass
class Paper:
    """One open buffer.

    ``sent`` is the version that the linting process has, ``seen`` the one that ``diagnosis`` is about, None before the
    first; ``trouble`` is what is wrong with its configuration.
    """

    uri: str
    path: str
    version: int
    text: str
    sent: int | None = None
    seen: int | None = None
    diagnosis: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    trouble: str = ""

    def change(self, version: int, text: str) -> None:
        """Take the text after a keystroke."""
        self.version, self.text = version, text


class Papers:
    """The open buffers by URI, as the editor spells it."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Paper] = {}

    def open(self, uri: str, version: int, text: str) -> Paper | None:
        """Take a buffer; None for one that is no file (an unsaved buffer without a name, a revision of git)."""
        place = to_fs_path(uri)
        if place is None:
            return None
        self._by_uri[uri] = Paper(uri, Path(place).as_posix(), version, text)
        return self._by_uri[uri]

    def close(self, uri: str) -> Paper | None:
        """Forget a buffer."""
        return self._by_uri.pop(uri, None)

    def get(self, uri: str) -> Paper | None:
        """A buffer that is open."""
        return self._by_uri.get(uri)

    def __iter__(self) -> Iterator[Paper]:
        return iter(tuple(self._by_uri.values()))

    def at(self, path: str) -> Paper | None:
        """The open buffer of a file."""
        return next((one for one in self._by_uri.values() if one.path == path), None)

    def uri_of(self, path: str) -> str:
        """The URI of a file, as the editor spells it where it is open."""
        paper = self.at(path)
        return paper.uri if paper is not None else from_fs_path(path) or Path(path).as_uri()

    def version_of(self, path: str) -> int | None:
        """The version of an open buffer, None for a file that is not open."""
        paper = self.at(path)
        return paper.version if paper is not None else None
