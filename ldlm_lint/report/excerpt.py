"""The source lines of a finding, with the finding's span marked."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.report.cells import clean, cut, width
from ldlm_lint.source import Source

LONGEST = 160
_BEFORE_SPAN = 40


class Extent(NamedTuple):
    """How much of a file an excerpt shows: lines around the span, and lines at each end of the inside of a long one."""

    around: int
    ends: int


WHOLE, BRIEF = Extent(1, 2), Extent(0, 0)


class Row(NamedTuple):
    """A line of an excerpt: its number (None for a line of marks), the text, and whether it consists of marks."""

    number: int | None
    text: str
    marks: bool = False


def excerpt(source: Source, span: Span, extent: Extent = WHOLE) -> list[Row]:
    """The lines of a span with those around it, with the middle of a long one left out."""
    first, column = source.position(span.start)
    # A span that ends with a line break ends, for a reader, on the line before.
    text = source.slice(span).rstrip("\r\n")
    last, end = source.position(span.start + len(text.encode(source.encoding)))
    lines = source.shown_lines
    top, bottom = source.cell_lines(span.start)
    if first == last:
        marked = _one_line(first, lines[first - 1], column - 1, end - 1)
        indent = ""
    else:
        marked = _block(lines, first, column - 1, last, end - 1, extent.ends)
        indent = "  "
    before, after = range(max(first - extent.around, top), first), range(last + 1, min(last + extent.around, bottom) + 1)
    around = {number: Row(number, indent + _cut(lines[number - 1])) for number in (*before, *after) if lines[number - 1].strip()}
    rows = [*(around[one] for one in before if one in around), *marked, *(around[one] for one in after if one in around)]
    return [row._replace(number=row.number - top + 1) if row.number is not None else row for row in rows]


def _one_line(number: int, line: str, start: int, end: int) -> list[Row]:
    line, start, end = _window(line, start, end)
    marks = " " * width(line[:start]) + "^" * max(width(line[:end]) - width(line[:start]), 1)
    return [Row(number, clean(line)), Row(None, marks, True)]


def _block(lines: tuple[str, ...], first: int, start: int, last: int, end: int, ends: int) -> list[Row]:
    """Several lines, tied together on their left as ruff and rustc do; of many inner ones ``ends`` at each end."""
    opening = lines[first - 1]
    if opening[:start].strip():
        rows = [Row(first, "  " + _cut(opening)), Row(None, " " + "_" * (width(opening[:start]) + 1) + "^", True)]
    else:
        rows = [Row(first, "/ " + _cut(opening))]
    inner = list(range(first + 1, last + 1))
    hidden = inner[ends : len(inner) - ends] if len(inner) >= 2 * ends + 2 else []
    for number in inner:
        if number not in hidden:
            rows.append(Row(number, ("| " + _cut(lines[number - 1])).rstrip()))
        elif number == hidden[0]:
            rows.append(Row(None, f"| ... {len(hidden)} more lines", True))
    if last in hidden:
        return rows
    rows.append(Row(None, "|" + "_" * max(min(width(lines[last - 1][:end]), LONGEST), 1) + "^", True))
    return rows


def _cut(line: str) -> str:
    shown = clean(line)
    return shown if width(shown) <= LONGEST else cut(shown, LONGEST - 1) + "…"


def _window(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The part of an overlong line around a span, with the span moved along."""
    if width(line) <= LONGEST:
        return line, start, end
    left = max(start - _BEFORE_SPAN, 0)
    right = left + LONGEST - 2
    head, tail = "…" * (left > 0), "…" * (right < len(line))
    shift = len(head) - left
    return head + line[left:right] + tail, start + shift, min(end, right) + shift
