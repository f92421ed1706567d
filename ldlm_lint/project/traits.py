"""Traits in the text of files, for sets of files: each file is searched once per trait."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from ldlm_lint.project.filesets import FileSet, Universe
from ldlm_lint.python.skim import holds_any, without_comments


@dataclass(frozen=True, eq=False)
class Trait:
    """A pattern that a file's text may show; each match contains one of the words, which are found much faster.

    ``code``: comments are left out. ``beside`` is what the text must show too.
    Words of a pattern that ignores case are written in lower case.
    """

    pattern: re.Pattern[bytes]
    words: tuple[bytes, ...]
    code: bool = False
    beside: re.Pattern[bytes] | None = None

    def shows(self, data: bytes) -> bool:
        """Whether a text has the trait."""
        text = data.lower() if self.pattern.flags & re.I else data
        if not holds_any(text, self.words):
            return False
        if self.beside is not None and not self.beside.search(data):
            return False
        return self.pattern.search(without_comments(data) if self.code else data) is not None


class Traits:
    """Remembers which files of a project have which traits."""

    def __init__(self, universe: Universe, data: Callable[[str], bytes]) -> None:
        self._universe = universe
        self._data = data
        self._known: dict[object, int] = {}
        self._shown: dict[object, int] = {}

    def any(self, paths: Collection[str], trait: Trait) -> bool:
        """Whether one of these files has a trait."""
        return self.any_that(paths, trait, lambda path: trait.shows(self._data(path)))

    def all(self, trait: Trait) -> FileSet:
        """The files that have a trait."""
        unknown = FileSet(self._universe, self._universe.all.bits & ~self._known.get(trait, 0))
        found = self._universe.of([path for path in unknown if trait.shows(self._data(path))])
        self._known[trait] = self._universe.all.bits
        self._shown[trait] = self._shown.get(trait, 0) | found.bits
        return FileSet(self._universe, self._shown[trait])

    def any_that(self, paths: Collection[str], key: object, test: Callable[[str], bool]) -> bool:
        """Whether one of these files passes a test, identified by the key."""
        files = self._universe.of(paths)
        if files is not paths and any(path not in self._universe.numbers and test(path) for path in paths):
            return True
        if files.bits & self._shown.get(key, 0):
            return True
        found = next(filter(test, FileSet(self._universe, files.bits & ~self._known.get(key, 0))), None)
        if found is None:
            self._known[key] = self._known.get(key, 0) | files.bits
            return False
        bit = 1 << self._universe.numbers[found]
        # Earlier ones were tested as well.
        self._known[key] = self._known.get(key, 0) | (files.bits & ((bit << 1) - 1))
        self._shown[key] = self._shown.get(key, 0) | bit
        return True

