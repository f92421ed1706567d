"""Converts two versions of a file to the edits of the protocol that turn one into the other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ldlm_lint.model import Edit
from ldlm_lint.notebooks.text import cell_texts
from ldlm_lint.server.positions import range_of
from ldlm_lint.source import Kind, Source

FileEdit = dict[str, object]
"""An edit as the protocol writes it, a ``range`` and its ``newText``, with the ``path`` and the ``cell`` that it is made in."""

_MOST_COMPARED = 2000
"""Lines on either side beyond which the text between the first and the last change is replaced as one."""


def edit_of(source: Source, edit: Edit, encoding: str) -> FileEdit:
    """An edit of a finding's fix; in a notebook one of the cell's own text."""
    part = source.part_at(edit.span.start)
    if part is None:
        return _edit(source, edit.span.start, edit.span.end, edit.text, encoding)
    from ldlm_lint.notebooks.fixes import of_cell

    own = _cell(source.path, cell_texts(source.data)[part.number])
    return _edit(own, *of_cell(source, edit), encoding, part.number)


def edits_between(before: Source, after: Source, encoding: str) -> list[FileEdit]:
    """Edits that turn one version of a file into another, line by line, so that the editor's cursors stay in place."""
    if not before.parts:
        return list(_between(before, after, encoding, None))
    old, new = cell_texts(before.data), cell_texts(after.data)
    pairs = ((_cell(before.path, old[number]), _cell(before.path, new[number]), number) for number in old)
    return [edit for one, other, number in pairs for edit in _between(one, other, encoding, number)]


def _cell(path: str, text: str) -> Source:
    """The text of one cell, which is a document of its own for an editor."""
    return Source(path, text.encode(), Kind.PYTHON)


def _between(before: Source, after: Source, encoding: str, cell: int | None) -> Iterator[FileEdit]:
    old, new = _lines(before), _lines(after)
    starts = [before.bom]
    for line in old:
        starts.append(starts[-1] + len(line.encode(before.encoding)))
    for first, last, begin, end in _changes(old, new):
        yield _edit(before, starts[first], starts[last], "".join(new[begin:end]), encoding, cell)


def _edit(source: Source, start: int, end: int, text: str, encoding: str, cell: int | None = None) -> FileEdit:
    return {"path": source.path, "cell": cell, "range": range_of(source, start, end, encoding), "newText": text}


def _lines(source: Source) -> list[str]:
    """The lines of a file with their ends, split where the protocol splits them."""
    text, lines = source.text, []
    position = 0
    for line in source.lines:
        end = position + len(line)
        end += 2 if text.startswith("\r\n", end) else 1
        lines.append(text[position:end])
        position = end
    return lines


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """The stretches of lines that differ, as half-open ranges of both lists."""
    head = next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    limit = min(len(old), len(new)) - head
    tail = next((at for at in range(limit) if old[-1 - at] != new[-1 - at]), limit)
    left, right = old[head : len(old) - tail], new[head : len(new) - tail]
    if not left and not right:
        return
    if max(len(left), len(right)) > _MOST_COMPARED:
        yield head, head + len(left), head, head + len(right)
        return
    for tag, first, last, begin, end in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + first, head + last, head + begin, head + end
