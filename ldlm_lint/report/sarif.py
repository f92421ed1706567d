"""SARIF 2.1.0, the exchange format of static analysis: rules, results with fixes and fingerprints, and how the run ended.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from pathlib import PurePath
from typing import Any, TextIO
from urllib.parse import quote

from ldlm_lint import __version__
from ldlm_lint.identity import Fingerprints, Identifier
from ldlm_lint.model import Confidence, Consequence, Edit, Finding, Fix, Problem, Rule, Severity, Span
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.region import Region
from ldlm_lint.report.common import HOME, has_edits, rule_url, settling, source_of, unsaid
from ldlm_lint.report.view import View

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "ldlmLintIdentity/v1"
_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REFACTOR: "note",
    Severity.INFO: "note",
}
# The property that GitHub's code scanning sorts by.
_PROBLEMS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.REFACTOR: "recommendation",
    Severity.INFO: "recommendation",
}
_TAGS = {
    "68": "linter",
    "71": "data-loading",
    "72": "distributed-training",
    "73": "optimizer",
    "75": "memory",
    "76": "checkpoint-files",
    "78": "precision",
}
# Of 10, as GitHub's code scanning sorts alerts about security; medium, since the attacker must control a file that is loaded.
_SECURITY = "5.0"
_RANKS = {Confidence.HIGH: 90.0, Confidence.MEDIUM: 60.0, Confidence.LOW: 30.0}
_ENDS = {
    0: "nothing at or above the fail level",
    1: "findings at or above the fail level",
    3: "something could not be checked",
}


def write(view: View, stream: TextIO) -> None:
    """Write the log."""
    stream.write(render(view))


def render(view: View) -> str:
    """The log as JSON, ASCII only."""
    return json.dumps(document(view), indent=2) + "\n"


def document(view: View) -> dict[str, Any]:
    """The log as plain values; it describes the rules that have findings."""
    rules = sorted({finding.rule for finding in view.report.findings}, key=lambda symbol: view.rules[symbol].code)
    index = {symbol: number for number, symbol in enumerate(rules)}
    prints = Fingerprints(Identifier(view.report.sources, view.report.root))
    run = {
        "tool": {"driver": _driver([view.rules[symbol] for symbol in rules])},
        "invocations": [_invocation(view)],
        "originalUriBaseIds": {ROOT: {"uri": _uri(view.base.as_posix().rstrip("/") + "/")}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(view, finding, index, prints) for finding in view.report.findings],
    }
    return {"version": "2.1.0", "$schema": SCHEMA, "runs": [run]}


def _driver(rules: list[Rule]) -> dict[str, Any]:
    return {
        "name": "ldlm-lint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": [_rule(rule) for rule in rules],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    parts = (
        ("Why", rule.rationale),
        ("What it costs", rule.cost_text),
        ("When not to follow it", rule.exceptions),
        ("Fix safety", rule.fix_safety),
    )
    told = [(title, text) for title, text in parts if text]
    return {
        "id": rule.code,
        "name": rule.symbol,
        **({"deprecatedNames": list(rule.old_names)} if rule.old_names else {}),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.rationale},
        "help": {
            "text": "\n\n".join(f"{title}: {text}" for title, text in told),
            "markdown": "\n\n".join(f"**{title}.** {text}" for title, text in told),
        },
        "helpUri": rule_url(rule.symbol),
        "defaultConfiguration": {"enabled": rule.default, "level": _LEVELS[rule.severity]},
        "properties": {
            "tags": _tags(rule),
            "consequence": rule.consequence.value,
            "precision": rule.confidence.label,
            "problem.severity": _PROBLEMS[rule.severity],
            **({"security-severity": _SECURITY} if rule.consequence is Consequence.SECURITY else {}),
            "severity": rule.severity.label,
            "since": rule.since,
        },
    }


def _tags(rule: Rule) -> list[str]:
    """Tags for filters; GitHub treats a rule with the tag ``security`` as a security rule."""
    return [rule.consequence.value, _TAGS[rule.family], rule.status]


def _invocation(view: View) -> dict[str, Any]:
    return {
        "executionSuccessful": not view.report.problems,
        "exitCode": view.exit_code,
        "exitCodeDescription": _ENDS[view.exit_code],
        "toolExecutionNotifications": [_notification(view, problem) for problem in unsaid(view.report)],
    }


def _notification(view: View, problem: Problem) -> dict[str, Any]:
    location = {
        "physicalLocation": {
            "artifactLocation": _artifact(view, problem.path),
            "region": {"startLine": max(problem.line, 1)},
        }
    }
    return {
        "level": "error",
        "message": {"text": problem.message},
        **({"locations": [location]} if problem.path else {}),
    }


def _result(view: View, finding: Finding, index: dict[str, int], prints: Fingerprints) -> dict[str, Any]:
    related = [
        {"id": number, **_location(view, one.span), "message": {"text": one.message}}
        for number, one in enumerate(finding.related, start=1)
    ]
    return {
        "ruleId": finding.code,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "rank": _RANKS[finding.confidence],
        "message": {"text": view.message(finding)},
        "locations": [_location(view, finding.span)],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {FINGERPRINT: prints.unique(finding)},
        **({"fixes": fixes} if (fixes := _fixes(view, finding.fix)) else {}),
        "properties": _properties(view, finding),
    }


def _properties(view: View, finding: Finding) -> dict[str, Any]:
    probe = settling(view.report, finding, view.rules[finding.rule], view.base)
    evidence, standing = finding.evidence, finding.standing
    return {
        "consequence": view.rules[finding.rule].consequence.value,
        "confidence": finding.confidence.label,
        **({"severityReason": finding.why_minor} if finding.why_minor else {}),
        **({"reach": standing.reach.value} if standing else {}),
        **({"copiedFrom": standing.copied_from} if standing and standing.copied_from else {}),
        **({"cell": finding.span.cell} if finding.span.cell is not None else {}),
        **({"probe": probe} if probe is not None else {}),
        **({"evidence": {"verdict": evidence.verdict.value, "reason": evidence.reason}} if evidence else {}),
    }


def _location(view: View, span: Span) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(view, span.path), **_where(view, span)}
    if span.cell is None:
        return {"physicalLocation": place}
    shown = view.place(span)
    cell = {"name": f"cell {shown.cell}", "fullyQualifiedName": f"cell {shown.cell}:{shown.line}:{shown.column}"}
    return {"physicalLocation": place, "logicalLocations": [{**cell, "kind": "notebookCell"}]}


def _where(view: View, span: Span) -> dict[str, Any]:
    """The region of a span; of one that stands for a line, such as that of an unreadable file, the line."""
    region = view.region(span)
    if region is None:
        return {}
    return {"region": _region(region) if region.end > region.start else {"startLine": region.line}}


def _region(region: Region) -> dict[str, int]:
    return {
        "startLine": region.line,
        "startColumn": region.column,
        "endLine": region.end_line,
        "endColumn": region.end_column,
        **_bytes(region.start, region.end),
    }


def _bytes(start: int, end: int) -> dict[str, int]:
    return {"byteOffset": start, "byteLength": end - start}


def _fixes(view: View, fix: Fix | None) -> list[dict[str, Any]]:
    """A fix that changes files, if its changes in each of them are known."""
    if fix is None or not has_edits(fix):
        return []
    paths = sorted({edit.span.path for edit in fix.edits})
    changes = [(path, _replacements(view, path, [one for one in fix.edits if one.span.path == path])) for path in paths]
    if not all(replacements for _, replacements in changes):
        return []
    safety = {"applicability": fix.applicability.label, **({"reason": fix.reason} if fix.reason else {})}
    safety |= {"trade": fix.trade} if fix.trade else {}
    artifacts = [{"artifactLocation": _artifact(view, path), "replacements": found} for path, found in changes]
    return [{"description": {"text": fix.title}, "artifactChanges": artifacts, "properties": safety}]


def _replacements(view: View, path: str, edits: list[Edit]) -> list[dict[str, Any]]:
    if not is_notebook(path):
        return [_replacement(_edited(view, edit.span), edit.text) for edit in edits]
    notebook = view.notebook(path)
    found = [] if notebook is None else notebook.replacements(edits)
    return [_replacement(_region(region), text) for region, text in found]


def _edited(view: View, span: Span) -> dict[str, int]:
    region = view.region(span) if source_of(view.report, span.path) is not None else None
    return _region(region) if region else _bytes(span.start, span.end)


def _replacement(region: dict[str, int], text: str) -> dict[str, Any]:
    return {"deletedRegion": region, "insertedContent": {"text": text}}


def _artifact(view: View, path: str) -> dict[str, str]:
    pure = PurePath(path)
    if pure.is_relative_to(view.base):
        return {"uri": _quoted(pure.relative_to(view.base).as_posix()), "uriBaseId": ROOT}
    return {"uri": _uri(path)}


def _uri(path: str) -> str:
    """The URI of an absolute path with forward slashes."""
    return f"file://{'' if path.startswith('/') else '/'}{_quoted(path)}"


def _quoted(path: str) -> str:
    return quote(os.fsencode(path))
