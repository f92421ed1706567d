"""JUnit XML, which almost every CI system can show: a suite for each file, a failed case for each finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TextIO
from xml.etree import ElementTree

from ldlm_lint.model import Finding, Problem
from ldlm_lint.patterns import lazily
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import rule_url, shown_path, unsaid
from ldlm_lint.report.concise import line
from ldlm_lint.report.view import View

NAME = "ldlm-lint"
# Characters that XML 1.0 does not allow, not even escaped.
_FOREIGN = lazily("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(view: View, stream: TextIO) -> None:
    """Write the document."""
    stream.write(render(view))


def render(view: View) -> str:
    """The document; a run without findings is one case that passed."""
    findings, problems = view.report.findings, unsaid(view.report)
    root = _element("testsuites", name=NAME, **_counts(findings, len(problems)))
    for path, group in groupby(findings, key=lambda finding: finding.span.path):
        root.append(_suite(view, shown_path(path, view.base), list(group)))
    if problems:
        root.append(_problems(view, problems))
    if not len(root):
        suite = _element("testsuite", name=NAME, tests="1", failures="0", errors="0")
        suite.append(_element("testcase", name="no findings", classname=NAME))
        root.append(suite)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(findings: Sequence[Finding], errors: int) -> dict[str, str]:
    skipped = sum(finding.standing is not None for finding in findings)
    counts = {"tests": len(findings) + errors or 1, "failures": len(findings) - skipped, "errors": errors}
    return {name: str(number) for name, number in (counts | ({"skipped": skipped} if skipped else {})).items()}


def _suite(view: View, path: str, findings: list[Finding]) -> ElementTree.Element:
    suite = _element("testsuite", name=path, **_counts(findings, 0))
    for finding in findings:
        place, message = view.place(finding.span), view.message(finding)
        at = f"{place.line}:{place.column}" if place.cell is None else f"cell {place.cell}:{place.line}:{place.column}"
        case = _element("testcase", name=f"{finding.rule} at {at}", classname=path, file=path, line=str(place.line))
        failure = _outcome(finding, f"{view.label(finding)}: {message}")
        failure.text = _text(f"{line(view, finding)}\n{rule_url(finding.rule)}")
        case.append(failure)
        suite.append(case)
    return suite


def _outcome(finding: Finding, message: str) -> ElementTree.Element:
    """The outcome of a case; a finding in code of minor importance fails nothing, and its case counts as skipped."""
    if finding.standing is not None:
        return _element("skipped", message=f"{finding.standing.words}: {message}")
    return _element("failure", type=finding.severity.label, message=message)


def _problems(view: View, problems: Iterable[Problem]) -> ElementTree.Element:
    cases = [(shown_path(one.path, view.base) if one.path else NAME, one) for one in problems]
    suite = _element("testsuite", name="not checked", **_counts((), len(cases)))
    for path, problem in cases:
        case = _element("testcase", name=path, classname=path, file=path, line=str(max(problem.line, 1)))
        case.append(_element("error", type="error", message=problem.message))
        suite.append(case)
    return suite


def _element(tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.Element(tag, {name: _text(clean(value)) for name, value in attributes.items()})


def _text(text: str) -> str:
    return _FOREIGN.sub("\ufffd", text)
