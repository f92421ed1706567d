"""The questions of the schedule rules: the origin of schedulers, and the steps in calls to other files."""

from __future__ import annotations

import re

from ldlm_lint.code.table import COLUMNS
from ldlm_lint.concepts.schedules import Schedules
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call
from ldlm_lint.project.makers import Makers
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.slots import Slot

_TORCH = lazily(r"^torch\.optim\.lr_scheduler\.|^(transformers|diffusers)\..*(schedule|scheduler)", re.I)
_OTHER = lazily(r"^timm\.|ReduceLROnPlateau|^paddle\.|^tensorflow\.")
_BASE = lazily(r"LRScheduler\b|(^|\.)_?\w+LR$")


def _schedules_learning_rate(context: Context, finding: Finding, subject: str) -> Verdict:
    """No call that may have made the scheduler is another library's or a class not derived from torch's."""
    which, _, slots = subject.partition("|")
    makers = Makers(context.project, context.calls)
    known: set[str] = set()
    for text in filter(None, slots.split(";")):
        for path, call in makers.calls_behind(finding.span.path, Slot(*text.split(":")[:3])):
            known.add(_origin(makers, path, call))
    if "prepared" in known and which == "plain":
        return Verdict(False)
    return Verdict("torch" in known or "other" not in known)


def _origin(makers: Makers, path: str, call: CallSite) -> str:
    name = call.callee.name
    if name.rpartition(".")[2] == "prepare" or name == "deepspeed.initialize":
        return "prepared"
    bases = makers.bases(path, call)
    if bases is not None:
        return "torch" if any(_BASE.search(base) for base in bases) else "other"
    if call.callee.kind != "import":
        return ""
    return "other" if _OTHER.search(name) else "torch" if _TORCH.search(name) else ""


def _call_steps_optimizer(context: Context, finding: Finding, position: str) -> Verdict:
    return _call_steps(context, finding, position, optimizer=True)


def _call_steps_schedule(context: Context, finding: Finding, position: str) -> Verdict:
    return _call_steps(context, finding, position, optimizer=False)


def _call_steps(context: Context, finding: Finding, position: str, *, optimizer: bool) -> Verdict:
    """A function that the call reaches steps an optimizer, or a schedule."""
    view = context.view
    module = view.module(finding.span.path)
    line, _, column = position.partition(":")
    call = None if module is None else view.call_at(module, int(line) << COLUMNS | int(column))
    found = None if module is None or call is None else view[Schedules].stepping_below(Call(view, module.base | call), optimizer=optimizer)
    if found is None:
        return Verdict(False)
    return Verdict(True, (Related(found.spot.line_span, f"the {'optimizer' if optimizer else 'scheduler'} steps here"),))


def _is_called_in_a_loop(context: Context, finding: Finding, scope: str) -> Verdict:
    return Verdict(context.calls.repeated(finding.span.path, scope))


QUESTIONS: dict[str, Question] = {
    "schedules-learning-rate": _schedules_learning_rate,
    "call-steps-optimizer": _call_steps_optimizer,
    "call-steps-schedule": _call_steps_schedule,
    "is-called-in-a-loop": _is_called_in_a_loop,
}
