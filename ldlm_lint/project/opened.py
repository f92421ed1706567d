"""How far a definition reaches in a text, as far as a line behind it tells for certain that it is over."""

from __future__ import annotations

import re
from functools import lru_cache


class Opened:
    """A definition by the start of its header and the blanks in front of it; others may stand in it."""

    def __init__(self, start: int, blanks: int) -> None:
        self._start = start
        self._blanks = blanks
        self._left: int | None = None

    def is_left(self, data: bytes, at: int) -> bool:
        """Whether a statement between it and a place is for certain none of its own: what a loop behind it defines is not in it."""
        if self._left is None:
            self._left = self._leaves(data)
        return self._left < at

    def _leaves(self, data: bytes) -> int:
        for match in _statement_outside(self._blanks).finditer(data, self._start):
            before = self._start, match.start()
            # A text of several lines may begin one with any word.
            if data.count(b'"""', *before) % 2 == 0 and data.count(b"'''", *before) % 2 == 0:
                return match.start()
        return len(data)


@lru_cache(maxsize=64)
def _statement_outside(blanks: int) -> re.Pattern[bytes]:
    """The end of a line before a statement with others below it that is indented no further than a header."""
    return re.compile(rb"\n[ \t]{0,%d}(?:for|while|if|try|with)\b[^\n]*:" % min(blanks, 1000))


__all__ = ["Opened"]
