"""What findings ask of the launches of a project: which programs they start, with what."""

from __future__ import annotations

import re

from ldlm_lint.model import Finding, Related
from ldlm_lint.project.programs import Given, Program
from ldlm_lint.project.questions.base import Context, Question, Verdict

_RANK_OPTION = re.compile(rb"[\"']--local[-_]rank[\"']")
# By itself, or by what reads it: the arguments of transformers, accelerate, DeepSpeed's and Lightning's set-up.
_RANK_VARIABLE = re.compile(
    rb"LOCAL_RANK|TrainingArguments|HfArgumentParser|\bAccelerator\(|\bPartialState\(|init_distributed\b|get_node_local_rank|\bFabric\("
)


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


def _needs_no_rank_argument(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The finding stands in any case; its fix does not where a program takes its rank only as an argument."""
    place = finding.span
    programs = (one for one in context.launches.programs if one.span.path == place.path)
    entries = [one.entry for one in programs if one.span.start <= place.start < one.span.end and one.entry is not None]
    return Verdict(True, withdraws=any(_takes_rank_as_argument(context, entry) for entry in entries))


def _takes_rank_as_argument(context: Context, entry: str) -> bool:
    """Whether a program has an option for its rank, and nothing that looks for it in the environment."""
    files = [context.project.data(one) for one in context.project.reach(entry)]
    return any(map(_RANK_OPTION.search, files)) and not any(map(_RANK_VARIABLE.search, files))


QUESTIONS: dict[str, Question] = {
    "script-passes-to-training": _passes_to_training,
    "program-needs-no-rank-argument": _needs_no_rank_argument,
}
