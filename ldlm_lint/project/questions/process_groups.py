"""Questions about timeouts of process groups: the default group's, and whether it is set later."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.model import Applicability, Finding, Fix, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.group_timeouts import DEFAULT_GROUP, default_groups, makes_default_group
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import seconds
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.collectives import DO_WORK_BEFORE, length_of
from ldlm_lint.wording import quoted

_DEEPSPEED = Trait(lazily(rb"\bdeepspeed\b"), (b"deepspeed",), code=True)


def _set_later(context: Context, path: str) -> bool:
    """Whether a program that uses a file may set timeouts after the groups are created."""
    project = context.project
    flow = project.reach_of_all((path, *(project.importers(path) & project.plain)))
    return context.sets_timeouts_later(flow)


def _timeouts_are_not_set_later(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(not _set_later(context, finding.span.path))


def _default_group_has_timeout(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A program that loads the file passes a timeout wherever it creates the default group, and sets none later."""
    project, path = context.project, finding.span.path
    if _set_later(context, path):
        return Verdict(False)
    known: dict[str, _Made] = {}
    loading = project.importers(path) & project.plain
    imported = {target for one in loading for target in project.imported_by(one)}
    making = project.universe.of(one for one in project.plain if b"init_process_group" in project.data(one))
    # A file that is imported itself shows only a part of its program.
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
    """The number of default groups created in a file, and the timeouts passed there, as text."""

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


def _timeout_may_be_lowered(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The finding is confirmed; its fix is only described if ranks of the program wait for long work of one of them."""
    wait = context.view.trainings.wait_for_one_rank(finding.span)
    if wait is None:
        return Verdict(True)
    fix = Fix(DO_WORK_BEFORE, (), Applicability.DISPLAY, wait.why) if finding.fix is not None else None
    return Verdict(True, wait.related, withdraws=fix is None, fix=fix)


def _deepspeed_reads_timeout(context: Context, _finding: Finding, _subject: str) -> Verdict:
    """Some file lets DeepSpeed create its process group without passing a timeout."""
    project = context.project
    key = ("deepspeed-reads-timeout", "")
    if key not in context.answers:
        making = project.showing(_DEEPSPEED) & project.plain
        context.answers[key] = any(_leaves_timeout_to_deepspeed(context.trees.of(one)) for one in making)
    return Verdict(context.answers[key])


def _leaves_timeout_to_deepspeed(module: nodes.Module | None) -> bool:
    """Whether a file creates DeepSpeed's group by a call without ``timeout=``: ``initialize`` reuses an existing
    group.
    """
    calls = [(call, next(iter(names))) for call in nodes_of(module, nodes.Call) if len(names := qualified(call.func)) == 1] if module else []
    groups = [call for call, name in calls if name in ("deepspeed.init_distributed", "deepspeed.comm.init_distributed", DEFAULT_GROUP)]
    if groups:
        return any(not makes_default_group(call) and Arguments(call)["timeout"].absent for call in groups)
    return any(name == "deepspeed.initialize" for _, name in calls)


QUESTIONS: dict[str, Question] = {
    "deepspeed-reads-timeout": _deepspeed_reads_timeout,
    "timeout-may-be-lowered": _timeout_may_be_lowered,
    "timeouts-are-not-set-later": _timeouts_are_not_set_later,
    "default-group-has-timeout": _default_group_has_timeout,
}
