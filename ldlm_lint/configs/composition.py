"""Several merged configuration files, and the effective value at a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.configs.document import Document, Entry, Key, Path, Shape
from ldlm_lint.configs.interpolation import Resolved, is_interpolated, resolve

_MISSING = "???"


class Part(NamedTuple):
    """A file of a composition and the package (path of keys) that its content goes to.

    ``document`` is None for a part that cannot be read, such as a missing file or an option that only the command line
    decides: its settings are unknown.
    """

    path: str
    package: Path
    document: Document | None


class Held(NamedTuple):
    """The effective entry at a key, its file, and the entries of other files that it overrides.

    ``entry.path`` counts from the root of its file, not of the composition.
    """

    entry: Entry
    path: str
    shadowed: tuple[Entry, ...] = ()


class Composition(NamedTuple):
    """The parts of a configuration in order of precedence: a later one wins."""

    parts: tuple[Part, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part is known."""
        return all(part.document is not None for part in self.parts)

    def value_at(self, *keys: Key) -> Held | None:
        """The effective entry at a path of keys; None if there is none, or an unknown part may set it."""
        found: Held | None = None
        for part, entry in self._set(keys):
            if entry is None:
                return found
            if found is None:
                found = Held(entry, part.path)
            elif entry.shape is Shape.SCALAR:
                found = Held(found.entry, found.path, (*found.shadowed, entry))
        return found

    def absent(self, *keys: Key) -> bool:
        """Whether certainly no part sets a key."""
        return next(self._set(keys), None) is None

    def resolved(self, *keys: Key) -> Resolved | None:
        """The scalar at a path of keys, with interpolations resolved; None if unknown."""
        held = self.value_at(*keys)
        return None if held is None else resolve(held.entry, keys, self._entry)

    def _entry(self, keys: Path) -> Entry | None:
        held = self.value_at(*keys)
        return None if held is None else held.entry

    def _set(self, keys: Path) -> Iterator[tuple[Part, Entry | None]]:
        """The values of the parts at a key, the highest precedence first; without an entry if unknown."""
        for part in reversed(self.parts):
            depth = len(part.package)
            if part.document is None:
                if part.package[: len(keys)] == keys[:depth]:
                    yield part, None
                    return
                continue
            if keys[:depth] != part.package or keys[depth : depth + 1] == ("defaults",):
                continue
            entry, ends = _inside(part.document, keys[depth:])
            if entry is not None or ends is None:
                yield part, entry
            if ends is not False:
                return


def _inside(document: Document, keys: Path) -> tuple[Entry | None, bool | None]:
    """The value of a file at a path, and whether it replaces the values of lower parts completely (None: unknown)."""
    for depth in range(len(keys)):
        above = document.get(*keys[:depth])
        if above is None:
            return None, False
        if above.shape is Shape.SCALAR and depth:
            return None, None if is_interpolated(above.text) or above.tag else _is_given(above)
        if above.shape is Shape.SEQUENCE and document.get(*keys[: depth + 1]) is None:
            return None, True
    entry = document.get(*keys)
    if entry is None or not _is_given(entry):
        return None, False
    return entry, False


def _is_given(entry: Entry) -> bool:
    """Whether an entry is more than a marker for a value required from elsewhere."""
    return entry.text != _MISSING
