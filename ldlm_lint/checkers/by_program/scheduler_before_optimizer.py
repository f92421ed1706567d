"""scheduler-before-optimizer where the schedule is stepped by an object or function of the project."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.project_code import ProjectCode
from ldlm_lint.concepts.schedules import Schedules
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.rules.schedule import SCHEDULER_BEFORE_OPTIMIZER
from ldlm_lint.wording import quoted

RULE = SCHEDULER_BEFORE_OPTIMIZER
WORDS = (b"step()",)


def find(view: ProjectCode) -> Iterator[Finding]:
    """Every schedule that is stepped in a loop before its optimizer."""
    for early in view[Schedules].early():
        related = [Related(early.optimizer.spot.line_span, "the optimizer steps here")]
        if early.site != early.step:
            related.append(Related(early.step.spot.line_span, "the scheduler steps here"))
        args = {"scheduler": quoted(early.step.text), "optimizer": quoted(early.optimizer.text)}
        yield view.finding(RULE, early.site.span, args, related, confidence=Confidence.MEDIUM)
