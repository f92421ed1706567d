"""The other branch of an ``if``, found in the text of a file by its indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADER = re.compile(rb"(if|elif|else|def|class)\b")


def stands_in_other_arm(data: bytes, line: int, test: re.Pattern[bytes]) -> bool:
    """Whether a line (from 1) is in an ``else`` or ``elif`` of an ``if`` whose test matches, in its own function."""
    lines = data.splitlines()
    for number, kind in _around(lines, line - 1):
        if kind in (b"def", b"class"):
            return False
        if kind in (b"else", b"elif") and any(test.search(one) for one in _tests_above(lines, number)):
            return True
    return False


def _around(lines: Sequence[bytes], number: int) -> Iterator[tuple[int, bytes]]:
    """The headers of the blocks around a line, the inner ones first."""
    indent = _indent(lines[number])
    for above in range(number - 1, -1, -1):
        text = lines[above].lstrip()
        if text and not text.startswith((b"#", b")", b"]", b"}")) and _indent(lines[above]) < indent:
            indent = _indent(lines[above])
            header = _HEADER.match(text)
            yield above, header[1] if header else b""


def _tests_above(lines: Sequence[bytes], number: int) -> Iterator[bytes]:
    """The tests of the branches before one."""
    indent = _indent(lines[number])
    for above in range(number - 1, -1, -1):
        text = lines[above].lstrip()
        if text and _indent(lines[above]) == indent and (header := _HEADER.match(text)):
            yield text
            if header[1] == b"if":
                return


def _indent(line: bytes) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


__all__ = ["stands_in_other_arm"]
