"""Removes keyword arguments from a Python call, in the layout of the call."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.autofix.resolve import overlap
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_END_OF_LINE = lazily(rb"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n)")
_COMMA = lazily(rb"[ \t]*,[ \t]*")


def remove_arguments(source: Source, arguments: Sequence[Span]) -> tuple[Edit, ...] | None:
    """Remove arguments of a call, each with its comma; one on its own lines is removed with these lines and their
    comments.

    None if the text between the arguments is too unusual to cut, for instance a comma on the next line.
    """
    edits = [_removal(source, span) for span in arguments]
    known = tuple(edit for edit in edits if edit is not None)
    if len(known) != len(edits) or any(overlap(one, other) for one in known for other in known if one is not other):
        return None
    return known


def _removal(source: Source, span: Span) -> Edit | None:
    data = source.data
    before = data[: span.start].rstrip(b" \t")
    comma = _COMMA.match(data, span.end)
    end = comma.end() if comma else span.end
    if before.endswith((b"\n", b"\r")) and _END_OF_LINE.match(data, end):
        return delete_line(source, span)
    if before.endswith(b","):
        return Edit(Span(span.path, len(before) - 1, span.end, span.cell), "")
    if before.endswith((b"(", b"\n", b"\r")) and (comma or data[span.end : span.end + 1] == b")"):
        return Edit(Span(span.path, span.start, end, span.cell), "")
    return None
