"""The bytes of a project's files: as many as fit stay in memory, the others are read again on demand.

A reread file must be unchanged, or the question fails: a run never mixes two states of a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.source import Kind, Source, UnreadableError, read_bytes

_MOST = 3_000_000
"""How many bytes are kept of the files that were asked for first: of a small project that is everything."""
_RECENT = 2_000_000
"""How many bytes are kept of the others, those asked for last."""

_Stamp = tuple[int, int, int, int]


class ChangedError(Exception):
    """A file has changed since this run read it first."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} has changed while it was checked; run again")


class Texts:
    """Reads files, those of ``overlay`` from there; for a notebook its code."""

    def __init__(self, overlay: Mapping[str, bytes]) -> None:
        self._overlay = overlay
        self._ready: dict[str, bytes] = {}
        self._recent: dict[str, bytes] = {}
        self._stamps: dict[str, _Stamp] = {}
        self._size = self._recent_size = 0

    def of(self, path: str) -> bytes:
        """The bytes of a file; empty if it cannot be read. Raises ChangedError if they are no longer the same."""
        found = self._ready.get(path)
        if found is None:
            found = self._recent.get(path)
        return found if found is not None else self._again(path) if path in self._stamps else self._first(path)

    @property
    def held(self) -> int:
        """How many bytes are kept."""
        return sum(map(len, (*self._ready.values(), *self._recent.values())))

    def _first(self, path: str) -> bytes:
        try:
            stamp = _stamp(os.stat(path)) if path not in self._overlay else None
            data = self._overlay[path] if stamp is None else read_bytes(Path(path))
        except (OSError, UnreadableError):
            stamp, data = None, b""
        code = _code(path, data)
        if stamp is None or code is not data or self._size + len(data) <= _MOST:
            self._ready[path] = code
            self._size += len(code)
        else:
            self._stamps[path] = stamp
            self._keep(path, data)
        return code

    def _again(self, path: str) -> bytes:
        try:
            with open(path, "rb", buffering=0) as file:
                data, stamp = file.readall(), _stamp(os.fstat(file.fileno()))
        except OSError as error:
            raise ChangedError(path) from error
        if stamp != self._stamps[path] or len(data) != stamp[0]:
            raise ChangedError(path)
        self._keep(path, data)
        return data

    def _keep(self, path: str, data: bytes) -> None:
        self._recent[path] = data
        self._recent_size += len(data)
        while self._recent_size > _RECENT:
            self._recent_size -= len(self._recent.pop(next(iter(self._recent))))


def _stamp(status: os.stat_result) -> _Stamp:
    # On most systems the last one cannot be set back.
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns


def _code(path: str, data: bytes) -> bytes:
    """The bytes of a file; for a notebook those of its code."""
    if not is_notebook(path):
        return data
    try:
        return Source.from_bytes(path, data, Kind.PYTHON).data
    except UnreadableError:
        return b""
