"""Questions of findings about variables on files that set the environment of the same processes."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Finding, Fix, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.rules.environment_watchdog import HEARTBEAT, is_harmless, is_wrong_heartbeat
from ldlm_lint.shell.variables import settings
from ldlm_lint.source import Kind

_COMMENT = lazily(rb"(?:^|(?<=\s))#[^\n]*")
_TAKES_EFFECT = "in every launch of this program collectives end after %d seconds, no longer after the default of their backend"
# `NAME=5`, `NAME: "5"`, `environ["NAME"] = "5"`, and `name: NAME` above `value: 5`.
_SET = lazily(HEARTBEAT.encode() + rb"(?!\w)[\"']?\]?\s*(?:[:=,]|\bvalue\b\s*:?)\s*(?:value\s*:\s*)?[\"']?([^\s\"',;)}]*)")


def _no_heartbeat_elsewhere_is_wrong(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The finding is always confirmed; its fix is withdrawn if another file gives the same processes a wrong
    heartbeat.
    """
    project, path = context.project, finding.span.path
    if finding.fix is None:
        return Verdict(True)
    wrong = [one for one in (*project.files, *project.others) if one != path and _sets_wrong_heartbeat(context, one)]
    return Verdict(True, withdraws=bool(wrong) and context.environments.related(path, wrong))


def _sets_wrong_heartbeat(context: Context, path: str) -> bool:
    """Whether a file sets the heartbeat timeout to a value that is unknown, too short or overflows."""
    key = ("sets-wrong-heartbeat", path)
    if key not in context.answers:
        context.answers[key] = _find_wrong_heartbeat(context, path)
    return context.answers[key]


def _find_wrong_heartbeat(context: Context, path: str) -> bool:
    data = context.project.data(path)
    if HEARTBEAT.encode() not in data:
        return False
    texts = [text.decode(errors="replace") for text in _SET.findall(_COMMENT.sub(b"", data))]
    if all(map(is_harmless, texts)):
        return False
    source = context.project.source(path) if context.project.others.get(path) is Kind.SHELL else None
    # A script may only mention it, for example to edit other scripts.
    return source is None or any(map(is_wrong_heartbeat, settings(source, context.sourcing.codes(path), (HEARTBEAT,))))


def _process_group_takes_timeout(context: Context, finding: Finding, length: str) -> Verdict:
    """The finding is always confirmed; if one process group is created without a timeout, its fix passes it there."""
    fix = finding.fix
    if fix is None:
        return Verdict(True)
    seconds = int(length)
    maker = context.group_makers.maker_for(finding.span, seconds)
    edits = context.group_makers.edits_for(maker, seconds) if maker is not None else None
    if maker is None or edits is None:
        return Verdict(True)
    place = Related(context.line_span(maker.path, maker.place[0]), "this process group gets no timeout")
    title = f"{fix.title} and pass timeout=timedelta(seconds={seconds}) to init_process_group"
    both = Fix(title, (*fix.edits, *edits), Applicability.UNSAFE, _TAKES_EFFECT % seconds)
    return Verdict(True, (place,), fix=both)


QUESTIONS: dict[str, Question] = {
    "no-heartbeat-elsewhere-is-wrong": _no_heartbeat_elsewhere_is_wrong,
    "process-group-takes-timeout": _process_group_takes_timeout,
}
