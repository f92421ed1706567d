"""Questions about checkpoints: whether they are wanted, and whether old ones may be deleted."""

from __future__ import annotations

from ldlm_lint.code.table import COLUMNS
from ldlm_lint.concepts.asked_for import Interval, intervals_asked_for
from ldlm_lint.model import Applicability, Finding
from ldlm_lint.project.optional_settings import is_off_everywhere
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.rules.checkpoint_files import CHECKPOINTS_TO_KEEP


def _save_is_not_optional(context: Context, finding: Finding, position: str) -> Verdict:
    """The setting behind a save is on somewhere: a save that is never enabled fills no disk."""
    view = context.view
    module = view.module(finding.span.path)
    line, _, column = position.partition(":")
    call = None if module is None else view.call_at(module, int(line) << COLUMNS | int(column))
    waits_for = [] if module is None or call is None else intervals_asked_for(view.ask, module.base | call)
    return Verdict(not any(_is_off(context, one) for one in waits_for))


def _is_off(context: Context, interval: Interval) -> bool:
    key = ("save-is-not-optional", " ".join((interval.name, *interval.defaults)))
    if key not in context.answers:
        context.answers[key] = is_off_everywhere(context.project, interval.name, interval.defaults)
    return context.answers[key]


def _old_ones_may_go(context: Context, finding: Finding, positions: str) -> Verdict:
    """Always true; the fix deletes old files after these saves, where the ways to all of them allow it."""
    from ldlm_lint.checkers.checkpoint_rotation import rotation_fix, shown_where_lost
    from ldlm_lint.frameworks.sections import integer
    from ldlm_lint.project.rotation import lost_elsewhere, may_go, saves_at

    path, view = finding.span.path, context.view
    module, wanted = view.module(path), positions.split()
    saves = saves_at(context.trees, path, wanted)
    if module is None or len(saves) < len(wanted):
        return Verdict(True)
    fix = rotation_fix(view.source(module), saves, integer(context.facts_of(path), CHECKPOINTS_TO_KEEP))
    if fix is None or not all(may_go(context.calls, context.ranks, context.trees, path, one) for one in wanted):
        return Verdict(True)
    if fix.applicability is Applicability.DISPLAY:
        return Verdict(True, fix=fix)
    return Verdict(True, fix=shown_where_lost(fix, lost_elsewhere(context.calls, context.trees, path, wanted)))


QUESTIONS: dict[str, Question] = {
    "old-checkpoints-may-go": _old_ones_may_go,
    "save-is-not-optional": _save_is_not_optional,
}
