"""What checkpoints ask: who writes them, and who deletes old ones."""

from __future__ import annotations

from ldlm_lint.code.table import COLUMNS
from ldlm_lint.concepts.asked_for import Interval, intervals_asked_for
from ldlm_lint.model import Applicability, Finding
from ldlm_lint.project.call_texts import gives_one_value, start_of
from ldlm_lint.project.index import Project
from ldlm_lint.project.optional_settings import is_off_everywhere
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _nothing_prunes(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Whether nothing removes files of the names that a save writes; by words of files where the program does not show these."""
    view = context.view
    by_words = nothing_prunes(context.project, finding.span.path)
    module = view.module(finding.span.path)
    call = None if module is None else view.call_at(module, view.place_at(module, finding.span.start))
    if module is None or call is None:
        return Verdict(by_words)
    series = next((one for one in view.checkpoints.all if module.base | call in (one.call, one.sink)), None)
    return Verdict(by_words if series is None else not view.is_pruned(series))


def nothing_prunes(project: Project, path: str) -> bool:
    """Whether neither a file, nor what it imports, nor the training files that use it delete or rotate checkpoints."""
    return not project.any_skim(project.around(path), "prunes")


def _callee_saves(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    calls = (call for call in context.project.flow(path).calls if call.position == position)
    return Verdict(any(context.calls.saves(path, call.callee) for call in calls))


def _calls_give_numbers(context: Context, finding: Finding, place: str) -> Verdict:
    """What a parameter (after the function) holds may count, unless all calls write one value for it: ``name="last"``, ``epoch=1``."""
    path, (scope, _, parameter) = finding.span.path, place.partition("|")
    calls = [(where, call) for where, call in context.calls.callers(path, scope) if not context.project.is_test(where)]
    return Verdict(not calls or not all(_gives_one_value(context, where, call.position, parameter) for where, call in calls))


def _save_is_not_optional(context: Context, finding: Finding, position: str) -> Verdict:
    """The setting that a save waits for is on somewhere: what nobody turns on fills no disk."""
    view = context.view
    module = view.module(finding.span.path)
    line, _, column = position.partition(":")
    call = None if module is None else view.call_at(module, int(line) << COLUMNS | int(column))
    waits_for = [] if module is None or call is None else intervals_asked_for(view.ask, module.base | call)
    return Verdict(not any(_is_off(context, one) for one in waits_for))


def _lightning_saves_again(context: Context, finding: Finding, position: str) -> Verdict:
    """A callback of Lightning saves more than once in a run."""
    view = context.view
    module = view.module(finding.span.path)
    line, _, column = position.partition(":")
    call = None if module is None else view.call_at(module, int(line) << COLUMNS | int(column))
    return Verdict(module is None or call is None or not view.lightning_rhythm.saves_once(module.base | call))


def _is_off(context: Context, interval: Interval) -> bool:
    key = ("save-is-not-optional", " ".join((interval.name, *interval.defaults)))
    if key not in context.answers:
        context.answers[key] = is_off_everywhere(context.project, interval.name, interval.defaults)
    return context.answers[key]


def _gives_one_value(context: Context, path: str, position: str, parameter: str) -> bool:
    data = context.project.data(path)
    return gives_one_value(data, start_of(data, position), parameter)


def _old_ones_may_go(context: Context, finding: Finding, positions: str) -> Verdict:
    """Always true; the fix, which deletes old files behind these saves, stays where the ways to all of them allow it."""
    from ldlm_lint.checkers.checkpoint_rotation import shown_where_lost
    from ldlm_lint.project.rotation import lost_elsewhere, may_go

    path = finding.span.path
    wanted = finding.fix is not None and all(
        may_go(context.calls, context.ranks, context.trees, path, position) for position in positions.split()
    )
    if not wanted or finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
        return Verdict(True, withdraws=not wanted)
    lost = lost_elsewhere(context.calls, context.trees, path, positions.split())
    return Verdict(True, fix=shown_where_lost(finding.fix, lost))


QUESTIONS: dict[str, Question] = {
    "nothing-prunes-checkpoints": _nothing_prunes,
    "callee-saves": _callee_saves,
    "calls-give-numbers": _calls_give_numbers,
    "old-checkpoints-may-go": _old_ones_may_go,
    "lightning-saves-again": _lightning_saves_again,
    "save-is-not-optional": _save_is_not_optional,
}
