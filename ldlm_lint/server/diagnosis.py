"""A report about one buffer in the shape of the protocol: diagnostics, and the fixes that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ldlm_lint.identity import Identifier, fingerprint
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Report, Rule, Severity
from ldlm_lint.reach import Reach
from ldlm_lint.report.common import has_edits, rule_url
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.server.edits import FileEdit, edit_of
from ldlm_lint.server.positions import range_of
from ldlm_lint.source import Source

NAME = "ldlm-lint"
# Error, Warning, Information, Hint of the protocol: missed speed is not a warning, and information must not underline
# half of a file.
SEVERITIES: Mapping[Severity, int] = {
    Severity.ERROR: 1,
    Severity.WARNING: 2,
    Severity.REFACTOR: 3,
    Severity.INFO: 4,
}
UNNECESSARY, DEPRECATED = 1, 2
# Code that these rules report has no effect and can be greyed out.
_WITHOUT_EFFECT = frozenset(
    (
        *("dead-config-key", "redundant-error-handling-variable", "unused-suppression"),
        *("allocator-variable-ignored", "ineffective-environment-variable", "ineffective-heartbeat-timeout"),
    )
)

Lookup = Callable[[str], Source | None]
"""The text of a file by its path, None where it cannot be read."""


def diagnosis(report: Report, path: str, rules: Mapping[str, Rule], encoding: str, source_of: Lookup) -> dict[str, Any]:
    """The findings of one file as ``diagnostics``, and their ``fixes``, which name them by their index.

    ``problems`` are the reasons why the file could not be checked, and our own failures.
    """
    findings = findings_of(report, path)
    identifier = Identifier(report.sources, report.root)
    return {
        "diagnostics": [
            _diagnostic(one, rules[one.rule], fingerprint(identifier.of(one)), encoding, source_of) for one in findings
        ],
        "fixes": [_fix(fix, indices, encoding, source_of) for fix, indices in _shared(findings)],
        "problems": [problem.message for problem in report.problems],
    }


def findings_of(report: Report, path: str) -> list[Finding]:
    """The findings that an editor shows for a file; failures of ours go to the log."""
    return [one for one in report.findings if one.span.path == path and one.rule != INTERNAL_ERROR.symbol]


def _diagnostic(finding: Finding, rule: Rule, identity: str, encoding: str, source_of: Lookup) -> dict[str, Any]:
    related = [
        {
            "path": one.span.path,
            "cell": one.span.cell,
            "range": range_of(source, one.span.start, one.span.end, encoding),
            "message": one.message,
        }
        for one in finding.related
        if (source := source_of(one.span.path)) is not None
    ]
    return {
        "range": _range(finding, encoding, source_of),
        "cell": finding.span.cell,
        "severity": SEVERITIES[finding.severity],
        "code": rule.symbol,
        "href": rule_url(rule.symbol),
        "source": NAME,
        "message": f"{rule.consequence.value}: {rule.text(finding.args)}{_remark(finding)}",
        "tags": _tags(finding, rule),
        "related": related,
        "data": {"code": rule.code, "consequence": rule.consequence.value, "confidence": finding.confidence.label, "fingerprint": identity},
    }


def _remark(finding: Finding) -> str:
    """Why a finding is only a hint, where its code is of minor importance."""
    return f" ({finding.why_minor})" if finding.why_minor else ""


def _tags(finding: Finding, rule: Rule) -> list[int]:
    unreached = finding.standing is not None and finding.standing.reach is Reach.UNREACHED
    if rule.symbol in _WITHOUT_EFFECT or unreached:
        return [UNNECESSARY]
    return [DEPRECATED] if rule.consequence is Consequence.DEPRECATED else []


def _range(finding: Finding, encoding: str, source_of: Lookup) -> dict[str, Any]:
    source = source_of(finding.span.path)
    if source is None:
        # It could not be read as text; the finding says why.
        return {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}
    return range_of(source, finding.span.start, finding.span.end, encoding)


def _shared(findings: Iterable[Finding]) -> list[tuple[Fix, list[int]]]:
    """Each fix once, with the indices of the findings that it mends."""
    found: dict[tuple[object, ...], tuple[Fix, list[int]]] = {}
    for index, finding in enumerate(findings):
        if finding.fix is not None:
            key = (frozenset(finding.fix.edits), finding.fix.title)
            found.setdefault(key, (finding.fix, []))[1].append(index)
    return list(found.values())


def _fix(fix: Fix, indices: list[int], encoding: str, source_of: Lookup) -> dict[str, Any]:
    edits: list[FileEdit] = []
    readable = True
    for edit in sorted(fix.edits, key=lambda one: (one.span.path, one.span.start, one.span.end)):
        source = source_of(edit.span.path)
        if source is None:
            readable = False
            continue
        edits.append(edit_of(source, edit, encoding))
    shown_only = fix.applicability is Applicability.DISPLAY or not has_edits(fix) or not readable
    return {
        "title": fix.title,
        "level": Applicability.DISPLAY.label if shown_only else fix.applicability.label,
        "reason": fix.reason,
        "trade": fix.trade,
        "edits": [] if shown_only else edits,
        "diagnostics": indices,
    }
