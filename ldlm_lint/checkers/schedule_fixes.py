"""Moving the step of a scheduler after that of its optimizer."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_EARLY = "each step then uses the learning rate one earlier in the schedule than now"
_FREQUENT = "the schedule then runs slower by the number of micro-batches: divide a length that counts micro-batches by it"
# A comment in front that belongs to the scheduler's step.
_ABOUT = lazily(r"sched|\blr\b|learning|warm|anneal|decay", re.I)


def move_behind(source: Source, schedule: nodes.Call, step: nodes.Call, title: str) -> Fix | None:
    """The fix that moves the scheduler's statement after the optimizer's; None if that is not simple."""
    unit = _unit(schedule)
    place = _place(unit, step) if unit is not None else None
    return _moved(source, unit, place, title, _EARLY) if unit is not None and place is not None else None


def move_into(source: Source, schedule: nodes.Call, step: nodes.Call, title: str) -> Fix | None:
    """The same if the optimizer's statement is in a separate block, such as the guard of an accumulation."""
    unit, place = _unit(schedule), step.statement()
    return _moved(source, unit, place, title, _FREQUENT) if unit is not None and isinstance(place, nodes.Expr) else None


def _moved(source: Source, unit: nodes.NodeNG, place: nodes.NodeNG, title: str, reason: str) -> Fix | None:
    first, last = unit.lineno or 1, unit.end_lineno or 1
    alone = not source.lines[first - 1][: unit.col_offset or 0].strip() and not _shares_a_line(source, unit)
    if not alone or _shares_a_line(source, place) or source.lines[first - 1].lstrip().startswith("elif"):
        return None
    indent, before = _indent(source, place.lineno or 1), _indent(source, first)
    head = _first_comment(source, first, before)
    lines = [line.removeprefix(before) for line in source.lines[head - 1 : last]]
    text = "".join(f"{indent}{line}{source.newline}" if line.strip() else source.newline for line in lines)
    end = place.end_lineno or 1
    if end >= len(source.line_starts):
        return None
    start = source.line_starts[end]
    gone = delete_line(source, source.span(source.line_starts[head - 1], span_of(source, unit).end))
    return Fix(title, tuple(sorted((gone, Edit(source.span(start, start), text)))), Applicability.UNSAFE, reason)


def _first_comment(source: Source, line: int, indent: str) -> int:
    """The line from which on comments right above a statement mention it."""
    head = line
    while head > 1 and source.lines[head - 2].startswith(f"{indent}#"):
        head -= 1
    return head if _ABOUT.search("".join(source.lines[head - 1 : line - 1])) else line


def _unit(schedule: nodes.Call) -> nodes.NodeNG | None:
    """The statement of a scheduler's step, with an ``if`` or a loop around it that contains nothing else."""
    unit = schedule.statement()
    if not isinstance(unit, nodes.Expr):
        return None
    parent = unit.parent
    while isinstance(parent, (nodes.If, nodes.For)) and not parent.orelse and len(parent.body) == 1:
        if isinstance(parent.parent, nodes.If) and parent in parent.parent.orelse:
            return None
        unit, parent = parent, parent.parent
    siblings = _block(unit)
    return unit if siblings is not None and len(siblings) > 1 else None


def _place(unit: nodes.NodeNG, step: nodes.Call) -> nodes.NodeNG | None:
    """The statement after the unit, in the same block, that holds the optimizer's step."""
    block = _block(unit) or []
    around = [step.statement(), *step.node_ancestors()]
    return next((one for one in block[block.index(unit) + 1 :] if any(one is other for other in around)), None)


def _block(statement: nodes.NodeNG) -> list[nodes.NodeNG] | None:
    parent = statement.parent
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if isinstance(block, list) and statement in block), None)


def _indent(source: Source, line: int) -> str:
    text = source.lines[line - 1]
    return text[: len(text) - len(text.lstrip())]


def _shares_a_line(source: Source, statement: nodes.NodeNG) -> bool:
    rest = source.lines[(statement.end_lineno or 1) - 1].encode()[statement.end_col_offset or 0 :].strip()
    return bool(rest) and not rest.startswith(b"#")
