"""The texts of files with findings, read on demand: most runs show a fraction of the files that they read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from ldlm_lint.discover import kind_of_name
from ldlm_lint.linting import Overlay, source_of
from ldlm_lint.scopes import Scope, scopes
from ldlm_lint.source import Kind, Source, UnreadableError

T = TypeVar("T")


class Sources(dict[str, Source]):
    """Sources by path; a file that cannot be read has as many blank lines as the position of its error needs.

    ``kinds`` are those of the files that are known, ``overlay`` holds contents that replace the files on disk.
    """

    def __init__(self, kinds: Mapping[str, Kind], overlay: Overlay) -> None:
        super().__init__()
        self._kinds = kinds
        self._overlay = overlay

    def __missing__(self, path: str) -> Source:
        kind = self._kinds.get(path) or kind_of_name(path) or Kind.SHELL
        try:
            source = source_of(path, kind, self._overlay)
        except UnreadableError as error:
            source = Source(path, b"\n" * (error.line - 1), kind)
        self[path] = source
        return source

    def scopes(self, path: str) -> tuple[Scope, ...]:
        """The functions and classes of a file, or the keys of a configuration, see `ldlm_lint.scopes.scopes`."""
        return scopes(self[path])

    def mentions(self, path: str, words: bytes) -> bool:
        """Whether a file contains some bytes; the file is not kept in memory."""
        if path in self:
            return words in self[path].data
        try:
            return words in (self._overlay[path] if path in self._overlay else Path(path).read_bytes())
        except OSError:
            return False

    def get(self, path: str, default: T | None = None) -> Source | T | None:  # type: ignore[override]
        """As ``[]``: every path has a source."""
        return self[path]
