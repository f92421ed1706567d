"""A summary for the page of a CI job, such as ``$GITHUB_STEP_SUMMARY``: counts, rules, findings, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TextIO

from ldlm_lint.model import Applicability, Finding, Report
from ldlm_lint.patterns import lazily
from ldlm_lint.report import summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import fixable, rule_url, severities, shown_path, unsaid
from ldlm_lint.report.statistics import by_rule
from ldlm_lint.report.view import View

# GitHub refuses a summary of more than 1 MiB.
MOST_BYTES = 900_000
_SPECIAL = lazily(r"([\\`*_\[\]<>|#~$])")


def write(view: View, stream: TextIO) -> None:
    """Write the summary."""
    stream.write(render(view))


def render(view: View) -> str:
    """The whole page; of very many findings the first ones, and how many more there are."""
    blocks = [[f"## ldlm-lint: {_title(view.report)}"], list(_severities(view.report)), list(_rules(view.report))]
    blocks += [[] if view.statistics else list(_findings(view)), list(_problems(view))]
    blocks += [[] if view.quiet else [_escaped(" ".join(line for line in summary.lines(view)))]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _title(report: Report) -> str:
    nothing = "no findings" if report.files else "nothing was checked"
    title = summary.count(len(report.findings), "finding") if report.findings else nothing
    return f"{title}, {summary.count(len(report.problems), 'problem')}" if report.problems else title


def _severities(report: Report) -> Iterator[str]:
    if not report.findings:
        return
    yield from _head("severity", "findings", "fixable", "fixable, unsafe", numbers=3)
    for severity, number in severities(report.findings).items():
        if number:
            group = [one for one in report.findings if one.severity is severity]
            safe, unsafe = fixable(group, Applicability.SAFE), fixable(group, Applicability.UNSAFE)
            yield _row(severity.label, str(number), str(safe), str(unsafe))


def _rules(report: Report) -> Iterator[str]:
    if not report.findings:
        return
    yield from _head("rule", "code", "findings", "fixable", "fixable, unsafe", numbers=3)
    for one in by_rule(report.findings):
        yield _row(_linked(one.rule), one.code, str(one.findings), str(one.safe), str(one.unsafe))


def _findings(view: View) -> Iterator[str]:
    findings = view.report.findings
    if not findings:
        return
    yield from _head("place", "rule", "what")
    size = 0
    for index, finding in enumerate(findings):
        row = _finding(view, finding)
        size += len(row.encode(errors="replace")) + 1
        if size > MOST_BYTES:
            yield f"\n... and {summary.count(len(findings) - index, 'more finding')}."
            return
        yield row


def _finding(view: View, finding: Finding) -> str:
    place = _escaped(str(view.place(finding.span)))
    return _row(place, f"{finding.code} {_linked(finding.rule)}", _escaped(view.message(finding)))


def _problems(view: View) -> Iterator[str]:
    problems = unsaid(view.report)
    if problems:
        yield "Not checked:\n"
    for one in problems:
        place = f"{shown_path(one.path, view.base)}: " if one.path else ""
        yield f"- {_escaped(place + one.message)}"


def _linked(symbol: str) -> str:
    return f"[{symbol}]({rule_url(symbol)})"


def _head(*titles: str, numbers: int = 0) -> Iterable[str]:
    """The first two lines of a table whose last ``numbers`` columns hold numbers."""
    marks = ["---"] * (len(titles) - numbers) + ["---:"] * numbers
    return (_row(*titles), _row(*marks))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Text of an untrusted file that is nothing but text in a cell."""
    return _SPECIAL.sub(r"\\\1", clean(text))
