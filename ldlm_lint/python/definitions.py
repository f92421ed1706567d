"""Whether the text of a file alone shows its functions and classes with the same names as its tree."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from ldlm_lint.patterns import lazily

_WORDS = (b"def", b"class", b"async")
_CONTINUED = lazily(rb"\\[ \t]*\r?\n")
_FOREIGN = tuple(lazily(word + rb"[ \t]+\w*[^\x00-\x7f]") for word in (b"def", b"class"))
_QUOTES = (b'"""', b"'''")


def tells_definitions(data: bytes, starts: Sequence[int], indents: Sequence[int]) -> bool:
    """Whether the definitions in a text are those of its tree, with nesting by indentation.

    ``starts`` are where their lines begin, in order, ``indents`` the columns of these lines. A definition may be in a
    string, its header may have an unusual form, or the definition above may have ended before.
    """
    if not _is_plain(data):
        return False
    quotes = [_places(data, one) for one in _QUOTES]
    if any(_inside(quotes, start) for start in starts):
        return False
    around: list[tuple[int, int]] = []
    ends: dict[int, int] = {}
    for start, indent in zip(starts, indents, strict=True):
        while around and around[-1][0] >= indent:
            around.pop()
        if around:
            above, begin = around[-1]
            if begin not in ends:
                ends[begin] = _end(data, begin, above, quotes)
            if ends[begin] <= start:
                return False
        around.append((indent, start))
    return True


def _is_plain(data: bytes) -> bool:
    """Whether every line has a usual ending, and no header continues on the next line or has non-ASCII names."""
    if b"\f" in data or (b"\r" in data and data.count(b"\r") != data.count(b"\r\n")):
        return False
    if any(data[max(one.start() - 12, 0) : one.start()].rstrip(b" \t").endswith(_WORDS) for one in _CONTINUED.finditer(data)):
        return False
    return data.isascii() or not any(one.search(data) for one in _FOREIGN)


def _places(data: bytes, word: bytes) -> list[int]:
    found, at = [], data.find(word)
    while at >= 0:
        found.append(at)
        at = data.find(word, at + len(word))
    return found


def _inside(quotes: Sequence[Sequence[int]], at: int) -> bool:
    """Whether a place may be in a string with several lines: after an odd number of quotes of a kind."""
    return any(bisect_right(one, at) % 2 for one in quotes)


def _end(data: bytes, start: int, indent: int, quotes: Sequence[Sequence[int]]) -> int:
    """Where the body of a definition ends at the earliest."""
    at = data.find(b"\n", start)
    for one in outside_of(indent).finditer(data, at) if at >= 0 else ():
        if not _inside(quotes, one.start() + 1):
            return one.start() + 1
    return len(data)


@lru_cache(maxsize=64)
def outside_of(indent: int) -> re.Pattern[bytes]:
    """The end of a line before one that may not be part of a body whose header is indented by some columns."""
    return re.compile(rb"\n[ \t]{0,%d}[^ \t\r\n#)\]}]" % min(indent, 1000))


__all__ = ["outside_of", "tells_definitions"]
