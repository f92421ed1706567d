"""Whole lines: put in and taken out, where a statement's own comments begin, and by how much its block is indented."""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable

from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_BLANK = lazily(r"[ 	]*")


def is_alone(source: Source, span: Span) -> bool:
    """Whether only a comment is beside some code on its lines."""
    (first, column), (last, end) = source.position(span.start), source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()


def insert_above(source: Source, number: int, line: str) -> Edit:
    """Insert a line before a line (by its 1-based number) and the comments that are right above it."""
    indent = indent_at(source, number)
    while number > 1 and source.lines[number - 2].strip().startswith("#") and indent_at(source, number - 1) == indent:
        number -= 1
    start = source.line_starts[number - 1]
    return Edit(source.span(start, start), f"{indent}{line}{source.newline}")


def indent_at(source: Source, number: int) -> str:
    """The blanks that a line (by its 1-based number) begins with."""
    return _blanks(source.lines[number - 1])


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def indent_unit(source: Source, line: int, indent: str) -> str | None:
    """The indentation of the block around a line relative to the statement that opens it."""
    for above in reversed(source.lines[: line - 1]):
        match = _BLANK.match(above)
        outer = match.group() if match else ""
        if (
            above.strip()
            and not above.lstrip().startswith("#")
            and len(outer) < len(indent)
            and indent.startswith(outer)
        ):
            return indent[len(outer) :] if above.rstrip().endswith(":") or re.search(r":\s*#", above) else None
    return None


def delete_line(source: Source, span: Span) -> Edit:
    """Delete every line that ``span`` touches, with its line ending.

    The smaller number of blank lines above or below is deleted too, so that the gap does not grow. Other text on these
    lines is deleted too; the caller must handle a block that becomes empty.
    """
    starts = source.line_starts
    first = max(bisect.bisect_right(starts, span.start) - 1, 0)
    after = bisect.bisect_right(starts, max(span.start, span.end - 1))
    above, below = _blank_lines(source, range(first - 1, -1, -1)), _blank_lines(source, range(after, len(starts)))
    if above and below:
        first, after = (first - above, after) if above < below else (first, after + below)
    end = starts[after] if after < len(starts) else len(source.data)
    return Edit(Span(span.path, starts[first], end, span.cell), "")


def _blank_lines(source: Source, numbers: Iterable[int]) -> int:
    """The number of leading empty lines."""
    # Text after the last line break is not a complete line.
    lines = source.lines[:-1]
    return sum(
        1 for _ in itertools.takewhile(lambda number: number < len(lines) and not lines[number].strip(), numbers)
    )
