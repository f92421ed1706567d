"""Questions of findings about a project's launches: the started programs and their arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint.concepts.local_ranks import LocalRanks
from ldlm_lint.model import Finding, Related
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.traits import Trait

if TYPE_CHECKING:
    from ldlm_lint.project.programs import Given, Program
_MENTIONS_OPTION = Trait(re.compile(rb"--local[-_]rank"), (b"--local_rank", b"--local-rank"))


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
    """The finding is always confirmed; its fix is withdrawn if a program gets its rank only as an argument."""
    view = context.view
    # The program of a large project is linked, and its launches are read, only if an answer depends on them.
    if not context.project.showing(_MENTIONS_OPTION) or not view[LocalRanks].is_given(view.program.live):
        return Verdict(True)
    return Verdict(True, withdraws=any(_takes_rank_as_argument(context, entry) for entry in sorted(context.launches.entries_at(finding.span))))


def _takes_rank_as_argument(context: Context, entry: str) -> bool:
    """Whether a program has an option for its rank, and no code that reads it from the environment."""
    module = context.view.module(entry)
    around = [one for path in sorted(context.project.reach(entry)) if (one := context.view.module(path)) is not None]
    return module is not None and context.view[LocalRanks].is_only_given(module, around)


QUESTIONS: dict[str, Question] = {
    "script-passes-to-training": _passes_to_training,
    "program-needs-no-rank-argument": _needs_no_rank_argument,
}
