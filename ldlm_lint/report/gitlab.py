"""A code quality report of GitLab: a JSON list that merge requests show next to the changed lines."""

from __future__ import annotations

import json
from typing import TextIO

from ldlm_lint.identity import Fingerprints, Identifier
from ldlm_lint.model import Finding, Severity
from ldlm_lint.region import Region
from ldlm_lint.report.view import View

# A place is required even if none is known.
_TOP = Region(1, 1, 1, 1, 0, 0)
_SEVERITIES = {
    Severity.ERROR: "critical",
    Severity.WARNING: "major",
    Severity.REFACTOR: "minor",
    Severity.INFO: "info",
}


def write(view: View, stream: TextIO) -> None:
    """Write the report."""
    stream.write(render(view))


def render(view: View) -> str:
    """The list, ASCII only; it cannot contain paths that could not be checked, which the command prints on stderr."""
    prints = Fingerprints(Identifier(view.report.sources, view.report.root))
    return json.dumps([_issue(view, finding, prints) for finding in view.report.findings], indent=2) + "\n"


def _issue(view: View, finding: Finding, prints: Fingerprints) -> dict[str, object]:
    place, region = view.place(finding.span), view.region(finding.span) or _TOP
    where = f"cell {place.cell}:{place.line}: " if place.cell is not None else ""
    return {
        "type": "issue",
        "description": f"{where}{view.label(finding)}: {view.told(finding)}",
        "check_name": finding.rule,
        "fingerprint": prints.unique(finding),
        "severity": _SEVERITIES[finding.severity],
        "location": {
            "path": place.path,
            "lines": {"begin": region.line, "end": region.end_line},
            "positions": {
                "begin": {"line": region.line, "column": region.column},
                "end": {"line": region.end_line, "column": region.end_column},
            },
        },
    }
