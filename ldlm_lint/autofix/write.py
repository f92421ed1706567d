"""Writing a changed file so that a reader sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path


class WriteError(Exception):
    """A file that was left as it is; the text says why."""


class FileChangedError(WriteError):
    """The file no longer holds the bytes that the fixes were made for."""


def write_atomically(path: Path, expected: bytes, new: bytes, *, root: Path | None = None) -> None:
    """Replace the bytes ``expected`` of a file by ``new`` in one step, keeping its mode and owner.

    A symbolic link stays one: the file it leads to is replaced. Other hard links to that file keep the old bytes.
    Raises FileChangedError if the file does not hold ``expected``, WriteError if it is not a regular file, is
    write-protected, lies outside of ``root`` (where given), cannot keep its owner, or the system refuses.
    """
    real = _inside(path, root)
    try:
        _replace(real, expected, new)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


def create_atomically(path: Path, data: bytes, *, root: Path | None = None) -> None:
    """Make a file that does not exist, with the mode that the system gives new files, in one step.

    Raises WriteError if it would lie outside of ``root`` (where given), exists by now, or the system refuses.
    """
    real = _inside(path, root)
    # Not tempfile's, which nobody but its owner may read: a file for git is for everybody who reads the others.
    temporary = real.with_name(f".{real.name[:100]}.{os.getpid()}.tmp")
    try:
        file = temporary.open("xb")
        try:
            with file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if os.path.lexists(real):
                raise FileChangedError(f"{path} was made in the meantime")
            os.replace(temporary, real)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    _sync_folder(real.parent)


def _inside(path: Path, root: Path | None) -> Path:
    """The file that a path leads to."""
    real = Path(os.path.realpath(path))
    if root is not None and not real.is_relative_to(os.path.realpath(root)):
        raise WriteError(f"{path} leads out of {root}")
    return real


def _replace(real: Path, expected: bytes, new: bytes) -> None:
    status = real.stat()
    if not stat.S_ISREG(status.st_mode):
        raise WriteError(f"{real} is not a regular file")
    if not status.st_mode & 0o222 or not os.access(real, os.W_OK):
        raise WriteError(f"{real} is write-protected")
    _expect(real, expected)
    descriptor, name = tempfile.mkstemp(prefix=f".{real.name[:100]}.", suffix=".tmp", dir=real.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        _keep_owner(Path(name), status)
        os.chmod(name, stat.S_IMODE(status.st_mode))
        # Again, as late as can be: an editor may have saved while the new bytes went to disk.
        _expect(real, expected)
        os.replace(name, real)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise
    _sync_folder(real.parent)


def _expect(real: Path, expected: bytes) -> None:
    if real.read_bytes() != expected:
        raise FileChangedError(f"{real} changed since it was read")


def _keep_owner(temporary: Path, status: os.stat_result) -> None:
    """Give the new file the old one's owner; an owner that cannot be kept is an error, not a silent change."""
    if not hasattr(os, "chown"):
        return
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        os.chown(temporary, status.st_uid, status.st_gid)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened (Windows never does)."""
    # The file is already replaced, so that a folder which cannot be synchronised is no reason to report a failure.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
