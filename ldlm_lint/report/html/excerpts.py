"""Source lines for a page: the span of a finding marked, with lines around it; a long span without its middle."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint.model import Span
from ldlm_lint.report.cells import clean
from ldlm_lint.source import Source

AROUND, MOST, ENDS = 3, 14, 5
"""Lines shown before and after a span, the most lines of a span, and how many are left at its ends if it has more."""
LONGEST = 240
_BEFORE_MARK = 60


class Row(NamedTuple):
    """A line of code in three parts, of which the middle one is marked; ``number`` None: ``hidden`` lines are left out here."""

    number: int | None
    before: str = ""
    marked: str = ""
    after: str = ""
    hidden: int = 0


def rows(source: Source, span: Span, around: int = AROUND) -> list[Row]:
    """The lines of a span with those around it; in a notebook those of its cell, numbered as the cell numbers them."""
    first, start = source.position(span.start)
    text = source.slice(span).rstrip("\r\n")
    last, end = source.position(span.start + len(text.encode(source.encoding)))
    top, bottom = source.cell_lines(span.start)
    lines = source.shown_lines
    found: list[Row] = []
    for number in range(max(first - around, top), min(last + around, bottom, len(lines)) + 1):
        line, shown = lines[number - 1], number - top + 1
        if not first <= number <= last:
            found.append(Row(shown, cut(line)))
            continue
        begin = start - 1 if number == first else len(line) - len(line.lstrip())
        found.append(_marked(shown, line, begin, end - 1 if number == last else len(line)))
    return _shortened(_without_blank_ends(found), first - top + 1, last - top + 1)


def _marked(number: int, line: str, start: int, end: int) -> Row:
    """One line with the characters from ``start`` to ``end`` marked; of an overlong line the part around them."""
    left = max(start - _BEFORE_MARK, 0) if len(line) > LONGEST else 0
    right = min(left + LONGEST, len(line))
    before, marked = line[left:start], line[start : min(end, right)]
    # Tabs and control characters are replaced by what comes before them, too.
    whole = clean(line[left:right])
    head, middle = len(clean(before)), len(clean(before + marked))
    return Row(number, "…" * (left > 0) + whole[:head], whole[head:middle], whole[middle:] + "…" * (right < len(line)))


def cut(line: str) -> str:
    """The beginning of a line, safe to show; a longer one ends with an ellipsis."""
    return clean(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")


def _without_blank_ends(found: list[Row]) -> list[Row]:
    shown = [at for at, row in enumerate(found) if (row.before + row.marked + row.after).strip()]
    return found[shown[0] : shown[-1] + 1] if shown else found


def _shortened(found: list[Row], first: int, last: int) -> list[Row]:
    if last - first + 1 <= MOST:
        return found
    hidden = range(first + ENDS, last - ENDS + 1)
    before = [row for row in found if row.number is not None and row.number < hidden.start]
    after = [row for row in found if row.number is not None and row.number >= hidden.stop]
    return [*before, Row(None, hidden=len(hidden)), *after]
