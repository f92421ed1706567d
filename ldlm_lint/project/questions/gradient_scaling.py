"""The questions of the rules about scaled gradients and about fused optimizers, which unscale themselves."""

from __future__ import annotations

import re

from ldlm_lint.concepts.gradient_scales import scales_gradients
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.lightning_trainers import (
    clips_mixed_precision,
    lightning_trainers,
)
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.skim import without_comments

_RESTORES = Trait(lazily(rb"\boptim\w*(?:\[[^\]]*\])?\.load_state_dict\("), (b"load_state_dict",), code=True)
_REFUSES = Trait(lazily(rb"\[[\"']fused[\"']\]\s*="), (b"fused",))


def _loss_is_divided_nowhere(context: Context, finding: Finding, name: str) -> Verdict:
    """No other file of the training divides by the number of micro-batches, or by a name for it, and no step scales gradients."""
    if _steps_scale_gradients(context, finding):
        return Verdict(False)
    words = rb"accum|micro|num_items" + (b"|" + re.escape(name).encode() + rb"\b" if name else b"")
    divides = re.compile(rb"(?:/=?|\bdiv_?\(|true_divide\()[ \t]*\(?[ \t]*[\w.\[\]\"']*(?:" + words + rb")", re.I)
    counts = re.compile(rb"\blen\(|steps|ceil|total|num_|n_|size|samples|tokens|epoch|//", re.I)
    own = finding.span.path
    for path in trainings_of(context.project, own) - {own}:
        code = without_comments(context.project.data(path))
        for match in divides.finditer(code):
            start = code.rfind(b"\n", 0, match.start()) + 1
            if not counts.search(code[start : match.start()]):
                return Verdict(False)
    return Verdict(True)


def _steps_scale_gradients(context: Context, finding: Finding) -> bool:
    """Whether a function that the steps of the same programs reach multiplies or divides gradients themselves."""
    view = context.view
    module = view.module(finding.span.path)
    if module is None:
        return False
    near = view.program.together.programs_of(module)
    reached = (function for function in view[Reach].functions if function.module.index in near)
    return any(map(scales_gradients, reached))


def _lightning_clips_mixed(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A Lightning Trainer that uses the file's module clips gradients in mixed precision, both set by literals."""
    for one, line, call in lightning_trainers(context.project, finding.span.path):
        if clips_mixed_precision(call):
            return Verdict(True, (Related(context.line_span(one, line), "this Trainer clips gradients in mixed precision"),))
    return Verdict(False)


def _optimizer_state_is_restored(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A file of the training loads an optimizer's state, and none sets ``fused`` again."""
    project = context.project
    files = trainings_of(project, finding.span.path)
    if project.any_shows(files, _REFUSES):
        return Verdict(False)
    path = next((one for one in sorted(files) if project.any_shows((one,), _RESTORES)), None)
    if path is None:
        return Verdict(False)
    data = project.data(path)
    place = _RESTORES.pattern.search(data)
    line = data.count(b"\n", 0, place.start()) + 1 if place else 1
    return Verdict(True, (Related(context.line_span(path, line), "the flags of the checkpoint replace those of the constructor"),))


QUESTIONS: dict[str, Question] = {
    "loss-is-divided-nowhere": _loss_is_divided_nowhere,
    "lightning-clips-mixed": _lightning_clips_mixed,
    "optimizer-state-is-restored": _optimizer_state_is_restored,
}
