"""The question of a file that does not parse: whether that is the file's error, or the running Python is too old."""

from __future__ import annotations

import sys

from ldlm_lint.code.newer_syntax import certain_version, possible_version
from ldlm_lint.model import Finding, Severity
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.required_python import required_python


def _may_need_newer_python(context: Context, finding: Finding, subject: str) -> Verdict:
    """Always true; syntax of a newer Python is not an error of the file, if its form or the project's requirement shows
    that."""
    message, _, line = subject.partition("\n")
    running = sys.version_info[:2]
    possible = possible_version(line, message, running)
    if possible is None:
        return Verdict(True)
    needed = required_python(context.project, finding.span.path)
    is_required = needed is not None and needed.version >= possible
    if not is_required and certain_version(line, running) is None:
        return Verdict(True)
    version = ".".join(map(str, needed.version if needed is not None and is_required else possible))
    who = f"the project needs Python {version} or later ({needed.source})" if needed is not None and is_required else f"this syntax needs Python {version} or later"
    words = f"{who} and ldlm-lint runs on {running[0]}.{running[1]}; run ldlm-lint on Python {version} or later to check all of the file"
    return Verdict(True, args=(("error", words),), level=Severity.INFO)


QUESTIONS: dict[str, Question] = {
    "may-need-newer-python": _may_need_newer_python,
}
