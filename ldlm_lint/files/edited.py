"""Files after edits: the order of edits, whether they overlap, and the bytes that they make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ldlm_lint.model import Edit, Fix
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


def overlap(left: Edit, right: Edit) -> bool:
    """Whether two different edits touch a common byte, or one inserts inside a replacement of the other."""
    if left == right or left.span.path != right.span.path:
        return False
    if left.span == right.span:
        return left.span.start < left.span.end
    return left.span.start < right.span.end and right.span.start < left.span.end


def edit_key(edit: Edit) -> tuple[str, int, int, int, str]:
    """The order of edits; unlike comparing spans it also orders a plain file and a notebook's cell."""
    span = edit.span
    return (span.path, span.start, span.end, -1 if span.cell is None else span.cell, edit.text)
