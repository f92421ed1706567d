"""The body of a definition by its text: where it ends, and which stretches of it a loop repeats.

Brackets are tracked and strings are skipped, so that the first lines of statements are known, as in the tokenizer. If
quotes or brackets do not match, nothing is known, and everything may be repeated.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ldlm_lint.patterns import lazily

_TEXT = lazily(rb"#[^\n]*|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'", re.S)
_LONG = (b'"""', b"'''")
_TOKEN = lazily(rb"[\[({]|[\])}]|\n[ \t]*(?![ \t\n])|(?<![A-Za-z_\x80-\xff])(?:for|while)(?![\w\x80-\xff])")
_FORMATS = b"fFtT"
_QUOTES = (b"'", b'"')
_OPENING, _CLOSING = b"([{", b")]}"


class Body(NamedTuple):
    """The latest end of a definition, and the stretches of the text that may run more than once."""

    end: int
    loops: tuple[tuple[int, int], ...]

    def repeats(self, at: int) -> bool:
        """Whether the code at a place may run more than once."""
        return any(first <= at < last for first, last in self.loops)


def body_of(text: bytes, start: int, indent: int) -> Body:
    """The body of the definition at the beginning of a text, by the columns of its header; ``start`` is added to all
    places."""
    everything = Body(start + len(text), ((start, start + len(text)),))
    repeated: list[tuple[int, int]] = []
    if any(one in text for one in _LONG):
        return everything
    plain = _TEXT.sub(lambda one: _blanks(one, repeated), text).replace(b"\\\n", b"  ")
    if any(one in plain for one in _QUOTES):
        return everything
    found = _loops(plain, indent)
    if found is None:
        return everything
    end, loops = found
    return Body(start + end, tuple((start + first, start + last) for first, last in (*loops, *repeated) if first < end))


def _blanks(match: re.Match[bytes], repeated: list[tuple[int, int]]) -> bytes:
    """As many blanks as a comment or a string has bytes; ``repeated`` collects strings whose expressions may contain a
    loop."""
    start, end = match.span()
    if b"for" in match[0] and any(one in _FORMATS for one in match.string[max(start - 2, 0) : start]):
        repeated.append((start, end))
    return b" " * (end - start)


def _loops(plain: bytes, lowest: int) -> tuple[int, list[tuple[int, int]]] | None:
    """Where a body ends, and its loops; None if the brackets do not match.

    The statements of a loop end with the next that is indented no more than it; a loop in an expression repeats the
    contents of its brackets.
    """
    open_loops: list[tuple[int, int]] = []
    found: list[tuple[int, int]] = []
    brackets: list[tuple[int, bool]] = []
    indent, end = max(lowest, 0), len(plain)
    for match in _TOKEN.finditer(plain):
        first, at = match[0][:1], match.start()
        if first == b"\n":
            if brackets or match.end() == len(plain):
                continue
            indent = _columns(match[0][1:])
            while open_loops and open_loops[-1][1] >= indent:
                found.append((open_loops.pop()[0], at))
            if indent <= lowest:
                end = at
                break
        elif first in _OPENING:
            brackets.append((at, False))
        elif first in _CLOSING:
            if not brackets:
                return None
            begin, repeats = brackets.pop()
            found += [(begin, at)] if repeats else []
        elif brackets:
            brackets[-1] = brackets[-1][0], True
        else:
            open_loops.append((at, indent))
    if brackets:
        return None
    return end, [*found, *((begin, end) for begin, _ in open_loops)]


def _columns(blanks: bytes) -> int:
    return len(blanks.expandtabs())
