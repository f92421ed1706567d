"""The questions that findings ask of the project, one room per topic; each answer says whether the finding stands, and why.

A question is asked with the finding and the subject of its claim. Where the project does not decide it, the answer
is no: unknown is not a finding.
"""

from __future__ import annotations

from dataclasses import replace

from ldlm_lint.model import Applicability, Finding, Fix
from ldlm_lint.project.questions import (
    amp,
    autograd,
    checkpoint_files,
    checkpoint_saving,
    configuration,
    configured_timeouts,
    copies,
    data,
    ddp_graph,
    distributed,
    environment,
    evaluation,
    frameworks,
    gradient_scaling,
    host_time,
    launches,
    memory,
    optimizer,
    precision,
    process_groups,
    roles,
    schedule,
    segments,
    sourcing,
)
from ldlm_lint.project.questions.base import Context, Question, Verdict

_ROOMS = (roles, data, distributed, optimizer, memory, checkpoint_files)
_ROOMS += (host_time, autograd, evaluation, checkpoint_saving, amp, schedule)
_ROOMS += (copies, ddp_graph, process_groups, segments, gradient_scaling, precision)
_ROOMS += (configuration, configured_timeouts, frameworks, launches, sourcing, environment)
QUESTIONS: dict[str, Question] = {kind: question for room in _ROOMS for kind, question in room.QUESTIONS.items()}


def decide(finding: Finding, context: Context) -> Finding | None:
    """The finding with what the project adds to it, or None where a claim does not hold."""
    for claim in finding.claims:
        verdict = QUESTIONS[claim.kind](context, finding, claim.subject)
        if not verdict.holds:
            return None
        finding = replace(
            finding,
            related=finding.related + verdict.related,
            args=tuple(sorted((dict(finding.args) | dict(verdict.args)).items())),
            fix=None if verdict.withdraws else verdict.fix or _demoted(finding.fix, verdict.unsafe),
        )
    return replace(finding, claims=(), confirmed=True)


def _demoted(fix: Fix | None, reason: str) -> Fix | None:
    if fix is None or not reason or fix.applicability is not Applicability.SAFE:
        return fix
    return replace(fix, applicability=Applicability.UNSAFE, reason=reason)


__all__ = ["QUESTIONS", "Context", "Question", "Verdict", "decide"]
