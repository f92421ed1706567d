"""The parts of mappings and lists of a document: their literal contents, and the text that belongs to each part."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.configs.document import Document, Entry, Path, Shape
from ldlm_lint.configs.removal import Holder, Place, whole_lines
from ldlm_lint.configs.variables import Written
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Twin
from ldlm_lint.source import Kind, Source

_TO_BLOCK = lazily(rb":[ \t]*\r?\n[ \t]*")
_EMPTY = "nothing else is left around it"


class Placement:
    """The removable entries of one document file, and positions for new ones."""

    def __init__(self, source: Source, document: Document) -> None:
        self._source = source
        self._document = document
        self._holders: dict[tuple[int, Path], Holder | None] = {}

    def own(self, entry: Entry) -> Entry | None:
        """The entry itself; for one through an alias the one at its anchor, if it is the same."""
        return self._own.get((entry.document, entry.span, entry.key_span)) if entry.shared else entry

    def above(self, own: Entry) -> Entry | None:
        """The mapping or list that an entry is written in."""
        return self._origins.get((own.document, own.path[:-1]))

    @cached_property
    def _own(self) -> dict[tuple[int, Span, Span | None], Entry]:
        """The entries that are where they belong, by their bytes."""
        return {(one.document, one.span, one.key_span): one for one in self._origins.values()}

    @cached_property
    def _origins(self) -> dict[tuple[int, Path], Entry]:
        """The entries that are where they belong, by document and path."""
        return {(one.document, one.path): one for one in self._document.entries if not one.shared}

    @cached_property
    def _children(self) -> dict[tuple[int, Path], list[Entry]]:
        """The literal contents of each mapping and list, including alias values."""
        found: dict[tuple[int, Path], list[Entry]] = {}
        for one in self._document.entries:
            above = self._origins.get((one.document, one.path[:-1])) if one.path else None
            if above is not None and (not one.shared or _is_in(one.key_span, above.span)):
                found.setdefault((one.document, one.path[:-1]), []).append(one)
        return found

    def _extent(self, entry: Entry) -> tuple[int, int]:
        """The bytes of an entry with its key, up to the end of the last scalar in it."""
        start = entry.key_span.start if entry.key_span is not None else entry.span.start
        if entry.shape is Shape.SCALAR or self._is_flow(entry):
            return start, entry.span.end
        inner = [self._extent(one)[1] for one in self._children.get((entry.document, entry.path), ())]
        return start, max(inner, default=entry.span.end)

    def _is_flow(self, entry: Entry) -> bool:
        # A TOML table begins with a bracket too, but is a mapping.
        opener = b"{" if entry.shape is Shape.MAPPING else b"["
        return self._source.data.startswith(opener, entry.span.start)

    def place(self, own: Entry) -> Place | None:
        """The part of a holder that an entry is; None if it cannot be taken out."""
        key = (own.document, own.path[:-1])
        if key not in self._holders:
            self._holders[key] = self._holder(key)
        holder = self._holders[key]
        if holder is None:
            return None
        start = self._extent(own)[0]
        index = next((at for at, one in enumerate(holder.parts) if one.start == start), None)
        return None if index is None else Place(holder, index)

    def _holder(self, key: tuple[int, Path]) -> Holder | None:
        above, children = self._origins.get(key), self._children.get(key, [])
        if above is None or any(one.shared for one in children):
            return None
        spans = tuple(Span(self._source.path, *self._extent(one)) for one in children)
        data = self._source.data
        if b"<<" in data[above.span.start : above.span.end]:
            # Merged contents do not belong to its parts.
            return Holder(spans, tuple(whole_lines(self._source, one.start, one.end) for one in spans), free=True)
        if self._is_flow(above):
            inside = Span(self._source.path, above.span.start + 1, above.span.end - 1)
            return Holder(spans, emptied=Edit(inside, ""), reason=_EMPTY)
        lines = tuple(whole_lines(self._source, one.start, one.end) for one in spans)
        emptied: Edit | None = None
        if above.key_span is not None and _TO_BLOCK.fullmatch(
            data[above.key_span.end : above.span.start].rstrip(b"- ")
        ):
            empty = "{}" if above.shape is Shape.MAPPING else "[]"
            emptied = Edit(Span(self._source.path, above.key_span.end, spans[-1].end), f": {empty}")
        return Holder(spans, lines, emptied, _EMPTY, free=self._source.kind is Kind.TOML)

    def twin(self, written: Written, place: Place) -> Twin | None:
        """The same part once more with another name, after the existing one."""
        if written.key is None:
            return None
        data, path = self._source.data, self._source.path
        part = place.holder.parts[place.index]
        before, after = data[part.start : written.key.start].decode(), data[written.key.end : part.end].decode()
        if not place.holder.lines:
            return Twin(Span(path, part.end, part.end), f", {before}", after)
        line = place.holder.lines[place.index]
        if line is None:
            return None
        head = data[line.start : part.start].decode()
        end = line.end - len(data[line.start : line.end]) + len(data[line.start : line.end].rstrip(b"\r\n"))
        return Twin(Span(path, end, end), f"{self._source.newline}{head}{before}", after)


def _is_in(key: Span | None, above: Span) -> bool:
    return key is not None and above.start <= key.start < above.end
