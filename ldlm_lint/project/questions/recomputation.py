"""The question about checkpointed segments: whether a backward pass needs them."""

from __future__ import annotations

from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.model import Finding
from ldlm_lint.program.handles import Call
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _checkpoint_is_recorded(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Always true: without a backward pass a checkpointed segment only runs, which implementation it chooses matters
    little."""
    view = context.view
    module = view.module(finding.span.path)
    call = view.call_at(module, view.place_at(module, finding.span.start)) if module is not None else None
    if module is None or call is None or view[RecordedRuns].is_recorded(Call(view, module.base | call)):
        return Verdict(True)
    return Verdict(True, minor="the model around it runs only where gradients are off")


QUESTIONS: dict[str, Question] = {"checkpoint-is-recorded": _checkpoint_is_recorded}
