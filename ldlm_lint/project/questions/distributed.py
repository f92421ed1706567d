"""The questions about process groups, DDP and the environment."""

from __future__ import annotations

import re

from ldlm_lint.model import Finding
from ldlm_lint.project.known_callers import starting_files
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.sharding import shards_with_fsdp
from ldlm_lint.source import Kind

_DEEPSPEED = re.compile(rb"deepspeed", re.I)
# `$NAME`, `${NAME:-5}` in a line that does more than print it.
_EXPANSION = rb"^(?![ \t]*(?:#|echo\b|printf\b))[^\n]*\$\{?%s(?!\w)"


def _variable_is_unread(context: Context, finding: Finding, name: str) -> Verdict:
    """No Python of the project reads the variable, nor does a script in the same shell or one that may get a
    container's environment."""
    project, path = context.project, finding.span.path
    if context.reads_variable(name):
        return Verdict(False)
    if project.others.get(path) in (None, Kind.SHELL):
        return Verdict(path not in project.others or not context.sourcing.reads(path, name))
    expansion = re.compile(_EXPANSION % re.escape(name).encode(), re.M)
    return Verdict(not any(expansion.search(project.data(one)) for one in project.others if one != path))


def _wrapped_model_trains(context: Context, finding: Finding, scope: str) -> Verdict:
    """The file computes gradients, directly or through callees, or an importing file does.

    If all callers of the function are known, only the calling files count.
    """
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    starts = starting_files(context.calls, path, scope)
    near = {one for start in starts for one in (start, *project.trainers_of(start))}
    return Verdict(any(context.runs_training(one) for one in sorted(near)))


def _accumulation_is_not_divided(context: Context, _finding: Finding, entry: str) -> Verdict:
    """No code of a launched file, or of the project if that is unknown, divides the steps by the world size."""
    return Verdict(not context.divides_accumulation(entry))


def _shards_with_fsdp(context: Context, finding: Finding, entries: str) -> Verdict:
    return Verdict(shards_with_fsdp(context.project, finding.span.path, entries))


QUESTIONS: dict[str, Question] = {
    "environment-variable-unread": _variable_is_unread,
    "wrapped-model-trains": _wrapped_model_trains,
    "accumulation-is-not-divided": _accumulation_is_not_divided,
    "shards-with-fsdp": _shards_with_fsdp,
}
