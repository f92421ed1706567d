"""Moving the step of a scheduler to that of its optimizer, inside of the guard of an accumulation."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.statements import ABOUT_SCHEDULES, moved_behind
from ldlm_lint.model import Applicability, Fix
from ldlm_lint.source import Source

_FREQUENT = "the schedule then runs slower by the number of micro-batches: divide a length that counts micro-batches by it"


def move_into(source: Source, schedule: nodes.Call, step: nodes.Call, title: str) -> Fix | None:
    """The fix that moves the scheduler's statement after the optimizer's; None if that is not simple."""
    unit, place = _unit(schedule), step.statement()
    edits = moved_behind(source, unit, place, ABOUT_SCHEDULES) if unit is not None and isinstance(place, nodes.Expr) else ()
    return Fix(title, edits, Applicability.UNSAFE, _FREQUENT) if edits else None


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


def _block(statement: nodes.NodeNG) -> list[nodes.NodeNG] | None:
    parent = statement.parent
    blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
    return next((block for block in blocks if isinstance(block, list) and statement in block), None)
