"""A script's bytes in the form for the parsers, and the mapping back to positions in the file."""

from __future__ import annotations

from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.model import Span
from ldlm_lint.shell import tree
from ldlm_lint.source import Source

_WORD_ENDS = (b"", *(bytes((one,)) for one in b' \t\r\n;&|<>()`"}'))


class Text(NamedTuple):
    """The bytes after the BOM with line ends as bash needs them; offsets count from there."""

    source: Source
    data: bytes

    @classmethod
    def of(cls, source: Source) -> Text:
        """The text of a source."""
        return cls(source, tree.without_carriage_returns(source.data[source.bom :]))

    def span(self, start: int, end: int) -> Span:
        """The place in the file of the bytes ``[start, end)``."""
        return self.source.span(start + self.source.bom, end + self.source.bom)

    def of_node(self, node: Node) -> str:
        """The characters of a node."""
        return self.slice(node.start_byte, node.end_byte)

    def slice(self, start: int, end: int) -> str:
        """The characters of a stretch; bytes that are not UTF-8 become one replacement character each."""
        return self.data[start:end].decode(errors="replace")

    def ends_word(self, offset: int) -> bool:
        """Whether a word may end at the offset: it is followed by a separator or nothing."""
        return self.data[offset : offset + 1] in _WORD_ENDS

    def line_end(self, offset: int) -> int:
        """An offset after a line's end, moved after all of it: CRLF was made two ends of lines."""
        place = self.source.bom + offset
        original = self.source.data[max(place - 1, 0) : place + 1]
        return offset + 1 if original == b"\r\n" else offset

    def line_start(self, offset: int) -> int:
        """The offset of the first byte of the line that holds the offset."""
        return self.data.rfind(b"\n", 0, offset) + 1


def byte_offset(text: str, index: int) -> int:
    """The byte offset of a character of a text that is UTF-8 in the file."""
    return index if text.isascii() else len(text[:index].encode())
