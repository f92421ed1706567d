"""Questions for every rule: whether code trains, where it runs, how often."""

from __future__ import annotations

from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import runs_many_ranks


def _belongs_to_training(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A training is reached from the same files as this one; a script that only predicts does not reach one."""
    path = finding.span.path
    return Verdict(not context.project.is_test(path) and bool(context.project.trainers_of(path)))


def _stands_outside_tests(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(not context.project.is_test(finding.span.path))


def _runs_many_ranks(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(runs_many_ranks(context.project, finding.span.path))


QUESTIONS: dict[str, Question] = {
    "belongs-to-training": _belongs_to_training,
    "stands-outside-tests": _stands_outside_tests,
    "runs-many-ranks": _runs_many_ranks,
}
