"""The directory of the cache, its access rights, and its size limit."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping

VARIABLE = "LDLM_LINT_CACHE_DIR"
LIMIT = 500_000_000
"""The most bytes that the cache keeps; beyond, what was not used for longest goes."""
_KEPT = 0.8
_LOOKED_AT = 0.02
_SECONDS = 600
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = "Signature: 8a477f597d28d172789f06886806bc55\n# What ldlm-lint remembers; `ldlm-lint clean` removes it.\n"
_OTHERS_WRITE = 0o022


def directory(environ: Mapping[str, str] = os.environ) -> str:
    """The directory of the cache, absolute; empty if the user has none."""
    named = environ.get(VARIABLE)
    if named:
        return os.path.abspath(named)
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        given = environ.get("XDG_CACHE_HOME", "")
        # The specification says that a relative path must be ignored.
        base = given if os.path.isabs(given) else os.path.join(home, ".cache")
    return os.path.join(base, "ldlm-lint") if os.path.isabs(base) else ""


def is_ours(place: str) -> bool:
    """Whether a directory exists that no other user can have written to."""
    try:
        status = os.stat(place)
    except (OSError, ValueError):
        return False
    if not os.path.isdir(place):
        return False
    return os.name != "posix" or (status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE)


def prepare(place: str) -> bool:
    """Create the directory, for its owner only; False if it cannot be created or belongs to another user."""
    try:
        os.makedirs(place, mode=0o700, exist_ok=True)
        if os.name == "posix" and os.stat(place).st_uid == os.geteuid():
            os.chmod(place, 0o700)
        tag = os.path.join(place, _TAG)
        if not os.path.exists(tag):
            with open(tag, "w", encoding="utf-8") as file:
                file.write(_TAG_TEXT)
    except (OSError, ValueError):
        return False
    return is_ours(place)


def entries(place: str) -> Iterator[os.DirEntry[str]]:
    """The files of the cache, in no order; links are never followed."""
    try:
        found = list(os.scandir(place))
    except OSError:
        return
    for entry in found:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                yield from entries(entry.path)
            elif entry.name != _TAG:
                yield entry


def bound(place: str, written: int, limit: int = LIMIT) -> None:
    """Keep the cache within ``limit`` bytes after so many were written; checked only sometimes, since it takes a
    directory walk."""
    tag = os.path.join(place, _TAG)
    try:
        due = written > limit * _LOOKED_AT or time.time() - os.stat(tag).st_mtime > _SECONDS
        if due:
            os.utime(tag)
    except OSError:
        return
    if due:
        prune(place, limit)


def prune(place: str, limit: int = LIMIT) -> None:
    """Remove what was not used for longest, until the cache is well below ``limit`` bytes; no effect below the
    limit.
    """
    found = []
    for entry in entries(place):
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            found.append((status.st_mtime_ns, status.st_size, entry.path))
    total = sum(size for _, size, _ in found)
    if total <= limit:
        return
    for _, size, path in sorted(found):
        if total <= limit * _KEPT:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
            total -= size


def clean(place: str) -> tuple[int, int]:
    """Remove the cache; returns how many files and bytes it was. Raises OSError for what cannot be removed.

    Only cache files are removed: a directory without our tag belongs to another program.
    """
    if not os.path.isfile(os.path.join(place, _TAG)):
        return 0, 0
    count = size = 0
    for entry in list(entries(place)):
        if entry.name.endswith(SUFFIXES):
            size += entry.stat(follow_symlinks=False).st_size
            os.unlink(entry.path)
            count += 1
    for name in FOLDERS:
        with contextlib.suppress(OSError):
            os.rmdir(os.path.join(place, name))
    os.unlink(os.path.join(place, _TAG))
    with contextlib.suppress(OSError):
        # Other files of the user stay.
        os.rmdir(place)
    return count, size


FOLDERS = ("runs", "index", "facts")
SUFFIXES = (".run", ".index", ".facts", ".part")
