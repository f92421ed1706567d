"""What findings ask of the launches of a project: which programs they start, with what."""

from __future__ import annotations

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.programs import Given, Program
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _passes_to_training(context: Context, finding: Finding, subject: str) -> Verdict:
    """Whether a value that a script passes to another one reaches a training there, under the name ``subject``."""
    name = subject.rpartition(".")[2]
    for program in context.launches.programs:
        if not any(call.path == finding.span.path for call in program.via) or not _trains(context, program):
            continue
        found = [one for one in program.arguments if one.keys[-1:] == (name,)]
        if found and _comes_from(found[-1], finding):
            return Verdict(True, (Related(program.span, "it reaches the training that is launched here"),))
    return Verdict(False)


def _trains(context: Context, program: Program) -> bool:
    project = context.project
    return program.entry is not None and not project.training_files.isdisjoint(project.reach(program.entry))


def _comes_from(given: Given, finding: Finding) -> bool:
    """Whether a value of an argument is written at the place of a finding."""
    place = finding.span
    return any(
        one.span.path == place.path and place.start <= one.span.start and one.span.end <= place.end
        for one in given.values or ()
    )


QUESTIONS: dict[str, Question] = {"script-passes-to-training": _passes_to_training}
