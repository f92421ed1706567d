"""What checkpoints ask: who writes them, and who deletes old ones."""

from __future__ import annotations

from ldlm_lint.model import Finding
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _nothing_prunes(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(nothing_prunes(context.project, finding.span.path))


def nothing_prunes(project: Project, path: str) -> bool:
    """Whether neither a file, nor what it imports, nor the training files that use it delete or rotate checkpoints."""
    return not project.any_skim(project.around(path), "prunes")


def _callee_saves(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    calls = (call for call in context.project.flow(path).calls if call.position == position)
    return Verdict(any(context.calls.saves(path, call.callee) for call in calls))


def _old_ones_may_go(context: Context, finding: Finding, positions: str) -> Verdict:
    """Always true; the fix, which deletes old files behind these saves, stays where the ways to all of them allow it."""
    from ldlm_lint.project.rotation import may_go

    path = finding.span.path
    wanted = finding.fix is not None and all(
        may_go(context.calls, context.ranks, context.trees, path, position) for position in positions.split()
    )
    return Verdict(True, withdraws=not wanted)


QUESTIONS: dict[str, Question] = {
    "nothing-prunes-checkpoints": _nothing_prunes,
    "callee-saves": _callee_saves,
    "old-checkpoints-may-go": _old_ones_may_go,
}
