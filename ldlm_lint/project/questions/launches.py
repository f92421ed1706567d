"""What findings ask of the launches of a project: which programs they start, with what."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.traits import Trait

if TYPE_CHECKING:
    from ldlm_lint.project.programs import Given, Program

_RANK_OPTION = Trait(re.compile(rb"[\"']--local[-_]rank[\"']"), (b"--local-rank", b"--local_rank"))
# By itself, or by what reads it: the arguments of transformers, accelerate, DeepSpeed's and Lightning's set-up.
_READS_OPTION = lazily(rb"(?<!self)\.local_rank\b(?![ \t]*=(?!=))")
_SETS_OPTION = lazily(rb"(?<!self)\.local_rank[ \t]*=(?!=)|setattr\(|set_defaults\(")
_RANK_VARIABLE = Trait(
    re.compile(
        rb"LOCAL_RANK|TrainingArguments|HfArgumentParser|\bAccelerator\(|\bPartialState\(|init_distributed\b|get_node_local_rank|\bFabric\("
    ),
    (
        *(b"LOCAL_RANK", b"TrainingArguments", b"HfArgumentParser", b"Accelerator(", b"PartialState(", b"init_distributed"),
        *(b"get_node_local_rank", b"Fabric("),
    ),
)


def _passes_to_training(context: Context, finding: Finding, subject: str) -> Verdict:
    """Whether a value that a script passes to another one reaches a training there, under the name ``subject``."""
    name = subject.rpartition(".")[2]
    for program in context.launches.programs:
        if not any(call.path == finding.span.path for call in program.via) or not _trains(context, program):
            continue
        found = [one for one in program.arguments if one.keys[-1:] == (name,)]
        if found and _comes_from(found[-1], finding):
            return Verdict(True, (Related(program.span, "this launch gets the value"),))
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
    if not _may_take_rank_as_argument(context):
        # The launches of a large project are read only where an answer hangs on them.
        return Verdict(True)
    entries = context.launches.entries_at(finding.span)
    return Verdict(True, withdraws=any(_takes_rank_as_argument(context, entry) for entry in sorted(entries)))


def _takes_rank_as_argument(context: Context, entry: str) -> bool:
    """Whether a program has an option for its rank, and nothing that looks for it in the environment."""
    project = context.project
    files = project.reach(entry)
    if not project.any_shows(files, _RANK_OPTION):
        return False
    return not project.any_shows(files, _RANK_VARIABLE) or _uses_its_option(context, entry)


def _uses_its_option(context: Context, entry: str) -> bool:
    """Whether a program reads its option itself, and nobody puts what the environment says in its place."""
    project = context.project
    data = project.data(entry)
    if not project.any_shows((entry,), _RANK_OPTION) or b"LOCAL_RANK" in data or _READS_OPTION.search(data) is None:
        return False
    return not any(_SETS_OPTION.search(project.data(one)) for one in project.reach(entry))


def _may_take_rank_as_argument(context: Context) -> bool:
    """Whether there is such a program at all, started or not: it is a file that leads to the option by its imports."""
    key = ("takes-rank-as-argument", "")
    if key not in context.answers:
        project = context.project
        programs = {one for path in project.showing(_RANK_OPTION) for one in project.importers(path)}
        context.answers[key] = any(_takes_rank_as_argument(context, one) for one in sorted(programs))
    return context.answers[key]


QUESTIONS: dict[str, Question] = {
    "script-passes-to-training": _passes_to_training,
    "program-needs-no-rank-argument": _needs_no_rank_argument,
}
