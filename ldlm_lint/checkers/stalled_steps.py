"""What rules about calls that hold every training step up have in common: the step in the message, and the removal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.stalls import Stalls
from ldlm_lint.edits.removed_calls import removal
from ldlm_lint.model import Applicability, Confidence, Fix, Related
from ldlm_lint.vocabulary.accelerators import EMPTIES, SYNCHRONIZES
from ldlm_lint.wording import RUNS_IN_EVERY_STEP, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding, Rule
    from ldlm_lint.program.handles import Call

_MAY_DO_MORE = "; a function of the project can do more than that"


def stalled(code: ProjectCode, rule: Rule, call: Call, way: list[Call], fix: Fix | None) -> Iterator[Finding]:
    """The finding about a call that some calls lead to from a step, if the step runs on a device."""
    step = code[EveryStep].step_around(call.spot) or call.function.spot
    if not code.trainings.run_on_accelerator(code.path(step.function.module)):
        return
    is_elsewhere = bool(way) and step.function.module is not call.module
    args = {"call": quoted(f"{call.text.partition('(')[0]}()"), "where": code.each_step(step, call.module)}
    confidence = Confidence.MEDIUM if is_elsewhere else rule.confidence
    related = Related(step.line_span, RUNS_IN_EVERY_STEP)
    yield code.finding(rule, call.span, args, (related,), fix=None if is_elsewhere else fix, confidence=confidence)


def removed(code: ProjectCode, call: Call, reason: str) -> Fix | None:
    """The removal of a call; what else may change without it."""
    edit = removal(code.source(call.module), call.span, with_condition=code[Stalls].asks_only_for_device(call))
    known = call.callee.outside_names
    more = "" if known and known <= EMPTIES | SYNCHRONIZES else _MAY_DO_MORE
    return Fix(f"remove the call of {call.called_name}()", (edit,), Applicability.UNSAFE, reason + more) if edit is not None else None
