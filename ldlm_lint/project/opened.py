"""The extent of a definition in a text, as far as a later line certainly ends it."""

from __future__ import annotations

import re
from functools import lru_cache


class Opened:
    """A definition by the start of its header and the blanks in front of it; others may be nested in it."""

    def __init__(self, start: int, blanks: int) -> None:
        self._blanks = blanks
        self._looked = start
        self._quotes = [0, 0]
        self._left = False

    def is_left(self, data: bytes, at: int) -> bool:
        """Whether a statement between it and a line certainly is outside of it: definitions in a later loop are not in
        it.

        It is called for increasing lines: text above the last one is not checked again.
        """
        if not self._left:
            for match in _statement_outside(self._blanks).finditer(data, self._looked, at):
                if not self._is_text(data, match.start()):
                    self._left = True
                    break
            self._is_text(data, max(at - 1, self._looked))
        return self._left

    def _is_text(self, data: bytes, at: int) -> bool:
        """Whether a place further down is in a multi-line text, whose lines may begin with any word."""
        for number, quotes in enumerate((b'"""', b"'''")):
            self._quotes[number] += data.count(quotes, self._looked, at)
        self._looked = at
        return any(count % 2 for count in self._quotes)


@lru_cache(maxsize=64)
def _statement_outside(blanks: int) -> re.Pattern[bytes]:
    """The end of a line before a statement with others below it that is indented no further than a header."""
    return re.compile(rb"\n[ \t]{0,%d}(?:for|while|if|try|with)\b[^\n]*:" % min(blanks, 1000))


__all__ = ["Opened"]
