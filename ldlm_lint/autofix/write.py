"""Writing a changed file so that a reader sees the old bytes or the new ones, never a part."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path

from ldlm_lint.files import disk

# Rights beyond the mode, which a new file in the same folder would not have; labels of security modules it gets anyway.
_ATTRIBUTES = ("user.", "system.posix_acl_access")
_NO_ATTRIBUTES = frozenset((errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS))


class WriteError(Exception):
    """A file that was not changed; the text says why."""


class FileChangedError(WriteError):
    """The file no longer has the bytes that the fixes were made for."""


def write_atomically(path: Path, expected: bytes, new: bytes, *, root: Path | None = None) -> None:
    """Replace the bytes ``expected`` of a file by ``new`` atomically, keeping its mode and owner.

    A symbolic link stays a link: the file it leads to is replaced. Other hard links to that file keep the old bytes.
    Raises FileChangedError if the file does not contain ``expected``, WriteError if it is not a regular file, is
    write-protected, is outside of ``root`` (where given), cannot keep its owner, or the system refuses.
    """
    real = real_file(path, root)
    fault = refusal(real)
    if fault:
        raise WriteError(f"{path} {fault}")
    temporary = real.with_name(f".ldlm-lint-{secrets.token_hex(8)}.tmp")
    try:
        expect(real, expected)
        try:
            stage(temporary, real, new)
            swap(temporary, real, expected)
        finally:
            disk.remove(temporary)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error


def create_atomically(path: Path, data: bytes, *, root: Path | None = None) -> None:
    """Create a new file atomically, with the default mode for new files.

    Raises WriteError if it would be outside of ``root`` (where given), exists already, or the system refuses.
    """
    real = real_file(path, root)
    temporary = real.with_name(f".ldlm-lint-{secrets.token_hex(8)}.tmp")
    try:
        # A file for git has the access rights of the others.
        disk.create(temporary, data, 0o666)
        try:
            if os.path.lexists(real):
                raise FileChangedError(f"{path} was created in the meantime")
            os.replace(temporary, real)
        finally:
            disk.remove(temporary)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror or error}") from error
    disk.sync_folder(real.parent)


def real_file(path: Path, root: Path | None) -> Path:
    """The file that a path leads to; raises WriteError if that is outside of ``root`` (where given)."""
    real = Path(os.path.realpath(path))
    if root is not None and not real.is_relative_to(os.path.realpath(root)):
        raise WriteError(f"{path} leads out of {root}")
    return real


def refusal(real: Path) -> str:
    """Why a file cannot be replaced, as far as known without trying; empty if nothing prevents it."""
    try:
        status = real.stat()
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if not status.st_mode & 0o222 or not os.access(real, os.W_OK):
        return "is write-protected"
    if not os.access(real.parent, os.W_OK | os.X_OK):
        return "is in a write-protected folder"
    if not _owner_can_be_kept(status):
        return "belongs to another user or group, which could not be kept"
    return ""


def stage(temporary: Path, real: Path, data: bytes) -> None:
    """Put ``data`` into a new file that has the owner, the mode and the attributes of ``real``; raises OSError."""
    disk.create(temporary, data)
    try:
        status = real.stat()
        _keep_owner(temporary, status)
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        _keep_attributes(temporary, real)
    except BaseException:
        disk.remove(temporary)
        raise


def swap(temporary: Path, real: Path, expected: bytes) -> None:
    """Put a staged file instead of ``real``; raises FileChangedError unless that holds ``expected``, and OSError."""
    # As late as possible: an editor may have saved while the new bytes went to disk.
    expect(real, expected)
    os.replace(temporary, real)
    disk.sync_folder(real.parent)


def expect(real: Path, expected: bytes) -> None:
    """Raise FileChangedError unless a file holds these bytes."""
    if real.read_bytes() != expected:
        raise FileChangedError(f"{real} changed since it was read")


def _owner_can_be_kept(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        return True
    return status.st_uid == os.geteuid() and status.st_gid in (os.getegid(), *os.getgroups())


def _keep_owner(temporary: Path, status: os.stat_result) -> None:
    """Give the new file the old one's owner; an owner that cannot be kept is an error, not a silent change."""
    if not hasattr(os, "chown"):
        return
    made = temporary.stat()
    if (made.st_uid, made.st_gid) != (status.st_uid, status.st_gid):
        os.chown(temporary, status.st_uid, status.st_gid)


def _keep_attributes(temporary: Path, real: Path) -> None:
    """Give the new file the old one's access list and attributes, if the system has them."""
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(real)
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return
        raise
    for name in names:
        if name.startswith(_ATTRIBUTES):
            os.setxattr(temporary, name, os.getxattr(real, name))
