"""The logs named by the user, as they appear: a followed log or folder need not exist yet, and a folder may grow."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ldlm_lint.monitor import sources
from ldlm_lint.monitor.sources import NoLog, Source

_SHARE = 10.0
"""A search of a large folder waits for this many times as long as the last one took."""


class Arrivals:
    """Finds the sources of paths, each once and with a unique name.

    ``waiting`` has the paths without a log so far, each with the reason.
    """

    def __init__(self, paths: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self.paths, self.clock = tuple(paths), clock
        self.waiting: dict[str, NoLog] = {}
        self._known: dict[str, Source] = {}
        self._files: set[str] = set()
        self._due = clock()

    @property
    def finished(self) -> bool:
        """Whether no further log can appear: standard input is the only source, and was found."""
        return bool(self._known) and all(path == "-" for path in self.paths)

    def look(self, *, follow: bool = False) -> list[Source]:
        """The sources that are new since the last call. With ``follow`` a file of unknown kind waits."""
        start = self.clock()
        if start < self._due:
            return []
        new = [self._named(one) for path in self.paths if path not in self._files for one in self._at(path, follow)]
        end = self.clock()
        self._due = end + _SHARE * (end - start)
        return new

    def forget(self, gone: Source) -> None:
        """The file was removed before it was read: it may appear again."""
        self._known = {key: one for key, one in self._known.items() if one != gone}
        self._files.discard(gone.path)
        if gone.path in self.paths:
            self.waiting[gone.path] = NoLog(f"{gone.path}: no such file or folder")

    def _at(self, path: str, follow: bool) -> list[Source]:
        try:
            found = sources.find(path)
            if not found:
                raise NoLog(f"{path}: there is no log in this folder")
            if follow and len(found) == 1 and found[0].path == path and sources.unclear(path):
                raise NoLog(f"{path}: the file is empty")
        except NoLog as error:
            self.waiting[path] = error
            return []
        self.waiting.pop(path, None)
        if not os.path.isdir(path):
            self._files.add(path)
        return [one for one in found if sources.identity(one) not in self._known]

    def _named(self, one: Source) -> Source:
        names = {known.name for known in self._known.values()}
        one = replace(one, name=one.name if one.name not in names else one.path)
        self._known[sources.identity(one)] = one
        return one
