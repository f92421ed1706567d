"""One run at a time: a lock that is released when its process ends in any way."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PATIENCE = 10.0
_PAUSE = 0.05
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HELD = frozenset((errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK, errno.EDEADLK))
# For example the error of Lustre without its flock option.
_NO_LOCKS = frozenset((errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL))


class LockedError(Exception):
    """Another process holds the lock; the text says what to do."""


@contextlib.contextmanager
def locked(path: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Hold a lock on a file, which is created if necessary.

    Raises LockedError if another process still holds it after ``patience`` seconds, OSError if it cannot be made.
    """
    deadline = time.monotonic() + patience
    descriptor = os.open(path, _FLAGS, 0o600)
    marker = path.with_name(path.name + ".held")
    marked = False
    try:
        while not (taken := _try(descriptor, marker)):
            if time.monotonic() >= deadline:
                raise LockedError(_complaint(path, marker))
            time.sleep(_PAUSE)
        marked = taken == _MARKED
        yield
    finally:
        if marked:
            os.unlink(marker)
        os.close(descriptor)


_MARKED = "marked"


def _try(descriptor: int, marker: Path) -> str:
    """Take the lock and return how; empty if another process holds it."""
    try:
        _lock(descriptor)
    except OSError as error:
        if error.errno in _HELD:
            return ""
        if error.errno in _NO_LOCKS:
            return _mark(marker)
        raise
    return "locked"


def _mark(marker: Path) -> str:
    """On a file system without locks a file serves as lock, which survives a killed process."""
    try:
        made = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return ""
    try:
        os.write(made, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    finally:
        os.close(made)
    return _MARKED


def _complaint(path: Path, marker: Path) -> str:
    if not os.path.lexists(marker):
        return f"another run has locked {path}; try again when it is done"
    try:
        holder = marker.read_bytes()[:200].decode(errors="replace").strip()
    except OSError:
        holder = "another run"
    return f"{holder} has locked {path}; if that process is gone, remove {marker} (this file system has no locks)"


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
