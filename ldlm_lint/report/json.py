"""The JSON format ``ldlm-lint/1``; its schema is docs/findings.schema.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ldlm_lint.identity import Identifier, fingerprint
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Identity, InStep, Problem, Related, Report, Rule, Span
from ldlm_lint.report.common import fixable, positions, rule_url, settling, severities, shown_path, source_of, verdicts
from ldlm_lint.report.statistics import RuleCount, by_rule
from ldlm_lint.report.view import View

if TYPE_CHECKING:
    from ldlm_lint.evidence.join import Joined
    from ldlm_lint.evidence.support import Support
    from ldlm_lint.reach import Standing

SCHEMA = "ldlm-lint/1"


def write(view: View, stream: TextIO) -> None:
    """Write the document."""
    stream.write(render(view))


def render(view: View) -> str:
    """One JSON document, ASCII only, so that it survives every console encoding; paths relative to the base."""
    found = document(view.report, base=view.base, rules=view.rules)
    if view.statistics:
        found["statistics"] = [_counted(one, view.rules) for one in by_rule(view.report.findings)]
    return json.dumps(found, indent=2) + "\n"


def document(report: Report, *, base: Path, rules: Mapping[str, Rule]) -> dict[str, object]:
    """The document as plain values; ``rules`` are by symbol."""
    identifier = Identifier(report.sources, report.root)
    return {
        "schema": SCHEMA,
        "findings": [_finding(report, finding, base, rules[finding.rule], identifier) for finding in report.findings],
        "errors": [_error(problem, base) for problem in report.problems],
        "summary": _summary(report, base),
    }


def _finding(report: Report, finding: Finding, base: Path, rule: Rule, identifier: Identifier) -> dict[str, object]:
    (line, column), (end_line, end_column) = positions(report, finding.span)
    return {
        "rule": finding.rule,
        "code": finding.code,
        "consequence": rule.consequence.value,
        "severity": finding.severity.label,
        **({"severity_reason": finding.why_minor} if finding.why_minor else {}),
        **_standing(finding.standing),
        "confidence": finding.confidence.label,
        "path": shown_path(finding.span.path, base),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "message": rule.text(finding.args),
        "related": [_related(report, one, base) for one in finding.related],
        **({"step": _in_step(report, finding.in_step, base)} if finding.in_step is not None else {}),
        "fix": _fix(report, finding.fix, base),
        "cell": finding.span.cell,
        "fingerprint": fingerprint(identifier.of(finding)),
        "evidence": _evidence(finding.evidence),
        **({"probe": settling(report, finding, rule, base)} if rule.probe is not None else {}),
        "url": rule_url(finding.rule),
    }


def _standing(standing: Standing | None) -> dict[str, str]:
    """Why the code of a finding is of minor importance; nothing for the project's own code that runs."""
    if standing is None:
        return {}
    return {"reach": standing.reach.value, **({"copied_from": standing.copied_from} if standing.copied_from else {})}


def _in_step(report: Report, place: InStep, base: Path) -> dict[str, object]:
    """Where a finding is in a training step: the step, the order, how often it runs, the wait that leaves it nothing to
    wait for."""
    return {
        **_at(report, place.step, base),
        "order": place.order,
        "per": place.per,
        "loop": None if place.loop is None else _at(report, place.loop, base),
        "after": None if place.after is None else _at(report, place.after, base),
    }


def _at(report: Report, span: Span, base: Path) -> dict[str, object]:
    (line, _), _ = positions(report, span)
    return {"path": shown_path(span.path, base), **_cell(span), "line": line}


def _counted(one: RuleCount, rules: Mapping[str, Rule]) -> dict[str, object]:
    fixable = {"safe": one.safe, "unsafe": one.unsafe}
    word = rules[one.rule].consequence.value
    return {"rule": one.rule, "code": one.code, "consequence": word, "findings": one.findings, "fixable": fixable}


def _related(report: Report, related: Related, base: Path) -> dict[str, object]:
    (line, _), _ = positions(report, related.span)
    path = shown_path(related.span.path, base)
    return {"path": path, **_cell(related.span), "line": line, "message": related.message}


def _fix(report: Report, fix: Fix | None, base: Path) -> dict[str, object] | None:
    if fix is None:
        return None
    edits = [_edit(report, edit, base) for edit in fix.edits]
    traded = {"trade": fix.trade} if fix.trade else {}
    return {"applicability": fix.applicability.label, **traded, "title": fix.title, "edits": edits}


def _edit(report: Report, edit: Edit, base: Path) -> dict[str, object]:
    start, end, text = edit.span.start, edit.span.end, edit.text
    source = source_of(report, edit.span.path) if edit.span.cell is not None else None
    if source is not None:
        from ldlm_lint.notebooks.fixes import of_cell

        start, end, text = of_cell(source, edit)
    return {"path": shown_path(edit.span.path, base), **_cell(edit.span), "start": start, "end": end, "text": text}


def _cell(span: Span) -> dict[str, int]:
    return {} if span.cell is None else {"cell": span.cell}


def _error(problem: Problem, base: Path) -> dict[str, object]:
    return {"path": shown_path(problem.path, base), "line": max(problem.line, 1), "message": problem.message}


def _summary(report: Report, base: Path) -> dict[str, object]:
    counts = {severity.label + "s": count for severity, count in severities(report.findings).items()}
    return {
        "files": report.files,
        "findings": len(report.findings),
        **counts,
        "fixable": {
            "safe": fixable(report.findings, Applicability.SAFE),
            "unsafe": fixable(report.findings, Applicability.UNSAFE),
        },
        "suppressed": report.suppressed,
        "baselined": report.baselined,
        "unchanged": report.unchanged,
        "unsure": report.unsure,
        "unseen": len(report.unseen),
        "unseen_places": [{"path": shown_path(path, base), "line": line} for path, line in report.unseen],
        "excluded": report.excluded,
        "stale": [_stale(report, identity, count, base) for identity, count in report.stale],
        **({"evidence": _joined(report.evidence, report, base)} if report.evidence is not None else {}),
    }


def _evidence(support: Support | None) -> dict[str, object] | None:
    """The verdict on a finding with the judgements behind it, those that decided first."""
    if support is None:
        return None
    from ldlm_lint.evidence.model import plain
    from ldlm_lint.report.verdicts_json import finite

    return {
        "verdict": support.verdict.value,
        "reason": support.reason,
        "level": support.level.label,
        "judgements": [finite(plain(one)) for one in support.judgements],
    }


def _joined(joined: Joined, report: Report, base: Path) -> dict[str, object]:
    """How evidence was used: verdicts on the findings shown, stale evidence, evidence about no finding."""
    from ldlm_lint.evidence.model import plain
    from ldlm_lint.report.verdicts_json import finite

    stale = [{"rule": one.rule, "path": shown_path(one.path, base), "line": one.line} for one in joined.stale]
    return {
        **verdicts(report),
        "stale": stale,
        "unmatched": [finite(plain(one)) for one in joined.unmatched],
        "notes": list(joined.notes),
    }


def _stale(report: Report, identity: Identity, count: int, base: Path) -> dict[str, object]:
    path = shown_path(Path(report.root, identity.path).as_posix(), base)
    return {
        "rule": identity.rule,
        "path": path,
        "symbol": identity.symbol,
        "fingerprint": fingerprint(identity),
        "count": count,
    }
