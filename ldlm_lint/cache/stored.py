"""Entries on disk: written completely or not at all, and ignored if anything is odd."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterable

_MAGIC = b"ldlm-lint cache 1\n"
_HEAD = len(_MAGIC) + 4


def read(path: str) -> bytes | None:
    """The payload of an entry, which counts as used now; None if there is no intact entry."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError):
        return None
    payload = data[_HEAD:]
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : _HEAD] != _checksum(path, payload):
        return None
    # A cache on a read-only medium is still read.
    with contextlib.suppress(OSError):
        os.utime(path)
    return payload


def write(path: str, chunks: Iterable[bytes]) -> int:
    """Write an entry atomically; returns how many bytes it takes, 0 if it could not be written."""
    payload = b"".join(chunks)
    part = f"{path}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(part, "wb") as file:
            file.write(_MAGIC)
            file.write(_checksum(path, payload))
            file.write(payload)
        os.replace(part, path)
    except BaseException as error:
        # Ctrl-C leaves nothing behind either.
        with contextlib.suppress(OSError):
            os.unlink(part)
        if not isinstance(error, OSError):
            raise
        return 0
    return _HEAD + len(payload)


def read_document(path: str) -> dict[str, object] | None:
    """An entry of plain values; None if there is none."""
    payload = read(path)
    if payload is None:
        return None
    try:
        found = json.loads(zlib.decompress(payload))
    except (ValueError, zlib.error, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write_document(path: str, document: dict[str, object]) -> int:
    """Write an entry of plain values; returns as `write` does."""
    return write(path, (zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1),))


def _checksum(path: str, payload: bytes) -> bytes:
    """The checksum of an intact entry in its right place."""
    return zlib.crc32(payload, zlib.crc32(os.path.basename(path).encode())).to_bytes(4, "little")
