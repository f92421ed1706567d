"""Whole lines of Python code: where a statement's own comments begin, and by how much its block is indented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.model import Edit, Span
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from astroid import nodes


def stands_alone(source: Source, statement: nodes.NodeNG) -> bool:
    """Whether the lines of a statement contain nothing else except a comment."""
    before = source.lines[statement.lineno - 1].encode()[: statement.col_offset]
    end = statement.end_lineno or statement.lineno
    after = source.lines[end - 1].encode()[statement.end_col_offset or 0 :].decode(errors="replace").strip()
    return not before.strip() and (not after or after.startswith("#"))


def is_alone(source: Source, span: Span) -> bool:
    """Whether only a comment is beside some code on its lines."""
    (first, column), (last, end) = source.position(span.start), source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()


def insert_above(source: Source, number: int, line: str) -> Edit:
    """Insert a line before a line (by its 1-based number) and the comments that are right above it."""
    indent = indent_at(source, number)
    while number > 1 and source.lines[number - 2].strip().startswith("#") and indent_at(source, number - 1) == indent:
        number -= 1
    start = source.line_starts[number - 1]
    return Edit(source.span(start, start), f"{indent}{line}{source.newline}")


def indent_of(source: Source, statement: nodes.NodeNG) -> str:
    """The blanks before a statement."""
    return indent_at(source, statement.lineno)


def indent_at(source: Source, number: int) -> str:
    """The blanks that a line (by its 1-based number) begins with."""
    return _blanks(source.lines[number - 1])


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def step_of(source: Source, statement: nodes.NodeNG) -> str:
    """One level of indentation at a statement: that of its own block, else of the enclosing block."""
    pairs = [(statement, one) for one in getattr(statement, "body", [])[:1]]
    if getattr(statement.parent, "lineno", None):
        pairs.append((statement.parent, statement))
    for outer, inner in pairs:
        own, deeper = indent_of(source, outer), indent_of(source, inner)
        if inner.lineno > outer.lineno and deeper.startswith(own) and deeper != own:
            return deeper[len(own) :]
    return "\t" if "\t" in indent_of(source, statement) else "    "
