"""What checkpoints ask: which processes write them, and what a load without arguments does."""

from __future__ import annotations

from ldlm_lint.model import Finding, Related, Severity
from ldlm_lint.project.call_texts import leaves_out, start_of
from ldlm_lint.project.known_callers import known_callers
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.rules.checkpoint_loading import from_outside, of_the_project
from ldlm_lint.wording import located, quoted


def _every_rank_saves(context: Context, finding: Finding, subject: str) -> Verdict:
    """Every process of a training comes to the save, and nothing it is named by tells the ranks apart."""
    path = finding.span.path
    position, names, parameters = subject.split("|")
    call = next((one for one in context.project.flow(path).calls if one.position == position), None)
    if call is None or context.project.is_test(path):
        return Verdict(False)
    ranks = context.ranks
    if ranks.named_by_rank_here(path, names.split()):
        return Verdict(False)
    for way in ranks.ways(path, call):
        # The texts of all trainings are read for this: to most saves no way leads.
        if ranks.named_by_rank(path, names.split()):
            return Verdict(False)
        if way.last is None:
            return Verdict(True, args=(("where", _name(path)),))
        caller, last = way.last
        if parameters and ranks.passes_rank(caller, last):
            continue
        line = int(last.position.partition(":")[0])
        note = "every rank reaches this call and saves"
        return Verdict(True, (Related(context.line_span(caller, line), note),), (("where", _name(way.start[0])),))
    return Verdict(False)


def _load_default_stands(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The file is no test, and no file of the project puts a function of its own in the place of torch.load."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    return Verdict(not project.any_skim(project.plain, "replaces_load"))


def _load_has_an_origin(context: Context, finding: Finding, position: str) -> Verdict:
    """Always true; a file of the project's own lowers the finding to information, one from outside is named."""
    path = finding.span.path
    origin = context.load_origins.of(path, position)
    if origin.fetched:
        return Verdict(True, args=tuple(from_outside(origin.fetched).items()))
    if origin.written is not None:
        where, line = origin.written
        related = Related(context.line_span(where, line), "the project writes the file here")
        return Verdict(True, (related,), tuple(of_the_project(located(where, line, path)).items()), level=Severity.INFO)
    if origin.resumes:
        return Verdict(True, args=tuple(of_the_project("").items()), level=Severity.INFO)
    return Verdict(True)


def _callers_leave_out(context: Context, finding: Finding, subject: str) -> Verdict:
    """All calls of a function (before the bar) are known, and none of them passes any of some keywords."""
    scope, _, names = subject.partition("|")
    calls = known_callers(context.calls, finding.span.path, scope)
    return Verdict(bool(calls) and all(_leaves_out(context, path, call.position, names.split()) for path, call in calls))


def _leaves_out(context: Context, path: str, position: str, names: list[str]) -> bool:
    data = context.project.data(path)
    return leaves_out(data, start_of(data, position), names)


def _name(path: str) -> str:
    return quoted(path.rpartition("/")[2])


QUESTIONS: dict[str, Question] = {
    "every-rank-saves": _every_rank_saves,
    "callers-leave-out": _callers_leave_out,
    "load-default-stands": _load_default_stands,
    "load-has-an-origin": _load_has_an_origin,
}
