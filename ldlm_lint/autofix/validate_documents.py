"""Checks that a YAML, JSON or TOML file still loads after a fix, with the same data on unchanged lines."""

from __future__ import annotations

import bisect
import difflib
import functools
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import yaml

from ldlm_lint.autofix.moves import Moves
from ldlm_lint.configs.document import Document, DocumentError, Entry, Shape
from ldlm_lint.configs.read import read
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind, Source, UnreadableError

# Comparing lines pairwise takes quadratic time.
_LONGEST = 500
_LINE = lazily(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


def validator(kind: Kind) -> Callable[..., str | None]:
    """The validator of a kind of document; a file that could not be read before cannot get worse."""
    return functools.partial(_validate, kind)


def _validate(kind: Kind, before: bytes, after: bytes, edits: Collection[Edit] = ()) -> str | None:
    try:
        old = read(Source.from_bytes("", before, kind))
    except (DocumentError, UnreadableError):
        return None
    try:
        new = read(Source.from_bytes("", after, kind))
    except DocumentError as error:
        return f"it would no longer load: {error.message} (line {error.line})"
    except UnreadableError as error:
        return f"it would no longer load: {error}"
    if old.documents != new.documents:
        return f"it would have {new.documents} documents instead of {old.documents}"
    if kind is Kind.YAML and _constructs(before) and not _constructs(after):
        return "it would no longer load: its values could not be built"
    doubled = _doubled(new) - _doubled(old)
    if doubled:
        return f"`{'.'.join(map(str, min(doubled, key=str)))}` would be set twice"
    if edits:
        return _changed(old, new, Moves(before, edits, "utf-8"))
    lines, new_lines = _Lines(before), _Lines(after)
    # With repeated lines, either alignment of new lines may be right.
    problems = [
        _lost(lines, old, new_lines, new, _moved(lines.texts, new_lines.texts, head_first))
        for head_first in (True, False)
    ]
    return problems[0] if all(problems) else None


def _constructs(data: bytes) -> bool:
    """Whether plain YAML can construct the nodes: for example a merge key needs a mapping."""
    try:
        return all(True for _ in yaml.safe_load_all(data))
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError):
        # Not all errors of the constructors are YAML's own: an impossible date is a ValueError.
        return False


def _doubled(document: Document) -> set[tuple[object, ...]]:
    """The places that hold more than one value."""
    counts = Counter((one.document, *one.path) for one in document.entries if not one.shared)
    return {place[1:] for place, count in counts.items() if count > 1}


def _changed(old: Document, new: Document, moves: Moves) -> str | None:
    """The first value outside of the edits that is another one now, or is held by other keys."""
    found = {(one.span.start, one.span.end): one for one in new.entries if not one.shared}
    for entry in old.entries:
        start, end = entry.span.start, entry.span.end
        if entry.shape is not Shape.SCALAR or entry.shared or moves.touching(start, end):
            continue
        place = moves.place(start, behind=True)
        now = None if place is None else found.get((place, place + end - start))
        if now is None and moves.beside(start, end):
            # Text next to a value that now belongs to it, for example in a filled empty value.
            continue
        if now is None or now.text != entry.text or not _same_keys(_above(old, entry), _above(new, now), moves):
            return f"`{'.'.join(map(str, entry.path))}` would change, which the fix does not intend"
    return None


def _same_keys(old: list[_Key], new: list[_Key], moves: Moves) -> bool:
    """Whether a value is held by the keys that held it, but for those that an edit renames."""
    return len(old) == len(new) and all(
        one.name == other.name or bool(moves.touching(one.span.start, one.span.end))
        for one, other in zip(old, new, strict=True)
    )


class _Key(NamedTuple):
    """The name of an entry, and its position."""

    name: str
    span: Span


def _above(document: Document, entry: Entry) -> list[_Key]:
    """The keys that hold a value, its own included, from the outermost on."""
    above = (document.get(*entry.path[:depth], document=entry.document) for depth in range(1, len(entry.path) + 1))
    return [_Key(one.name, one.key_span) for one in above if one is not None and one.key_span is not None]


class _Lines:
    """The lines of a file's bytes, with their ends."""

    def __init__(self, data: bytes) -> None:
        self.texts = _LINE.findall(data)
        self._starts = [0]
        for text in self.texts:
            self._starts.append(self._starts[-1] + len(text))

    def of(self, offset: int) -> int:
        """The 0-based line of a byte."""
        return max(min(bisect.bisect_right(self._starts, offset), len(self.texts)) - 1, 0)

    def column(self, offset: int) -> int:
        """The bytes between the beginning of the line and a byte of it."""
        return offset - self._starts[self.of(offset)]

    def offset(self, line: int, column: int) -> int:
        """The byte at a column of a line."""
        return self._starts[line] + column


def _lost(lines: _Lines, old: Document, new_lines: _Lines, new: Document, moved: Mapping[int, int]) -> str | None:
    """The first value on an unchanged line that is another one now, or is held by other keys; ``moved`` as in `_moved`."""
    kept = frozenset(moved.values())
    found = {(one.span.start, one.span.end): one for one in new.entries if not one.shared}
    for entry in old.entries:
        first, last = lines.of(entry.span.start), lines.of(max(entry.span.end - 1, entry.span.start))
        if entry.shape is not Shape.SCALAR or entry.shared or any(line not in moved for line in range(first, last + 1)):
            continue
        start = new_lines.offset(moved[first], lines.column(entry.span.start))
        now = found.get((start, start + entry.span.end - entry.span.start))
        if now is None or now.text != entry.text or _keys(lines, old, entry, moved) != _keys(new_lines, new, now, kept):
            return f"`{'.'.join(map(str, entry.path))}` would change, which the fix does not intend"
    return None


def _keys(lines: _Lines, document: Document, entry: Entry, unchanged: Collection[int]) -> list[str]:
    """The keys above a value that are on unchanged lines; items of a list move when an earlier one is removed."""
    return [one.name for one in _above(document, entry) if lines.of(one.span.start) in unchanged]


def _moved(before: list[bytes], after: list[bytes], head_first: bool) -> dict[int, int]:
    """For each line that is unchanged its number afterwards; between the first and the last change only in short files."""
    shorter = min(len(before), len(after))
    head = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    tail = next((index for index in range(shorter) if before[-1 - index] != after[-1 - index]), shorter)
    head, tail = (head, min(tail, shorter - head)) if head_first else (min(head, shorter - tail), tail)
    moved = {index: index for index in range(head)}
    moved.update((len(before) - 1 - index, len(after) - 1 - index) for index in range(tail))
    inner, new_inner = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(inner), len(new_inner)) <= _LONGEST:
        for block in difflib.SequenceMatcher(None, inner, new_inner, autojunk=False).get_matching_blocks():
            moved.update((head + block.a + index, head + block.b + index) for index in range(block.size))
    return moved
