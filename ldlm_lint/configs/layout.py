"""The lines and separators around the entries of a configuration file."""

from __future__ import annotations

import re

from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind, Source

_REST = lazily(rb"[ \t]*(?:#[^\r\n]*)?")
_FLOW_REST = lazily(rb"[ \t]*(?P<comma>,?)[ \t]*(?P<comment>(?://|#)[^\r\n]*)?")
_COMMA = lazily(rb"\s*,\s*")
_BETWEEN = lazily(rb"[ \t]*,[ \t]*")
_LINE_END = lazily(rb"\r\n|\r|\n")
_DASH_BEFORE = re.compile(r"[ \t]*-[ \t]+")
_KEY_BEFORE = re.compile(r"[ \t]*(?:[\w.\"'-]+\.)?", re.ASCII)


def is_flow(source: Source, document: Document, entry: Entry) -> bool:
    """Whether an entry is between brackets, with commas around it."""
    if document.kind is Kind.JSON:
        return True
    parent = document.get(*entry.path[:-1], document=entry.document)
    if parent is None:
        return False
    first = source.data[parent.span.start : parent.span.start + 1]
    if document.kind is Kind.TOML:
        headed = parent.key_span is None or parent.key_span.start >= parent.span.start
        return (first == b"{" and not headed) or (first == b"[" and parent.shape is Shape.SEQUENCE and not headed)
    return first in (b"{", b"[")


class Layout:
    """Finds the bytes that belong to an entry, and the position for a new one."""

    def __init__(self, source: Source) -> None:
        self._data = source.data
        self._path = source.path
        self._newline = source.newline
        self._first = source.bom

    def _line_start(self, offset: int) -> int:
        return max(self._data.rfind(b"\n", 0, offset), self._data.rfind(b"\r", 0, offset)) + 1 or self._first

    def _line_end(self, offset: int) -> int:
        match = _LINE_END.search(self._data, offset)
        return match.start() if match else len(self._data)

    def _behind_line(self, offset: int) -> int:
        match = _LINE_END.search(self._data, offset)
        return match.end() if match else len(self._data)

    def _indent(self, offset: int) -> bytes | None:
        """The blanks before a position, None if there is other text on its line."""
        before = self._data[max(self._line_start(offset), self._first) : offset]
        return before if not before.strip(b" \t") else None

    def _span(self, start: int, end: int) -> Span:
        return Span(self._path, start, end)

    def block_lines(self, entry: Entry, following: Entry | None) -> Span | None:
        """The lines of an entry of a block, with the comment after it."""
        start, end = entry.whole.start, entry.span.end
        rest = _REST.match(self._data, end)
        if rest is None or rest.end() != self._line_end(end):
            return None
        line_start = max(self._line_start(start), self._first)
        before = self._data[line_start:start].decode()
        if (_KEY_BEFORE if entry.key_span is not None else _DASH_BEFORE).fullmatch(before):
            after = self._behind_line(end)
            if after == len(self._data) and not self._data.endswith((b"\n", b"\r")) and line_start > self._first:
                # The last line is removed with the line end before it.
                line_start = len(self._data[:line_start].rstrip(b"\r\n"))
            return self._span(line_start, after)
        # The first key of an item (`- name: x`): the next one moves to its position after the dash.
        if following is None or not _DASH_BEFORE.fullmatch(before) or self._data[rest.end() : following.whole.start].strip():
            return None
        return self._span(start, following.whole.start)

    def flow_stretch(self, before: Entry | None, entry: Entry, behind: Entry | None) -> Span | None:
        """An entry between brackets with one comma, and its line if it has its own."""
        start, end = entry.whole.start, entry.span.end
        if behind is not None:
            rest = _FLOW_REST.match(self._data, end)
            own_line = self._indent(start) is not None and rest is not None and rest.end() == self._line_end(end)
            if own_line and rest is not None and rest["comma"]:
                return self._span(max(self._line_start(start), self._first), self._behind_line(end))
            if _BETWEEN.fullmatch(self._data, end, behind.whole.start):
                return self._span(start, behind.whole.start)
            if before is None:
                return None
        if before is not None and _COMMA.fullmatch(self._data, before.span.end, start):
            rest = _FLOW_REST.match(self._data, end)
            return None if rest is not None and rest["comment"] else self._span(before.span.end, end)
        return None

    def inserted_in_block(self, entry: Entry, pair: str, *, dotted: bool) -> tuple[Edit, ...] | None:
        """One more pair on the line after an entry of a block."""
        start, end = entry.whole.start, entry.span.end
        line_end = self._line_end(end)
        rest = _REST.match(self._data, end)
        if rest is None or rest.end() != line_end:
            return None
        before = self._data[max(self._line_start(start), self._first) : start].decode()
        if dotted:
            if _KEY_BEFORE.fullmatch(before) is None:
                return None
            indent = before
        else:
            # After the dash of an item the keys have the indentation of the first one.
            indent = re.sub(r"-(?=[ \t])", " ", before)
            if indent.strip(" \t"):
                return None
        return (Edit(self._span(line_end, line_end), f"{self._newline}{indent}{pair}"),)

    def inserted_in_flow(self, entry: Entry, pair: str, *, one_line: bool) -> tuple[Edit, ...] | None:
        """One more pair after an entry between brackets, on its own line if the entry has one."""
        end = entry.span.end
        indent = None if one_line else self._indent(entry.whole.start)
        if indent is None:
            return (Edit(self._span(end, end), f", {pair}"),)
        rest = _FLOW_REST.match(self._data, end)
        line_end = self._line_end(end)
        line = f"{self._newline}{indent.decode()}{pair}"
        if rest is None or rest.end() != line_end or not rest["comment"]:
            return (Edit(self._span(end, end), f",{line}"),)
        if rest["comma"]:
            return (Edit(self._span(line_end, line_end), f"{line},"),)
        return (Edit(self._span(end, end), ","), Edit(self._span(line_end, line_end), line))
