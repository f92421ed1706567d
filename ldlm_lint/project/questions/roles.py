"""What every rule may ask: whether code trains, where it runs, how often."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import runs_many_ranks, trains_on_cuda
from ldlm_lint.python.names import published


def _file_trains(context: Context, finding: Finding, _subject: str) -> Verdict:
    project = context.project
    return Verdict(finding.span.path in project.training_files)


def _model_trains(context: Context, finding: Finding, model: str) -> Verdict:
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    for trainer in project.trainers_of(path):
        if trainer == path and path not in project.training_files and not context.runs_training(path):
            # A model's own file may reach some training through a library that it imports, which trains something else.
            continue
        reach = project.reach(trainer)
        names = {model, *(name for one, name in _subclasses(context, model) if one in reach)}
        if any(not _builders(context, name).isdisjoint(reach) for name in names):
            return Verdict(True)
    return Verdict(False)


def _subclasses(context: Context, model: str) -> frozenset[tuple[str, str]]:
    """The classes, with their files, that name a class as one of their bases."""
    if model not in context.subclasses:
        context.subclasses[model] = frozenset(_find_subclasses(context.project, model))
    return context.subclasses[model]


def _find_subclasses(project: Project, model: str) -> Iterator[tuple[str, str]]:
    derived = re.compile(rb"^class[ \t]+(\w+)\([^)]*(?<!\w)%s\b(?![ \t]*=)" % re.escape(model).encode(), re.M)
    for path in project.files:
        if model.encode() in (text := project.data(path)):
            yield from ((path, name.decode()) for name in derived.findall(text))


def _builders(context: Context, model: str) -> frozenset[str]:
    """The files that build a class."""
    if model not in context.builders:
        project = context.project
        context.builders[model] = frozenset(path for path in project.files if _builds(project, path, model))
    return context.builders[model]


def _builds(project: Project, path: str, model: str) -> bool:
    """Whether a file calls a class, one of its ``from_…`` constructors, or keeps it among others to be called."""
    if model in project.skim(path).called:
        return True
    name = re.escape(model).encode()
    data = project.data(path)
    return model.encode() in data and re.search(rb"(?<!\w)%s\.from_\w+\(|[\"'][ \t]*:[ \t]*(?:\w+\.)*%s[ \t]*[,}\n]" % (name, name), data) is not None


def _stands_in_training_loop(context: Context, finding: Finding, place: str) -> Verdict:
    path = finding.span.path
    if context.project.is_test(path):
        return Verdict(False)
    scope, _, loops = place.partition("|")
    found = context.calls.in_training_loop(path, scope, [int(line) for line in loops.split(",") if line])
    if found is None:
        return Verdict(False)
    return Verdict(True, (Related(context.line_span(*found), "in this training loop"),))


def _belongs_to_training(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A training is reached from the same files as this one; a script that only predicts reaches none."""
    path = finding.span.path
    return Verdict(not context.project.is_test(path) and bool(context.project.trainers_of(path)))


def _stands_outside_tests(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(not context.project.is_test(finding.span.path))


def _trains_on_cuda(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(trains_on_cuda(context.project, finding.span.path))


def _runs_many_ranks(context: Context, finding: Finding, _subject: str) -> Verdict:
    return Verdict(runs_many_ranks(context.project, finding.span.path))


def _runs_in_every_step(context: Context, finding: Finding, place: str) -> Verdict:
    """A place runs in every step of a training that may run on several ranks."""
    path, steps = finding.span.path, context.steps
    scope, _, loops = place.partition("|")
    if context.project.is_test(path) or not steps.distributed(path):
        return Verdict(False)
    found = steps.every_step(path, scope, [int(line) for line in loops.split(",") if line])
    if found is None:
        return Verdict(False)
    where = f"{found[0].rpartition('/')[2]}:{found[1]}"
    return Verdict(True, (Related(context.line_span(*found), "this runs in every step"),), (("where", where),))


def _module_hands_on(context: Context, finding: Finding, names: str) -> Verdict:
    """A module of the project imports the public name that the finding rests on, and nothing else under its last name."""
    written, _, meant = names.partition("|")
    found = context.project.resolve(finding.span.path, written)
    last = meant.rpartition(".")[2]
    if found is None or found[1] != last or last in context.project.skim(found[0]).defined:
        return Verdict(False)
    origins = [one for one in context.project.skim(found[0]).imports if one.rpartition(".")[2] == last]
    return Verdict(bool(origins) and all(published(one) == meant for one in origins))


QUESTIONS: dict[str, Question] = {
    "module-hands-on": _module_hands_on,
    "file-trains": _file_trains,
    "model-trains": _model_trains,
    "stands-in-training-loop": _stands_in_training_loop,
    "belongs-to-training": _belongs_to_training,
    "stands-outside-tests": _stands_outside_tests,
    "trains-on-cuda": _trains_on_cuda,
    "runs-many-ranks": _runs_many_ranks,
    "runs-in-every-step": _runs_in_every_step,
}
