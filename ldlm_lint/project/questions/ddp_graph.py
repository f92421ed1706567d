"""The questions of the rules about DDP's graph and `no_sync`."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.files.edited import edit_key
from ldlm_lint.model import Applicability, Finding, Fix, Related
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.reentrant import (
    CHECKPOINTS,
    as_non_reentrant,
    enables_reentrant,
    has_old_transformers,
    is_left_off,
    may_enable_reentrant,
    reentrant_calls,
    switched_on,
)
from ldlm_lint.project.training import trainings_of
from ldlm_lint.python.names import is_named
from ldlm_lint.python.slots import Slot
from ldlm_lint.source import Kind, Source
from ldlm_lint.vocabulary.segments import FLAG, NON_REENTRANT
from ldlm_lint.vocabulary.wrappers import DDP
from ldlm_lint.wording import located


def _slots(text: str) -> list[Slot]:
    return [Slot(*one.split("|")) for one in text.split(";") if one.count("|") == 3]


def _no_sync_on_wrap(context: Context, finding: Finding, line: str) -> Verdict:
    """A training that uses the wrap at a line runs a backward pass of the same model under ``no_sync()`` first."""
    view, path = context.view, finding.span.path
    for wrapper in view.calls(DDP):
        if view.path(wrapper.module) == path and str(wrapper.line) == line:
            scope = view[Reduction].scope_of_first_step(wrapper)
            if scope is not None:
                said = f"`no_sync()` at {located(view.path(scope.module), scope.line, path)}"
                return Verdict(True, (Related(scope.line_span, "gradients stay local here"),), (("accumulation", said),))
    return Verdict(False)


def _model_checkpoints_reentrantly(context: Context, finding: Finding, slots: str) -> Verdict:
    """A class of the model calls torch's ``checkpoint`` in its reentrant form, or the model is configured to."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    # The tree of a file is built only where its text may contain the switch.
    found = enables_reentrant(project, context.trees.of(path), _slots(slots)) if may_enable_reentrant(project, path) else None
    if found is not None:
        return _reentrant_at(context, path, [(path, found)])
    calls = []
    checkpointing, near = context.reentrant, {path, *trainings_of(project, path)}
    for part in context.models.parts(path, _slots(slots), checkpointing) if checkpointing else ():
        node = context.models.definition(part) if part.path in checkpointing else None
        if node is not None:
            calls += [(part.path, call) for call in reentrant_calls(node) if not is_left_off(project, call, near - {part.path})]
    return _reentrant_at(context, path, calls) if calls else Verdict(False)


def _program_checkpoints_reentrantly(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Every call of a program that reads the file, or is launched here, and that switches checkpointing on makes it reentrant."""
    project, place = context.project, finding.span
    programs = context.launches.of_config(place.path)
    entries = {one.entry for one in programs if one.entry is not None} or context.launches.entries_at(place)
    files = sorted({path for entry in entries for path in project.reach(entry) if may_enable_reentrant(project, path)})
    calls = [(path, call, reentrant) for path in files for call, reentrant in switched_on(project, context.trees.of(path))]
    if not calls or not all(reentrant for _, _, reentrant in calls):
        return Verdict(False)
    return _reentrant_at(context, place.path, [(path, call) for path, call, _ in calls])


def _reentrant_at(context: Context, own: str, calls: list[tuple[str, nodes.Call]]) -> Verdict:
    """The finding with the first of the reentrant checkpoints, and the fix that turns all of them, if all can be."""
    path, call = calls[0]
    related = Related(context.line_span(path, call.lineno or 1), "this checkpoint is reentrant")
    edits = [as_non_reentrant(_source(context, where), one) for where, one in calls]
    written = tuple(sorted({edit for edit in edits if edit is not None}, key=edit_key))
    needs = (tables.interface(FLAG),) if any(is_named(one.func, CHECKPOINTS) for _, one in calls) else ()
    fix = Fix("pass use_reentrant=False to the checkpoint", written, Applicability.UNSAFE, NON_REENTRANT, needs=needs)
    where = f"the reentrant checkpoint at {located(path, call.lineno or 1, own)}"
    return Verdict(True, (related,), (("where", where),), fix=fix if None not in edits else None)


def _source(context: Context, path: str) -> Source:
    return Source.from_bytes(path, context.project.data(path), Kind.PYTHON)


def _transformers_is_old(context: Context, _finding: Finding, _subject: str) -> Verdict:
    return Verdict(has_old_transformers(context.project))


QUESTIONS: dict[str, Question] = {
    "no-sync-on-wrap": _no_sync_on_wrap,
    "model-checkpoints-reentrantly": _model_checkpoints_reentrantly,
    "program-checkpoints-reentrantly": _program_checkpoints_reentrantly,
    "transformers-is-old": _transformers_is_old,
}
