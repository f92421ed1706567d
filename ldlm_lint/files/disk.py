"""The calls that change something on the disk, each durable when it returns."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFELY
# Without O_NONBLOCK opening a pipe placed there by another user would wait for a writer.
_OLD = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _SAFELY


def create(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Create a new file and write ``data`` to the disk; on failure the file is removed.

    By default only the owner can read it, since it may contain private data. Raises OSError.
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
    """Create or replace a file of our own atomically; raises OSError."""
    temporary = path.with_name(path.name + ".new")
    remove(temporary)
    create(temporary, data)
    os.replace(temporary, path)
    sync_folder(path.parent)


def read(path: Path, limit: int) -> bytes:
    """The bytes of a regular file that is not a link; raises OSError, also for one of more than ``limit`` bytes."""
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
    """Make created and removed names in a folder durable, if the system can open folders (Windows cannot)."""
    # What is in the folder is already done, so a failed synchronisation is not reported.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
