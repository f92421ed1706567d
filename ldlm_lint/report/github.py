"""Workflow commands of GitHub Actions: each finding becomes an annotation beside its line of a pull request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO

from ldlm_lint.model import Finding, Problem, Severity
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import shown_path, unsaid
from ldlm_lint.report.concise import line
from ldlm_lint.report.view import View

_COMMANDS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REFACTOR: "notice",
    Severity.INFO: "notice",
}
_IN_MESSAGE = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = _IN_MESSAGE | {":": "%3A", ",": "%2C"}


def write(view: View, stream: TextIO) -> None:
    """Write one command for each finding and each problem."""
    stream.write(render(view))


def render(view: View) -> str:
    """The commands, one to a line."""
    commands = [_finding(view, finding) for finding in view.report.findings]
    commands += [_problem(view, problem) for problem in unsaid(view.report)]
    return "".join(f"{command}\n" for command in commands)


def _finding(view: View, finding: Finding) -> str:
    file = shown_path(finding.span.path, view.base)
    properties: dict[str, object] = {"title": f"ldlm-lint ({finding.code})", "file": file}
    region = view.region(finding.span)
    if region is not None:
        properties |= {"line": region.line, "col": region.column}
        properties |= {"endLine": region.end_line, "endColumn": region.end_column}
    # The log of a job shows the message without the place.
    return _command(_COMMANDS[finding.severity], properties, line(view, finding))


def _problem(view: View, problem: Problem) -> str:
    path = shown_path(problem.path, view.base) if problem.path else ""
    place = {"file": path, "line": max(problem.line, 1)} if path else {}
    return _command("error", {"title": "ldlm-lint", **place}, f"{path}: {problem.message}" if path else problem.message)


def _command(name: str, properties: Mapping[str, object], message: str) -> str:
    shown = ",".join(f"{key}={_escaped(str(value), _IN_PROPERTY)}" for key, value in properties.items())
    return f"::{name} {shown}::{_escaped(message, _IN_MESSAGE)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(letter) or clean(letter) for letter in text)
