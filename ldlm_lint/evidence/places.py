"""Maps the places of evidence to the files that are linted now: other checkouts, other roots, moved lines.

Paths of evidence are never opened. They only choose among the files that the check reads anyway.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType

from ldlm_lint.config import relative_to
from ldlm_lint.evidence.model import Site
from ldlm_lint.model import Edit
from ldlm_lint.source import Source

MOST_LINES = 100_000


class Linted:
    """The linted files, for looking up places of evidence.

    ``root`` is the project that the paths are relative to, ``source`` gives the text of a file (None: it cannot be
    read), ``started`` the contents to compare evidence with, if they differ from the current ones, and ``moves`` the
    current positions of their lines (see `line_map`).
    """

    def __init__(
        self,
        root: str,
        paths: Iterable[str],
        source: Callable[[str], Source | None],
        started: Mapping[str, bytes] = MappingProxyType({}),
        moves: Mapping[str, Sequence[int]] = MappingProxyType({}),
    ) -> None:
        self._root = root
        self._source = source
        self._started = started
        self._moves = moves
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in sorted(set(paths)):
            self._by_name[path.rpartition("/")[2]].append(path)
        self._found: dict[tuple[str, str, str], str | None] = {}
        self._digests: dict[str, str] = {}

    def source(self, path: str) -> Source | None:
        """The text of a linted file."""
        return self._source(path)

    def file_of(self, path: str, root: str, sha256: str) -> str | None:
        """The linted file for a path of evidence, None if none or several match.

        The file itself; else the one of the same path relative to the project; else the one with the longest common
        path suffix, among equals the one with the same contents.
        """
        key = (path, root, sha256)
        if key not in self._found:
            self._found[key] = self._match(path, root, sha256)
        return self._found[key]

    def is_stale(self, path: str, sha256: str) -> bool:
        """Whether a linted file differs from the one behind the evidence; True without a hash."""
        return not sha256 or self._digest(path) != sha256.lower()

    def lines(self, path: str, site: Site) -> range:
        """The lines of a site in the current file."""
        first, last = site.line, min(max(site.end_line, site.line), site.line + MOST_LINES)
        lines = self._moves.get(path, ())
        if not 0 < first < len(lines):
            return range(first, last + 1)
        last = min(last, len(lines) - 1)
        return range(lines[first], max(lines[first], lines[last]) + 1)

    def _match(self, path: str, root: str, sha256: str) -> str | None:
        parts = _parts(path)
        candidates = self._by_name.get(parts[-1], []) if parts else []
        if not candidates:
            return None
        whole = parts if path.startswith("/") or path[1:2] == ":" else (*_parts(root), *parts)
        for one in candidates:
            if _parts(one) == whole:
                return one
        same = [one for one in candidates if _parts(relative_to(one, self._root) or "") == parts]
        if len(same) == 1:
            return same[0]
        near = {one: _agreement(_parts(one), whole) for one in candidates}
        most = max(near.values())
        # A bare file name matches every file of that name, so it is used only if there is one.
        best = [one for one, count in near.items() if count == most and self._is_whole(one, parts, count)]
        if len(best) > 1:
            best = [one for one in best if not self.is_stale(one, sha256)]
        return best[0] if len(best) == 1 else None

    def _is_whole(self, candidate: str, parts: tuple[str, ...], count: int) -> bool:
        """Whether one path is the end of the other: the evidence's below its root, or the file's below the project."""
        relative = _parts(relative_to(candidate, self._root) or "")
        return count >= len(parts) or bool(relative and count >= len(relative))

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = self._hashed(path)
        return self._digests[path]

    def _hashed(self, path: str) -> str:
        if path in self._started:
            return hashlib.sha256(self._started[path]).hexdigest()
        source = self._source(path)
        return hashlib.sha256(source.data).hexdigest() if source is not None else ""


def _parts(path: str) -> tuple[str, ...]:
    """The names of a path; empty for one with ``..``, which evidence of a project does not need."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return () if ".." in parts else tuple(part for part in parts if part not in ("/", "//"))


def _agreement(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many names two paths share, counted from their ends."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((count for count, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(one), len(other)))


def line_map(data: bytes, edits: Iterable[Edit]) -> tuple[int, ...]:
    """For each 1-based line of old contents its line after edits; index 0 is unused.

    A line follows its first character; replaced text is at the start of its replacement.
    """
    ordered = sorted(edits, key=lambda edit: (edit.span.start, edit.span.end))
    moved = [0]
    start = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        sign = start + len(line) - len(line.lstrip())
        moved.append(number + _shift(data, ordered, sign))
        start += len(line) + 1
    return tuple(moved)


def _shift(data: bytes, edits: Sequence[Edit], sign: int) -> int:
    """By how many lines edits move the byte at an offset."""
    lines = 0
    for edit in edits:
        start, end = edit.span.start, edit.span.end
        if end <= sign:
            lines += edit.text.count("\n") - data.count(b"\n", start, end)
        elif start < sign:
            lines -= data.count(b"\n", start, sign)
    return lines


def followed(first: Sequence[int], then: Sequence[int]) -> tuple[int, ...]:
    """One map of lines after another."""
    return tuple(then[line] if line < len(then) else line for line in first)
