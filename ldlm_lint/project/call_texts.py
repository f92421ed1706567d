"""Whether the calls in a text may pass a read value for a parameter, without parsing: by name, position or star."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ldlm_lint.patterns import lazily

_TOKEN = lazily(
    rb"[()\[\]{},*]|\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:\\[\s\S]|[^\"\\\n])*\"|'(?:\\[\s\S]|[^'\\\n])*'|#[^\n]*"
)
_OPENS = lazily(rb"(?:[ \t\r\n]|\\\r?\n)*\(")
_IMPORTED = lazily(rb"[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]+(?:[\w, \t]*|\([\w, \t\r\n]*)")
# A number or a word of the language is not read from a configuration.
_WRITTEN_OUT = rb"(?<!\w)%s\s*=\s*(?:\d+|None|True|False)\s*[,)]"
_RENAMED = lazily(rb"[ \t]*(?:as\b|\\|\()")


def may_hand_on(data: bytes, names: Iterable[str], parameter: str, position: int | None) -> bool:
    """Whether a call of a function may pass a read value for a parameter; ``position`` is the parameter's position, if
    it has one.

    If one of the names is used for anything but a call or an import, it may be called from anywhere.
    """
    word = b"|".join(re.escape(name.encode()) for name in names)
    for match in re.finditer(rb"(?<!\w)(?:%s)(?!\w)" % word, data):
        opens = _OPENS.match(data, match.end())
        if opens is not None:
            if _arguments_may_give(data, opens.end() - 1, parameter.encode(), position):
                return True
        elif not _is_imported(data, match.start(), match.end()):
            return True
    return False


def _is_imported(data: bytes, start: int, end: int) -> bool:
    """Whether a name is taken out of a module under this very name."""
    statement = max(data.rfind(b"\nfrom", 0, start), data.rfind(b" from ", 0, start))
    before = data[data.rfind(b"\n", 0, statement + 1) + 1 : start]
    return _IMPORTED.fullmatch(before) is not None and _RENAMED.match(data, end) is None


def _arguments_may_give(data: bytes, opens: int, parameter: bytes, position: int | None) -> bool:
    depth = commas = 0
    for match in _TOKEN.finditer(data, opens):
        token = match[0]
        if token == b"*":
            return True
        if token in (b"(", b"[", b"{"):
            depth += 1
        elif token in (b")", b"]", b"}"):
            depth -= 1
            if depth == 0:
                given = data[opens : match.end()]
                return given.count(parameter) > len(re.findall(_WRITTEN_OUT % re.escape(parameter), given))
        elif token == b"," and depth == 1:
            commas += 1
            if position is not None and commas >= position:
                return True
    return True
