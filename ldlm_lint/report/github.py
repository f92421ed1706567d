"""Workflow commands of GitHub Actions: each finding becomes an annotation next to its line of a pull request.

GitHub shows the first `MOST` annotations of each level in a step, so the worst findings come first, and one notice says
how many are not shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TextIO

from ldlm_lint.model import Finding, Problem, Severity
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path, unsaid
from ldlm_lint.report.concise import line
from ldlm_lint.report.ranking import CONSEQUENCE
from ldlm_lint.report.summary import elsewhere
from ldlm_lint.report.view import View

MOST = 10
LEVELS = ("error", "warning", "notice")
_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REFACTOR: "notice",
    Severity.INFO: "notice",
}
_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = _IN_MESSAGE | {":": "%3A", ",": "%2C"}


class _Annotation(NamedTuple):
    """One of the `LEVELS`, a text about the place, and the message."""

    level: str
    properties: Mapping[str, object]
    message: str


def write(view: View, stream: TextIO) -> None:
    """Write one command for each finding and each problem, and one for those that GitHub does not show."""
    stream.write(render(view))


def render(view: View) -> str:
    """The commands, one to a line."""
    annotations = [_problem(view, problem) for problem in unsaid(view.report)]
    annotations += [_finding(view, finding) for finding in view.ordered(CONSEQUENCE)]
    if view.counted:
        annotations.append(_Annotation("notice", {"title": "ldlm-lint"}, "\n".join(elsewhere(view))))
    return "".join(f"{_command(one)}\n" for one in _with_count(annotations))


def _with_count(annotations: list[_Annotation]) -> Iterator[_Annotation]:
    """The annotations with a notice of how many are not shown, placed where GitHub shows it."""
    counts = Counter(one.level for one in annotations)
    if all(number <= MOST for number in counts.values()):
        yield from annotations
        return
    room = {"error": MOST, "warning": MOST, "notice": MOST - 1}
    hidden = {level: counts[level] - room[level] for level in LEVELS if counts[level] > room[level]}
    notices = 0
    for one in annotations:
        if one.level == "notice":
            notices += 1
            if notices == MOST:
                yield _hidden(hidden)
        yield one
    if notices < MOST:
        yield _hidden(hidden)


def _hidden(hidden: Mapping[str, int]) -> _Annotation:
    listed = ", ".join(f"{number} {level}{'s' if number != 1 else ''}" for level, number in hidden.items())
    text = (
        f"{listed} more: GitHub shows {MOST} annotations of each level in a step. The log of this step has all of them, "
        "and so has a job summary (--format markdown)."
    )
    return _Annotation("notice", {"title": "ldlm-lint"}, text)


def _finding(view: View, finding: Finding) -> _Annotation:
    file = shown_path(finding.span.path, view.base)
    title = f"{view.rules[finding.rule].consequence.value}: {finding.rule} (ldlm-lint {finding.code})"
    properties: dict[str, object] = {"title": title, "file": file}
    region = view.region(finding.span)
    if region is not None:
        properties |= {"line": region.line, "col": region.column}
        properties |= {"endLine": region.end_line, "endColumn": region.end_column}
    # The log of a job shows the message without the place.
    return _Annotation(_COMMANDS[finding.severity], properties, line(view, finding))


def _problem(view: View, problem: Problem) -> _Annotation:
    path = shown_path(problem.path, view.base) if problem.path else ""
    place = {"file": path, "line": max(problem.line, 1)} if path else {}
    message = f"{path}: {problem.message}" if path else problem.message
    return _Annotation("error", {"title": "ldlm-lint", **place}, message)


def _command(one: _Annotation) -> str:
    shown = ",".join(f"{key}={_escaped(str(value), _IN_PROPERTY)}" for key, value in one.properties.items())
    return f"::{one.level} {shown}::{_escaped(one.message, _IN_MESSAGE)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(letter) or clean(letter) for letter in text)
