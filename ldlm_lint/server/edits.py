"""From two versions of a file to the edits of the protocol that make one of the other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from ldlm_lint.server.positions import Range, range_of
from ldlm_lint.source import Source

TextEdit = dict[str, object]
"""A range and its new text, as the protocol writes them."""

_MOST_COMPARED = 2000
"""Lines on either side beyond which what lies between the first and the last change is replaced as one."""


def text_edit(source: Source, start: int, end: int, text: str, encoding: str) -> TextEdit:
    """The edit that puts ``text`` in place of the bytes ``[start, end)``."""
    where: Range = range_of(source, start, end, encoding)
    return {"range": where, "newText": text}


def edits_between(before: Source, after: Source, encoding: str) -> list[TextEdit]:
    """Edits that turn one version of a file into another, line by line, so that the editor's cursors stay in place."""
    old, new = _lines(before), _lines(after)
    starts = [before.bom]
    for line in old:
        starts.append(starts[-1] + len(line.encode(before.encoding)))
    return [
        text_edit(before, starts[first], starts[last], "".join(new[begin:end]), encoding)
        for first, last, begin, end in _changes(old, new)
    ]


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
