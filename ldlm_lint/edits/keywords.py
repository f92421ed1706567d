"""Keyword arguments of a Python call, added and removed in the layout of the call."""

from __future__ import annotations

import ast
import itertools
import tokenize
from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.code.tokens import BLANK, NEWLINE, Token, depths_of, tokens_of
from ldlm_lint.edits.lines import delete_line
from ldlm_lint.files.edited import overlap
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

MAX_LINE = 100
_END_OF_LINE = lazily(rb"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n)")
_COMMA = lazily(rb"[ \t]*,[ \t]*")


def add_keyword(source: Source, call: Span, name: str, value: str) -> Edit | None:
    """Add ``name=value`` as the last argument of the call expression that ``call`` spans.

    The new argument gets its own line where the last argument has one or where the line would grow past MAX_LINE
    columns. Trailing commas and comments stay with their arguments, and a lone generator gets the parentheses that
    Python then requires. None if ``call`` is not a call or passes ``name`` already.
    """
    text = source.slice(call)
    if not _is_call(text):
        return None
    layout = _Layout.of(text)
    if layout is None or layout.passes(name):
        return None
    return layout.edit(source, call, f"{name}={value}")


def _is_call(text: str) -> bool:
    try:
        return isinstance(ast.parse(f"({text}\n)", mode="eval").body, ast.Call)
    except (SyntaxError, ValueError):
        return False


class _Layout(NamedTuple):
    """A call as text: everything between its parentheses, cut into tokens.

    ``opening`` and ``closing`` are the offsets after ``(`` and of ``)``; ``inside`` are the tokens between them,
    ``depths`` how many further brackets each is in.
    """

    text: str
    opening: int
    closing: int
    inside: tuple[Token, ...]
    depths: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> _Layout | None:
        """The layout of a call expression, None if it cannot be cut into tokens."""
        tokens = tokens_of(text)
        if not tokens or tokens[-1].text != ")":
            return None
        depths = depths_of(tokens)
        last = len(tokens) - 1
        first = max(index for index in range(last) if tokens[index].text == "(" and depths[index] == 0)
        inside = slice(first + 1, last)
        return cls(
            text,
            tokens[first].end,
            tokens[last].start,
            tuple(tokens[inside]),
            tuple(depth - 1 for depth in depths[inside]),
        )

    def passes(self, name: str) -> bool:
        """Whether the call has a keyword argument of that name."""
        words = self._words()
        return any(
            word.text == name and depth == 0 and after.text == "=" and (index == 0 or words[index - 1][0].text == ",")
            for index, ((word, depth), (after, _)) in enumerate(itertools.pairwise(words))
        )

    def edit(self, source: Source, span: Span, argument: str) -> Edit:
        """The edit that adds ``argument``, in the layout of ``span``."""
        start, end, new = self.insertion(argument)
        if new == f", {argument}":
            new = self._broken(source, span, argument) or new

        def byte(index: int) -> int:
            return span.start + len(self.text[:index].encode(source.encoding))

        return Edit(Span(span.path, byte(start), byte(end), span.cell), new)

    def _broken(self, source: Source, span: Span, argument: str) -> str | None:
        """The argument on a line of its own below the first one, if the call's only line would become too long."""
        row, column = source.position(span.start)
        line = source.lines[row - 1]
        if NEWLINE.search(self.text) or len(line) + len(f", {argument}") <= MAX_LINE:
            return None
        indent = line[: len(line) - len(line.lstrip())]
        margin = indent + " " * (column - 1 + self.opening - len(indent))
        rest = len(line) - (column - 1 + len(self.text))
        fits = len(margin) + len(argument) + 1 + rest <= MAX_LINE
        return f",{source.newline}{margin}{argument}" if fits else None

    def insertion(self, argument: str) -> tuple[int, int, str]:
        """The range of characters to replace in order to add ``argument``, and its replacement."""
        words = self._words()
        if not words:
            return self._into_empty(argument)
        comma = words[-1][0] if words[-1][0].text == "," else None
        arguments = words[:-1] if comma else words
        if any(depth == 0 and word.text in {"for", "async"} for word, depth in arguments):
            start, end = arguments[0][0].start, arguments[-1][0].end
            return start, end, f"({self.text[start:end]}), {argument}"
        end = arguments[-1][0].end
        indent = self._indent_for(arguments, argument)
        if indent is None:
            return end, end, f", {argument}"
        line = f"{self._newline()}{indent}{argument}"
        comment = self._comment_after((comma or arguments[-1][0]).end)
        if comment is None:
            return end, end, f",{line}"
        if comma:
            return comment.end, comment.end, f"{line},"
        return end, comment.end, f",{self.text[end : comment.end]}{line}"

    def _words(self) -> list[tuple[Token, int]]:
        pairs = zip(self.inside, self.depths, strict=True)
        return [(token, depth) for token, depth in pairs if token.kind not in BLANK]

    def _into_empty(self, argument: str) -> tuple[int, int, str]:
        if not any(token.kind == tokenize.COMMENT for token in self.inside):
            return self.opening, self.opening, argument
        line = _line_start(self.text, self.closing)
        indent = self.text[line : self.closing]
        return line, line, f"{indent}    {argument},{self._newline()}"

    def _indent_for(self, arguments: Sequence[tuple[Token, int]], argument: str) -> str | None:
        """The indentation of the new argument's own line, None if it goes after the last argument."""
        commas = [index for index, (word, depth) in enumerate(arguments) if depth == 0 and word.text == ","]
        starts = [arguments[index + 1][0].start for index in [-1, *commas]]
        line = _line_start(self.text, starts[-1])
        rest = self.text[line:]
        indent = rest[: len(rest) - len(rest.lstrip(" \t"))]
        first = line + len(indent)
        if line == 0 or first not in starts:
            return None
        end = arguments[-1][0].end
        width = end - _line_start(self.text, end) + len(f", {argument})")
        return indent if first == starts[-1] or width > MAX_LINE else None

    def _comment_after(self, offset: int) -> Token | None:
        """The comment that is after ``offset`` on the same line."""
        for token in self.inside:
            if token.start >= offset and token.kind == tokenize.COMMENT:
                return None if NEWLINE.search(self.text, offset, token.start) else token
        return None

    def _newline(self) -> str:
        match = NEWLINE.search(self.text)
        return match.group() if match else "\n"


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


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
