"""What the rules of schedule ask of the project: whose schedulers these are, and what a call to another file steps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.makers import Makers
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.python.flow import CallSite, Function
from ldlm_lint.python.slots import Slot

_DEPTH = 3
_HOLDERS = 12
_TORCH = lazily(r"^torch\.optim\.lr_scheduler\.|^(transformers|diffusers)\..*(schedule|scheduler)", re.I)
_OTHER = lazily(r"^timm\.|ReduceLROnPlateau|^paddle\.|^tensorflow\.")
_BASE = lazily(r"LRScheduler\b|(^|\.)_?\w+LR$")
_STEPS_OPTIMIZER = re.compile(r"[\w.\[\]'\"]*(?:optim|\bopt\b|\bopt_|_opt\b|scaler)[\w\[\]'\"]*\.step\(", re.I)
_STEPS_SCHEDULE = re.compile(r"[\w.\[\]'\"]*sched[\w\[\]'\"]*\.step\(\s*\)", re.I)
_LATER = lazily(rb"\bif\b.*(?:epoch|iter|step|warm|count|idx)\w*\W.*(?:[<>%]|!=)|\bif\b.*[<>%].*(?:epoch|iter|step|warm)", re.I)


def _schedules_learning_rate(context: Context, finding: Finding, subject: str) -> Verdict:
    """No call that may have made the scheduler is another library's or a class that torch's has no part in."""
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
    return _call_steps(context, finding, position, _STEPS_OPTIMIZER, "the optimizer steps here")


def _call_steps_schedule(context: Context, finding: Finding, position: str) -> Verdict:
    return _call_steps(context, finding, position, _STEPS_SCHEDULE, "the scheduler steps here")


def _call_steps(context: Context, finding: Finding, position: str, what: re.Pattern[str], note: str) -> Verdict:
    path = finding.span.path
    for call in context.project.flow(path).calls:
        if call.position == position:
            found = _stepping(context, path, call, what)
            if found is not None:
                return Verdict(True, (Related(context.line_span(*found), note),))
    return Verdict(False)


def _stepping(context: Context, path: str, call: CallSite, what: re.Pattern[str], depth: int = 0) -> tuple[str, int] | None:
    """Where the function steps that a call goes to."""
    for where, function in _targets(context, path, call):
        inside = [one for one in context.project.flow(where).calls if one.scope == function.scope]
        for one in inside:
            line, _, column = one.position.partition(":")
            if what.match(_text(context, where, int(line), int(column))) and not _waits(context, where, int(line)):
                return where, int(line)
        for one in inside if depth < _DEPTH else ():
            found = _stepping(context, where, one, what, depth + 1)
            if found is not None:
                return found
    return None


def _targets(context: Context, path: str, call: CallSite) -> Iterator[tuple[str, Function]]:
    found = context.calls.targets(path, call.callee)
    yield from found
    name = call.callee.name
    if found or call.callee.kind != "method" or len(name) < 6:
        return
    # Models that a registry builds by name are imported by nobody: any of the project's may be meant.
    project = context.project
    holders = [one for one in sorted(project.files) if name in project.skim(one).defined and not project.is_test(one)]
    for holder in holders[:_HOLDERS]:
        yield from ((holder, one) for one in project.flow(holder).functions if one.scope.endswith(f".{name}"))


def _text(context: Context, path: str, line: int, column: int) -> str:
    lines = context.project.data(path).splitlines()
    return lines[line - 1][column:].decode(errors="replace") if 0 < line <= len(lines) else ""


def _waits(context: Context, path: str, number: int) -> bool:
    """Whether a line stands under a test for a later step or epoch: ``if iteration > 1``."""
    lines = context.project.data(path).splitlines()
    indent = _indent(lines[number - 1])
    while number > 1 and indent > 0:
        number -= 1
        line = lines[number - 1]
        if line.strip() and _indent(line) < indent:
            indent = _indent(line)
            if _LATER.search(line):
                return True
    return False


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _is_called_in_a_loop(context: Context, finding: Finding, scope: str) -> Verdict:
    return Verdict(context.calls.repeated(finding.span.path, scope))


QUESTIONS: dict[str, Question] = {
    "schedules-learning-rate": _schedules_learning_rate,
    "call-steps-optimizer": _call_steps_optimizer,
    "call-steps-schedule": _call_steps_schedule,
    "is-called-in-a-loop": _is_called_in_a_loop,
}
