"""The tracked files of git, whatever its ignore files say: the names in the index of a repository.

A pattern of an ignore file does not affect a file that was added before the pattern or with force
(https://git-scm.com/docs/gitignore, "files already tracked by Git are not affected"). Training programs are often such
files: ``configs/`` and ``scripts/`` are ignored because of generated copies, and the originals are tracked.

git itself is not run, because the settings of a repository may name programs that git runs (``core.fsmonitor``).
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path

from ldlm_lint.files import disk

_REPOSITORY = ".git"
_LARGEST = 64_000_000
_MOST = 500_000
# https://git-scm.com/docs/index-format: the bytes before the flags of an entry, and the length of an object name.
_BEFORE_FLAGS = 40
_NAME_OF_OBJECT = 20
_EXTENDED = 0x4000


class Tracked:
    """Answers which tracked files are at or below paths (absolute, forward slashes); each index is read when it is
    needed."""

    def __init__(self, note: Callable[[str, str], object]) -> None:
        """``note`` is called for each file system look-up."""
        self._note = note
        self._roots: dict[str, str] = {}
        self._names: dict[str, list[str]] = {}

    def at(self, path: str) -> Iterator[str]:
        """The tracked files at a path or below it, sorted."""
        root = self._root_of(path.rpartition("/")[0])
        if not root or not path.startswith(f"{root}/"):
            return
        names, inner = self._names_in(root), path[len(root) + 1 :]
        for number in range(bisect_left(names, inner), len(names)):
            name = names[number]
            if name == inner or name.startswith(f"{inner}/"):
                yield f"{root}/{name}"
            elif not name.startswith(inner):
                return

    def _root_of(self, directory: str) -> str:
        """The repository that a directory belongs to; empty if it belongs to none."""
        if directory not in self._roots:
            found = os.path.exists(f"{directory}/{_REPOSITORY}")
            self._note("exists", f"{directory}/{_REPOSITORY}")
            above = directory.rpartition("/")[0]
            self._roots[directory] = directory if found else self._root_of(above) if above else ""
        return self._roots[directory]

    def _names_in(self, root: str) -> list[str]:
        if root not in self._names:
            index = index_of(root)
            for kind in ("exists", "target"):
                self._note(kind, f"{root}/{_REPOSITORY}/index")
            if index:
                self._note("tracked", index)
            self._names[root] = sorted(tracked_names(index)) if index else []
        return self._names[root]


def index_of(root: str) -> str:
    """The path of a repository's index, which must be inside it; empty if a link or a ``.git`` file leads elsewhere.

    That includes worktrees and submodules: the scanned repository must not choose which file we read.
    """
    index = f"{root}/{_REPOSITORY}/index"
    inside = os.path.realpath(index) == os.path.join(os.path.realpath(root), _REPOSITORY, "index")
    return index if inside and os.path.isfile(index) else ""


def tracked_names(index: str) -> list[str]:
    """The names in an index, empty if it cannot be read or has an unknown format."""
    try:
        data = disk.read(Path(index), _LARGEST)
        return [name.decode("utf-8", "surrogateescape") for name in _names_of(data)]
    except (OSError, ValueError, IndexError):
        return []


def _names_of(data: bytes) -> Iterator[bytes]:
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if data[:4] != b"DIRC" or version not in (2, 3, 4) or count > _MOST:
        raise ValueError("no index")
    at, before = 12, b""
    for _ in range(count):
        start = at
        at += _BEFORE_FLAGS + _NAME_OF_OBJECT
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & _EXTENDED else 2
        if version == 4:
            dropped, at = _number(data, at)
            before = before[: len(before) - dropped]
        end = data.index(b"\0", at)
        name = before + data[at:end]
        if version == 4:
            before, at = name, end + 1
        else:
            # One to eight zeros, so that each entry is a multiple of eight bytes long.
            at = start + (end - start + 8) // 8 * 8
        yield name


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of varying length, and where it ends: git's encoding of offsets in packs."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = (value + 1) << 7 | byte & 0x7F
    return value, at + 1
