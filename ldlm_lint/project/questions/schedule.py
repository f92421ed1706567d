"""The question of the schedule rules: the origin of schedulers."""

from __future__ import annotations

import re

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.project.makers import Makers
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.slots import Slot

_TORCH = lazily(r"^torch\.optim\.lr_scheduler\.|^(transformers|diffusers)\..*(schedule|scheduler)", re.I)
_OTHER = lazily(r"^timm\.|ReduceLROnPlateau|^paddle\.|^tensorflow\.")
_BASE = lazily(r"LRScheduler\b|(^|\.)_?\w+LR$")


def _schedules_learning_rate(context: Context, finding: Finding, subject: str) -> Verdict:
    """No call that may have made the scheduler is another library's or a class not derived from torch's."""
    makers = Makers(context.project, context.calls)
    known: set[str] = set()
    for text in filter(None, subject.split(";")):
        for path, call in makers.calls_behind(finding.span.path, Slot(*text.split(":")[:3])):
            known.add(_origin(makers, path, call))
    if "prepared" in known:
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


QUESTIONS: dict[str, Question] = {"schedules-learning-rate": _schedules_learning_rate}
