"""The content of each file: known from its status if that is certain, else read.

A file whose size, times and inode are those of its last reading has the same content, unless it was written again
within the resolution of the clock of its file system. So a reading is trusted only if the file had been unchanged for a
while before it (as git does for *racy* entries); otherwise the file is read again, and then the reading is trusted.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping

from ldlm_lint.cache import stored
from ldlm_lint.cache.stamp import blake2b

MARGIN_NS = 2_000_000_000
"""How long a file must have been left alone: FAT counts in steps of two seconds."""
HEAD_BYTES = 256
_LARGEST = 8_000_000
_BELIEVES = os.name == "posix"
"""Elsewhere no time of a file tells that it was written: the one that programs can set is all there is."""

Signature = tuple[int, int, int, int, int]
Inputs = dict[str, dict[str, str]]
"""For each kind of look (a key of `LOOKS`) what it gave, by path."""


class Index:
    """The contents of files by their paths (absolute), kept in one entry of the cache.

    ``path`` is where it is kept; empty: nowhere.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.changed = False
        document = (stored.read_document(path) if path else None) or {}
        self._known: dict[str, dict[str, list[object]]] = {
            kind: found if isinstance(found := document.get(kind), dict) else {} for kind in _READ
        }

    def look(self, kind: str, path: str) -> str:
        """The current result of a look-up at a path; empty if there is nothing."""
        if kind not in _READ:
            return _SEEN[kind](path)
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            return ""
        signature = _signature(status)
        known = self._known[kind].get(path)
        if known.__class__ is list and len(known) == 3 and known[0] == signature and known[1] is True:
            return str(known[2])
        before = time.time_ns()
        digest = _READ[kind](path, status)
        # The previous entry may be more useful than a reading that cannot be trusted yet.
        settled = _BELIEVES and max(status.st_mtime_ns, status.st_ctime_ns) + MARGIN_NS < before
        entry = [signature, settled, digest]
        if known != entry:
            self._known[kind][path] = entry
            self.changed = True
        return digest

    def holds(self, inputs: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether every look-up still gives the same result."""
        look = self.look
        return all(look(kind, path) == digest for kind, places in inputs.items() for path, digest in places.items())

    def save(self) -> int:
        """Save new facts; returns how many bytes were written."""
        if not self.path or not self.changed:
            return 0
        self.changed = False
        return stored.write_document(self.path, dict(self._known))


def digest_of(data: bytes) -> str:
    """The name of a content."""
    return blake2b(data, digest_size=16).hexdigest()


def _signature(status: os.stat_result) -> list[int]:
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode]


def _file(path: str, status: os.stat_result) -> str:
    """The content of a regular file; one that is too large to be read uses the time of its last change as content.

    So does the target of a link, which may be outside of the project.
    """
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    if status.st_size > _LARGEST or os.path.islink(path):
        return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    try:
        with open(path, "rb") as file:
            return digest_of(file.read(_LARGEST + 1))
    except OSError as error:
        return f"unreadable: {error.errno}"


def _head(path: str, status: os.stat_result) -> str:
    """The beginning of a file, which determines its kind."""
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    try:
        with open(path, "rb") as file:
            return digest_of(file.read(HEAD_BYTES))
    except OSError as error:
        return f"unreadable: {error.errno}"


def _listing(path: str, status: os.stat_result) -> str:
    """The names in a directory, each with whether it is a directory, a file or a link."""
    if not stat.S_ISDIR(status.st_mode):
        return "no directory"
    try:
        with os.scandir(path) as found:
            names = sorted(f"{entry.name}\0{_type(entry)}" for entry in found)
    except OSError as error:
        return f"unreadable: {error.errno}"
    return digest_of("\0".join(names).encode("utf-8", "surrogateescape"))


def _tracked(path: str, status: os.stat_result) -> str:
    """The names in an index of git, which writes it again whenever it has checked the files."""
    if not stat.S_ISREG(status.st_mode):
        return "no file"
    from ldlm_lint.tracked import tracked_names

    return digest_of("\0".join(tracked_names(path)).encode("utf-8", "surrogateescape"))


def _type(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file(follow_symlinks=False) else "o"


def _exists(path: str) -> str:
    return "yes" if os.path.exists(path) else ""


def _target(path: str) -> str:
    return os.path.realpath(path)


def _size(path: str) -> str:
    try:
        return str(os.stat(path).st_size)
    except OSError:
        return ""


_READ: Mapping[str, Callable[[str, os.stat_result], str]] = {"file": _file, "head": _head, "listing": _listing, "tracked": _tracked}
_SEEN: Mapping[str, Callable[[str], str]] = {"exists": _exists, "target": _target, "size": _size}
LOOKS = (*_READ, *_SEEN)
