"""scheduler-before-optimizer where the schedule is stepped by an object or function of the project."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.schedules import Schedules
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.rules.schedule import SCHEDULER_BEFORE_OPTIMIZER
from ldlm_lint.wording import quoted

RULE = SCHEDULER_BEFORE_OPTIMIZER
WORDS = (b"step()",)


def find(view: View) -> Iterator[Finding]:
    """Every schedule that is stepped in a loop before its optimizer."""
    for early in view[Schedules].early():
        related = [Related(line_span(view, early.optimizer), "the optimizer steps here")]
        if early.site != early.step:
            related.append(Related(line_span(view, early.step), "the scheduler steps here"))
        args = {"scheduler": quoted(view.call_text(early.step)), "optimizer": quoted(view.call_text(early.optimizer))}
        yield view.finding(RULE, view.call_span(early.site), args, related, confidence=Confidence.MEDIUM)
