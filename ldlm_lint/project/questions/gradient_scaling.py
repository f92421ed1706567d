"""The question of the rule about losses that are not divided by the number of micro-batches."""

from __future__ import annotations

import re

from ldlm_lint.concepts.gradient_scales import scales_gradients
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.python.skim import without_comments


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


QUESTIONS: dict[str, Question] = {
    "loss-is-divided-nowhere": _loss_is_divided_nowhere,
}
