"""The calls that change something on the disk, each durable when it returns; all of autofix writes through them."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
# Without O_NONBLOCK the opening of a pipe that somebody put there would wait for a writer.
_OLD = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _SAFELY


def create(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Make a file that must not exist and put ``data`` on the disk; nothing stays of it where that fails.

    By default nobody else may read it, since it may hold what only one may read. Raises OSError.
    """
    descriptor = os.open(path, _NEW, mode)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        remove(path)
        raise


def put(path: Path, data: bytes) -> None:
    """Make a file of our own, or replace it, in one step; raises OSError."""
    temporary = path.with_name(path.name + ".new")
    remove(temporary)
    create(temporary, data)
    os.replace(temporary, path)
    sync_folder(path.parent)


def read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file that is no link; raises OSError, also for one of more than ``limit`` bytes."""
    descriptor = os.open(path, _OLD)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit:,} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file if it is there; raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(folder: Path) -> None:
    """Make names that came to or went from a folder durable, where the system lets one be opened (Windows never does)."""
    # What is in the folder is already done, so that one which cannot be synchronised is no reason to report a failure.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
