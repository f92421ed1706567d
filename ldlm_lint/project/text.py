"""The text of a call or a class of a file, for details missing in its facts."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_LONGEST = 4000
_IMPORTS = lazily(rb"^[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]+(?:\([^)]*\)|[^\n]*)", re.M)


def call_text(data: bytes, position: str) -> bytes:
    """The bytes of the call that starts at ``line:column``, up to its closing parenthesis, with calls on its result."""
    return _balanced(data, offset_of(data, position), (b"(", b"[", b"."))


def call_alone(data: bytes, start: int) -> bytes:
    """The bytes of the call that starts at an offset, up to its own closing parenthesis."""
    return _balanced(data, start, ())


def _balanced(data: bytes, start: int, onward: tuple[bytes, ...]) -> bytes:
    """The bytes from an offset up to the parenthesis that closes the first one, unless more follows."""
    depth = 0
    for at in range(start, min(len(data), start + _LONGEST)):
        one = data[at : at + 1]
        if one in (b"(", b"[", b"{"):
            depth += 1
        elif one in (b")", b"]", b"}"):
            depth -= 1
            after = data[at + 1 : at + 2]
            if depth <= 0 and after not in onward:
                return data[start : at + 1]
    return data[start : start + _LONGEST]


def offset_of(data: bytes, position: str) -> int:
    """The byte at ``line:column`` (1-based, 0-based)."""
    line, _, column = position.partition(":")
    start = 0
    for _ in range(int(line) - 1):
        start = data.find(b"\n", start) + 1
    return start + int(column)


def is_handed_on(name: str, data: bytes) -> bool:
    """Whether a text uses a function as a value: passes it, or stores it."""
    word = name.encode()
    # Text that ends like a value is found fast.
    if re.search(word + rb"[ \t]*[,)\]}\n]", data) is None:
        return False
    value = re.compile(rb"[=(,\[{:][ \t\n]*(?:\w+\.)*" + word + rb"[ \t]*[,)\]}\n]")
    return value.search(_IMPORTS.sub(b"", data)) is not None
