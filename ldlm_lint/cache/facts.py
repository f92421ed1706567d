"""Facts of single files by their contents: one entry of the cache for all files of a project."""

from __future__ import annotations

import json
import os
from typing import Any

from ldlm_lint.cache import stored

_LENGTH = 4


class Facts:
    """One fact, such as the findings, of each file: the key of its content, and its bytes."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places: dict[str, list[Any]] = {}
        self._blobs = b""
        self._fresh: dict[str, tuple[str, bytes]] = {}
        payload = stored.read(path)
        if payload is not None:
            self._read(payload)

    def _read(self, payload: bytes) -> None:
        size = int.from_bytes(payload[:_LENGTH], "little")
        try:
            self._places = dict(json.loads(payload[_LENGTH : _LENGTH + size]))
        except (ValueError, TypeError, RecursionError):
            return
        self._blobs = payload[_LENGTH + size :]

    def get(self, path: str, content: str) -> bytes | None:
        """The fact of a file with a content; None if it is not cached."""
        if path in self._fresh:
            known, fact = self._fresh[path]
            return fact if known == content else None
        place = self._places.get(path)
        if not isinstance(place, list) or len(place) != 3 or place[0] != content:
            return None
        return self._blobs[place[1] : place[1] + place[2]]

    def put(self, path: str, content: str, fact: bytes) -> None:
        """Store the fact of a file; it replaces the one of the former content."""
        self._fresh[path] = (content, fact)

    def save(self) -> int:
        """Save new facts, and drop files that no longer exist; returns how many bytes were written."""
        if not self._fresh:
            return 0
        facts = {
            path: (str(place[0]), self._blobs[place[1] : place[1] + place[2]])
            for path, place in self._places.items()
            if path not in self._fresh and os.path.exists(path)
        } | self._fresh
        places: dict[str, list[Any]] = {}
        offset = 0
        for path, (content, fact) in facts.items():
            places[path] = [content, offset, len(fact)]
            offset += len(fact)
        head = json.dumps(places, separators=(",", ":")).encode()
        self._fresh = {}
        return stored.write(self._path, (len(head).to_bytes(_LENGTH, "little"), head, *(one for _, one in facts.values())))
