"""The questions of the evaluation rules."""

from __future__ import annotations

import re

from ldlm_lint.concepts.steps import Steps
from ldlm_lint.model import Finding, Related, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Function
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.text import offset_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.testfiles import is_started

_DIFFERENTIATES = Trait(lazily(rb"(?:autograd\.|(?<![\w.]))grad[ \t]*\("), (b"autograd",), code=True)
# The gradient of a penalty is not an output of a model.
_PENALTY = lazily(r"loss|penalt|regulari|criterion|objective", re.I)


def is_unit_test(project: Project, path: str) -> bool:
    """A file of a test suite that is not started directly."""
    inside = "/tests/" in path.removeprefix(project.root)
    return project.is_test(path) and (inside or not is_started(project.data(path)))


def _evaluation_records_gradients(context: Context, finding: Finding, subject: str) -> Verdict:
    """One of the runs of a model is recorded: no caller turns gradients off, and no code near it computes gradients."""
    project, path = context.project, finding.span.path
    if path not in project.files or is_unit_test(project, path):
        return Verdict(False)
    recording = context.recording
    for one in subject.split(";"):
        scope, loops, needs, helper, root, bases = one.split("|")
        if any(project.resolve(path, base) is None for base in bases.split(",") if base):
            continue
        # The last question reads the most files.
        related: tuple[Related, ...] = ()
        if needs and needs != "apart":
            found = recording.caller_that(path, scope, set(needs.split(",")), root)
            related = (Related(context.line_span(*found), "this call evaluates the model"),) if found else ()
            stands = found is not None
        else:
            stands = not recording.is_off(path, scope, model=root) and not (needs and _learns_with(context, path, scope))
        if not stands or (helper and not recording.runs(path, helper, root)):
            continue
        if not recording.differentiates_in(path, scope, {int(line) for line in loops.split(",") if line}) and not _is_made_frozen(
            context, path, scope, root
        ):
            if _models_differentiate(context, path, scope) or _stands_in_step(context, finding, loops):
                return Verdict(False)
            return Verdict(True, related, args=(("model", root),), to=_place_of(project, finding, helper))
    return Verdict(False)


def _stands_in_step(context: Context, finding: Finding, loops: str) -> bool:
    """Whether a run is part of a training step, with the backward pass anywhere: in a hook that a runner calls by
    name.
    """
    module = context.view.module(finding.span.path)
    if module is None:
        return False
    steps, place = context.view[Steps], context.view.place_at(module, finding.span.start)
    function = Function(context.view, context.view.function_at(module, place))
    lines = {str(loop.line) for loop in steps.step_loops(function)}
    return steps.is_whole(function) or not lines.isdisjoint(loops.split(","))


def _models_differentiate(context: Context, path: str, scope: str) -> bool:
    """Whether a model near a function has gradients among its outputs, such as forces: without a graph its ``forward``
    fails.

    Models imported by the function's file and its callers' files count as near.
    """
    places = context.calls.sketch.coming_to(_DIFFERENTIATES)
    found = {one for one, name in places if _is_forward(name) and not context.project.is_test(one)}
    if not found:
        return False
    callers = {caller for caller, _ in context.calls.callers(path, scope)} if scope else set()
    return not context.project.reach_of_all([path, *callers]).isdisjoint(found)


def _is_forward(scope: str) -> bool:
    owner, _, name = scope.rpartition(".")
    return bool(owner) and name == "forward" and _PENALTY.search(owner) is None


def _is_made_frozen(context: Context, path: str, scope: str, root: str) -> bool:
    """Whether a model, a variable or an attribute of the object, is of a class whose constructor freezes it."""
    from ldlm_lint.project.frozen_classes import is_made_frozen
    from ldlm_lint.project.makers import Makers
    from ldlm_lint.python.slots import Slot

    owner, _, name = root.rpartition(".")
    slot = Slot("attr", "", name) if owner else Slot("var", scope, name)
    return is_made_frozen(Makers(context.project, context.calls), context.models, path, slot)


def _place_of(project: Project, finding: Finding, helper: str) -> Span | None:
    """The confirmed run, if it is not the first one that the finding names."""
    start = offset_of(project.data(finding.span.path), helper) if helper else finding.span.start
    return next((one.span for one in finding.related if one.span.start == start and start > finding.span.start), None)


def _learns_with(context: Context, path: str, scope: str) -> bool:
    """Whether a function runs in every step of a training."""
    return context.steps.every_step(path, scope, ()) is not None


QUESTIONS: dict[str, Question] = {"evaluation-records-gradients": _evaluation_records_gradients}
