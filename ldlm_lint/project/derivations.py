"""The class hierarchy of a project, by the texts of its files; a class is identified by its last name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from ldlm_lint.python.class_bases import class_bases

_NONE: frozenset[str] = frozenset()


class Derivations:
    """The bases and subclasses of a class; the index of the project is built on demand."""

    def __init__(self, files: Iterable[str], data: Callable[[str], bytes]) -> None:
        self._files = files
        self._data = data
        self._known: dict[str, Mapping[str, frozenset[str]]] = {}
        self._holding: dict[frozenset[str], frozenset[str]] = {}

    def bases(self, path: str, name: str) -> frozenset[str]:
        """The words in the names of the bases of a class of a file; for several classes with that name those of the
        first one."""
        return self._in(path).get(name, _NONE)

    def derived(self, base: str) -> frozenset[tuple[str, str]]:
        """The classes of all files, each with its file, that name a class as one of their bases."""
        return self._derived.get(base, frozenset())

    def holding(self, roots: frozenset[str]) -> frozenset[str]:
        """The files that hold a class which is derived from one of these, directly or through classes of the project."""
        if roots not in self._holding:
            seen, waiting, paths = set(roots), list(roots), set()
            while waiting:
                for path, name in self.derived(waiting.pop()):
                    paths.add(path)
                    if name not in seen:
                        seen.add(name)
                        waiting.append(name)
            self._holding[roots] = frozenset(paths)
        return self._holding[roots]

    def _in(self, path: str) -> Mapping[str, frozenset[str]]:
        if path not in self._known:
            known = self._known[path] = {}
            for name, bases in class_bases(self._data(path)):
                known.setdefault(name, bases)
        return self._known[path]

    @cached_property
    def _derived(self) -> dict[str, frozenset[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for path in self._files:
            for name, bases in class_bases(self._data(path)):
                for base in bases:
                    found.setdefault(base, set()).add((path, name))
        return {base: frozenset(classes) for base, classes in found.items()}
