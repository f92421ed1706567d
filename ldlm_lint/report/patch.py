"""A fix as the lines that it removes and adds, for the reader of a finding; `--diff` makes the real patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_NEWLINE = lazily(r"\r\n|\r|\n")


class Change(NamedTuple):
    """A removed line (``-``), an added line (``+``, with its number in the new file), or ``""`` between two places."""

    sign: str
    number: int | None = None
    text: str = ""


def patch(source: Source, edits: Sequence[Edit]) -> list[Change]:
    """The changed lines of one file, from its own, disjoint edits."""
    changes: list[Change] = []
    shift, cell = 0, None
    for first, last, group in _places(source, sorted(edits)):
        if changes:
            changes.append(Change(""))
        shift = shift if group[0].span.cell == cell else 0
        cell = group[0].span.cell
        old, new = _lines(source, first, last, group)
        same = _common(old, new)
        changes += (Change("-", None, line) for line in old[same : _end(old, new, same)])
        added = new[same : _end(new, old, same)]
        top = first - source.cell_lines(group[0].span.start)[0] + 1
        changes += (Change("+", top + shift + same + at, line) for at, line in enumerate(added))
        shift += len(new) - len(old)
    return changes


def _places(source: Source, edits: Sequence[Edit]) -> Iterator[tuple[int, int, list[Edit]]]:
    """Edits on the same or adjacent lines together, with the 1-based lines that they touch."""
    group: list[Edit] = []
    first = last = 0
    for edit in edits:
        begin, end = source.position(edit.span.start)[0], source.position(edit.span.end)[0]
        if group and begin > last + 1:
            yield first, last, group
            group = []
        first, last = (first, max(last, end)) if group else (begin, end)
        group.append(edit)
    if group:
        yield first, last, group


def _lines(source: Source, first: int, last: int, edits: Sequence[Edit]) -> tuple[list[str], list[str]]:
    """Lines ``first`` to ``last`` before and after the edits."""
    begin = source.line_starts[first - 1]
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.data)
    pieces: list[str] = []
    position = begin
    for edit in edits:
        pieces += (_text(source, position, edit.span.start), edit.text)
        position = edit.span.end
    pieces.append(_text(source, position, end))
    return _split(_text(source, begin, end)), _split("".join(pieces))


def _text(source: Source, start: int, end: int) -> str:
    return source.data[start:end].decode(source.encoding, errors="replace")


def _split(text: str) -> list[str]:
    """The lines of a text; unlike `str.splitlines`, a form feed does not end one."""
    lines = _NEWLINE.split(text)
    return lines if lines[-1] else lines[:-1]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _end(one: Sequence[str], other: Sequence[str], same: int) -> int:
    """Where, in ``one``, the lines begin that both end with."""
    most = min(len(one), len(other)) - same
    return len(one) - min(_common(one[::-1], other[::-1]), most)
