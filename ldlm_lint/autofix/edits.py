"""Edits for rules: minimal text on bytes, so that comments, newlines and trailing commas survive."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Mapping

from ldlm_lint.autofix.resolve import edit_key, overlap
from ldlm_lint.model import Edit, Fix, Span
from ldlm_lint.source import Source


class OverlapError(ValueError):
    """Edits that cannot all be applied: they overlap, or are outside of the data."""


def apply_edits(data: bytes, edits: Iterable[Edit], encoding: str = "utf-8") -> bytes:
    """The data after all edits, which all count in bytes of ``data`` and belong to one file.

    The order of ``edits`` does not matter and identical ones are applied once. Raises OverlapError for edits that
    overlap, insert at the same point or leave the data, and UnicodeEncodeError for text that ``encoding`` lacks.
    """
    pieces: list[bytes] = []
    position = 0
    previous: Edit | None = None
    for edit in sorted(set(edits), key=edit_key):
        span = edit.span
        if previous and (overlap(previous, edit) or previous.span == span):
            raise OverlapError(f"edits overlap at byte {span.start} of {span.path}")
        if not position <= span.start <= span.end <= len(data):
            raise OverlapError(f"edit of bytes {span.start}-{span.end} does not fit into {span.path}")
        pieces += [data[position : span.start], edit.text.encode(encoding)]
        position, previous = span.end, edit
    return b"".join([*pieces, data[position:]])


def after_fix(fix: Fix, sources: Mapping[str, Source]) -> dict[str, bytes]:
    """The new bytes of the files that a fix edits, by path; ``sources`` are these files.

    Raises OverlapError or UnicodeEncodeError if the fix cannot be applied.
    """
    return {
        path: apply_edits(source.data, [edit for edit in fix.edits if edit.span.path == path], source.encoding)
        for path, source in sources.items()
    }


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
