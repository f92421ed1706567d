"""A result with all its file system look-ups: it is valid while all of them give the same."""

from __future__ import annotations

import json
import zlib

from ldlm_lint.cache import stored
from ldlm_lint.cache.index import LOOKS, Index, Inputs

_LENGTH = 4


class Memo:
    """An entry of the cache: the look-ups, the place of the file index, and the result as bytes."""

    def __init__(self, index: str, inputs: Inputs, value: bytes) -> None:
        self.index = index
        self.inputs = inputs
        self.value = value

    @classmethod
    def read(cls, path: str) -> Memo | None:
        """The stored entry; None if there is no intact one."""
        payload = stored.read(path)
        if payload is None:
            return None
        size = int.from_bytes(payload[:_LENGTH], "little")
        try:
            head = json.loads(zlib.decompress(payload[_LENGTH : _LENGTH + size]))
            value = zlib.decompress(payload[_LENGTH + size :])
            return cls(str(head["index"]), {kind: dict(head["inputs"][kind]) for kind in LOOKS}, value)
        except (ValueError, TypeError, KeyError, zlib.error, RecursionError):
            return None

    def write(self, path: str) -> int:
        """Store the result; returns how many bytes were written."""
        document = {"index": self.index, "inputs": self.inputs}
        head = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 1)
        return stored.write(path, (len(head).to_bytes(_LENGTH, "little"), head, zlib.compress(self.value, 1)))


class Looks:
    """The file system look-ups for a result, each once."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self.inputs: Inputs = {kind: {} for kind in LOOKS}

    def note(self, kind: str, path: str) -> None:
        """Record the result of a look-up; call it before the look-up that the result depends on."""
        seen = self.inputs[kind]
        if path not in seen:
            seen[path] = self._index.look(kind, path)

    def add(self, inputs: Inputs) -> None:
        """Add the look-ups of another result that this one depends on."""
        for kind, seen in inputs.items():
            self.inputs[kind].update(seen)
