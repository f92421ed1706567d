"""What timeouts of process groups ask of the project: what the default group is given, and whether it is set later."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.group_timeouts import default_groups, makes_default_group, sets_timeouts_later
from ldlm_lint.python.values import seconds
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import length_of
from ldlm_lint.wording import quoted


def _set_later(context: Context, path: str) -> bool:
    """Whether a program that uses a file may set timeouts when the groups are made."""
    project = context.project
    flow = project.reach_of_all((path, *(project.importers(path) & project.plain)))
    return project.any_that(flow, "sets-timeouts-later", lambda one: sets_timeouts_later(project.data(one)))


def _timeouts_are_not_set_later(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(not _set_later(context, finding.span.path))


def _default_group_has_timeout(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A program that loads the file gives its default group a timeout wherever it makes one, and sets none later."""
    project, path = context.project, finding.span.path
    if _set_later(context, path):
        return Verdict(False)
    known: dict[str, _Made] = {}
    loading = project.importers(path) & project.plain
    imported = {target for one in loading for target in project.imported_by(one)}
    making = project.universe.of(one for one in project.plain if b"init_process_group" in project.data(one))
    # A file that is imported itself knows only a part of its program.
    for entry in loading - imported or loading:
        made = []
        for one in making & project.reach(entry):
            if one not in known:
                known[one] = _made_in(context, one)
            made.append(known[one])
        given = [place for one in made for place in one.given]
        if given and all(one.given or not one.calls for one in made):
            return Verdict(True, (given[0][0],), (("timeout", given[0][1]),))
    return Verdict(False)


class _Made(NamedTuple):
    """How often a file makes the default group, and where it gives it a timeout, in words which."""

    calls: int
    given: tuple[tuple[Related, str], ...]


def _made_in(context: Context, path: str) -> _Made:
    module = context.trees.of(path)
    if module is None:
        return _Made(0, ())
    given = []
    for call, timeout in default_groups(module):
        length = seconds(timeout)
        place = Related(context.line_span(path, call.lineno or 1), "the default group gets its timeout here")
        given.append((place, length_of(length[0]) if length else quoted(timeout.as_string())))
    return _Made(sum(makes_default_group(call) for call in nodes_of(module, nodes.Call)), tuple(given))


QUESTIONS: dict[str, Question] = {
    "timeouts-are-not-set-later": _timeouts_are_not_set_later,
    "default-group-has-timeout": _default_group_has_timeout,
}
