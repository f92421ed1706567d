"""The source lines of a finding, with the span marked."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.report.cells import clean, cut, width
from ldlm_lint.source import Source

MOST_LINES = 6
LONGEST = 160
_BEFORE_SPAN = 40


class Row(NamedTuple):
    """A line of an excerpt: its number (None for a line of marks), the text, and whether it is made of marks."""

    number: int | None
    text: str
    marks: bool = False


def excerpt(source: Source, span: Span) -> list[Row]:
    """The lines of a span with one line around it; at most `MOST_LINES` of a long one."""
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
        marked = _block(lines, first, column - 1, last, end - 1)
        indent = "  "
    before = [Row(first - 1, indent + _cut(lines[first - 2]))] if first > top and lines[first - 2].strip() else []
    after = [Row(last + 1, indent + _cut(lines[last]))] if last < bottom and lines[last].strip() else []
    rows = [*before, *marked, *after]
    return [row._replace(number=row.number - top + 1) if row.number is not None else row for row in rows]


def _one_line(number: int, line: str, start: int, end: int) -> list[Row]:
    line, start, end = _window(line, start, end)
    marks = " " * width(line[:start]) + "^" * max(width(line[:end]) - width(line[:start]), 1)
    return [Row(number, clean(line)), Row(None, marks, True)]


def _block(lines: tuple[str, ...], first: int, start: int, last: int, end: int) -> list[Row]:
    """Several lines, tied together on their left as ruff and rustc do."""
    opening = lines[first - 1]
    if opening[:start].strip():
        rows = [Row(first, "  " + _cut(opening)), Row(None, " " + "_" * (width(opening[:start]) + 1) + "^", True)]
    else:
        rows = [Row(first, "/ " + _cut(opening))]
    inner = list(range(first + 1, last + 1))
    hidden = inner[2:-2] if len(inner) >= MOST_LINES else []
    for number in inner:
        if number not in hidden:
            rows.append(Row(number, ("| " + _cut(lines[number - 1])).rstrip()))
        elif number == hidden[0]:
            rows.append(Row(None, f"| ... {len(hidden)} more lines", True))
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
