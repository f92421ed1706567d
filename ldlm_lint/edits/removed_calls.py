"""The removal of a statement that is nothing but a call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.edits.lines import delete_line
from ldlm_lint.model import Edit
from ldlm_lint.patterns import lazily
from ldlm_lint.python.syntax import required

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.source import Source

_REMARK = lazily(r"empty|cache|memory|free|sync|wait", re.I)
# A comment may also belong to the next statement, unless it names the removed call.
_OF_CACHE = lazily(r"\bcache\b", re.I)
_Block = list[ast.stmt]
_Placed = tuple[ast.stmt, _Block, tuple[ast.stmt, _Block] | None]
"""A statement, its block, and the ``if`` that holds it alone with the block of that."""


def removal(source: Source, call: Span, *, with_condition: bool) -> Edit | None:
    """Take away the statement that is a call, with the comment that explains it alone; a block that would be empty gets
    ``pass``. ``with_condition``: also an ``if`` around it that holds nothing else. None where lines have more on them."""
    for statement, block, around in _statements(required(source).body, None):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _span(source, statement.value) == call:
            gone, left = (statement, block) if around is None or not with_condition else around
            if not _stands_alone(source, gone) or (gone is statement and statement.lineno != statement.end_lineno):
                return None
            if len(left) == 1:
                return Edit(_span(source, gone), "pass")
            return delete_line(source, source.span(_begin(source, gone, left), _span(source, gone).end))
    return None


def _statements(block: _Block, around: tuple[ast.stmt, _Block] | None, is_else: bool = False) -> Iterator[_Placed]:
    for one in block:
        yield one, block, around if len(block) == 1 else None
        # An ``elif`` begins no statement where it stands.
        holds = (one, block) if isinstance(one, ast.If) and not one.orelse and not is_else else None
        for inner, is_inner_else in _blocks(one):
            yield from _statements(inner, holds, is_inner_else)


def _blocks(statement: ast.stmt) -> Iterator[tuple[_Block, bool]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, []), name == "orelse"
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body, False


def _span(source: Source, node: ast.stmt | ast.expr) -> Span:
    return source.span_of(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _stands_alone(source: Source, statement: ast.stmt) -> bool:
    """Whether the lines of a statement contain nothing else except a comment."""
    before = source.lines[statement.lineno - 1].encode()[: statement.col_offset]
    last = source.lines[(statement.end_lineno or statement.lineno) - 1].encode()
    after = last[statement.end_col_offset or 0 :].decode(errors="replace").strip()
    return not before.strip() and (not after or after.startswith("#"))


def _begin(source: Source, statement: ast.stmt, block: _Block) -> int:
    """Where a statement begins, or the comment right above it that explains this statement alone."""
    first, indent = statement.lineno, _indent(source, statement.lineno)
    while first > 1 and source.lines[first - 2].strip().startswith("#") and _indent(source, first - 1) == indent:
        first -= 1
    following = next(iter(block[block.index(statement) + 1 :]), None)
    close = following is not None and following.lineno == (statement.end_lineno or statement.lineno) + 1
    remark = "\n".join(source.lines[first - 1 : statement.lineno - 1])
    goes_along = _OF_CACHE.search(remark) if close else _REMARK.search(remark)
    return source.line_starts[first - 1 if goes_along else statement.lineno - 1]


def _indent(source: Source, number: int) -> str:
    line = source.lines[number - 1]
    return line[: len(line) - len(line.lstrip())]


__all__ = ["removal"]
