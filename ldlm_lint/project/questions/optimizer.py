"""The question about optimizers that configurations choose options for."""

from __future__ import annotations

from collections.abc import Collection

from ldlm_lint.concepts.roles import Roles
from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _optimizer_trains_on_cuda(context: Context, finding: Finding, subject: str) -> Verdict:
    """The call that takes the option belongs to a training that steps it on a GPU."""
    view = context.view
    optimizer = view.call_written_at(finding.span.path, subject.rpartition(" ")[2])
    if optimizer is None or not view[Roles].steps_on_cuda(optimizer) or view[Roles].may_be_clipped_by_lightning(optimizer):
        return Verdict(False)
    read = view[Roles].read_scaled_gradients(optimizer)
    return Verdict(True) if read is None else Verdict(True, (read.related,), shown=read.why)


def fusable_in(context: Context, path: str, trainers: Collection[str]) -> Verdict:
    """The finding is confirmed; its fix is only shown if a training reads gradients after a scaler's step: a fused
    optimizer leaves them scaled."""
    read = context.view.trainings.read_scaled_gradients(path, trainers)
    return Verdict(True) if read is None else Verdict(True, (read.related,), shown=read.why)


QUESTIONS: dict[str, Question] = {
    "optimizer-trains-on-cuda": _optimizer_trains_on_cuda,
}
