"""Statements of a Python file by their places, and moving one behind another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from ldlm_lint.edits.lines import delete_line
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.python.syntax import parses, required
from ldlm_lint.source import Source

_BLOCKS = ("body", "orelse", "finalbody")


class Lines(Protocol):
    """The lines of a statement, and the columns where it begins and ends there."""

    lineno: int
    col_offset: int
    end_lineno: int | None
    end_col_offset: int | None


class Placed(NamedTuple):
    """A statement in its block, and the statement or module that the block belongs to."""

    statement: ast.stmt
    block: list[ast.stmt]
    owner: ast.AST


def statements_around(source: Source, span: Span) -> list[Placed]:
    """The statements around some code, innermost first; none if the file does not parse."""
    found: list[Placed] = []
    at: ast.AST | None = required(source) if parses(source) else None
    while at is not None:
        inner = next((one for one in _inside(at) if _holds(source, one.statement, span)), None)
        found += [inner] if inner is not None else []
        at = inner.statement if inner is not None else None
    return found[::-1]


def _inside(owner: ast.AST) -> Iterator[Placed]:
    for name in _BLOCKS:
        block = getattr(owner, name, None)
        yield from (Placed(one, block, owner) for one in block or () if isinstance(block, list) and isinstance(one, ast.stmt))
    for part in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ())):
        yield from _inside(part)


def _holds(source: Source, statement: ast.stmt, span: Span) -> bool:
    begin = source.offset(statement.lineno, statement.col_offset)
    return begin <= span.start and span.end <= source.offset(statement.end_lineno or 1, statement.end_col_offset or 0)


def move_behind(source: Source, moved: Span, other: Span, about: re.Pattern[str]) -> tuple[Edit, ...]:
    """Move the statement of some code, with an ``if`` or a loop around it that contains nothing else, behind the statement of its
    block that other code is in; with the comments above it that are ``about`` it. Empty if that is not simple."""
    unit = _unit(source, moved)
    behind = unit.block[unit.block.index(unit.statement) + 1 :] if unit is not None else []
    place = next((one for one in behind if _holds(source, one, other)), None)
    return moved_behind(source, unit.statement, place, about) if unit is not None and place is not None else ()


def move_into(source: Source, moved: Span, other: Span, about: re.Pattern[str]) -> tuple[Edit, ...]:
    """The same behind the statement that other code is, in whatever block that is."""
    unit, place = _unit(source, moved), next(iter(statements_around(source, other)), None)
    is_simple = unit is not None and place is not None and isinstance(place.statement, ast.Expr)
    return moved_behind(source, unit.statement, place.statement, about) if is_simple and unit and place else ()


def _unit(source: Source, moved: Span) -> Placed | None:
    """The statement of some code, with an ``if`` or a loop around it that contains nothing else, if it is not alone in its block."""
    around = statements_around(source, moved)
    unit = around[0] if around and isinstance(around[0].statement, ast.Expr) else None
    for one in around[1:]:
        owner = one.statement
        if unit is None or not isinstance(owner, (ast.If, ast.For)) or owner.orelse or len(owner.body) > 1:
            break
        unit = None if isinstance(one.owner, ast.If) and owner in one.owner.orelse else one
    return unit if unit is not None and len(unit.block) > 1 else None


def moved_behind(source: Source, unit: Lines, place: Lines, about: re.Pattern[str]) -> tuple[Edit, ...]:
    """Move whole lines behind another statement, with its indentation; empty if either shares its lines."""
    first, last = unit.lineno, unit.end_lineno or unit.lineno
    end = place.end_lineno or place.lineno
    is_alone = not source.lines[first - 1][: unit.col_offset].strip() and not _shares_a_line(source, unit)
    if not is_alone or _shares_a_line(source, place) or source.lines[first - 1].lstrip().startswith("elif") or end >= len(source.line_starts):
        return ()
    indent, before = _indent(source, place.lineno), _indent(source, first)
    head = _first_comment(source, first, before, about)
    lines = [line.removeprefix(before) for line in source.lines[head - 1 : last]]
    text = "".join(f"{indent}{line}{source.newline}" if line.strip() else source.newline for line in lines)
    start = source.line_starts[end]
    gone = delete_line(source, source.span(source.line_starts[head - 1], source.offset(last, unit.end_col_offset or 0)))
    return tuple(sorted((gone, Edit(source.span(start, start), text))))


def _first_comment(source: Source, line: int, indent: str, about: re.Pattern[str]) -> int:
    """The line from which on comments right above a statement are about it."""
    head = line
    while head > 1 and source.lines[head - 2].startswith(f"{indent}#"):
        head -= 1
    return head if about.search("".join(source.lines[head - 1 : line - 1])) else line


def _indent(source: Source, line: int) -> str:
    text = source.lines[line - 1]
    return text[: len(text) - len(text.lstrip())]


def _shares_a_line(source: Source, statement: Lines) -> bool:
    rest = source.lines[(statement.end_lineno or 1) - 1].encode()[statement.end_col_offset or 0 :].strip()
    return bool(rest) and not rest.startswith(b"#")


ABOUT_SCHEDULES = lazily(r"sched|\blr\b|learning|warm|anneal|decay", re.I)
"""What comments say that are about a schedule of the learning rate."""
