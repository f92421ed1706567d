"""Decides in which code findings are: the project's own, or code of minor importance (`ldlm_lint.project.roles`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError
from ldlm_lint.projects import Projects
from ldlm_lint.select import LINTER_FAMILY

if TYPE_CHECKING:
    from ldlm_lint.model import Finding
    from ldlm_lint.reach import Standing


def placed(findings: Iterable[Finding], projects: Projects) -> list[Finding]:
    """The findings; those in code of minor importance get a `Standing`. An unreadable file keeps its level."""
    from ldlm_lint.project.unreached import merged

    found = [(finding, _standing(finding, projects)) for finding in findings]
    shorter = merged(standing for _, standing in found if standing is not None)
    return [
        finding if standing is None else finding._replace(standing=shorter.get(standing, standing))
        for finding, standing in found
    ]


def _standing(finding: Finding, projects: Projects) -> Standing | None:
    from ldlm_lint.project.texts import ChangedError

    path = finding.span.path
    if finding.code[1:3] == LINTER_FAMILY:
        return None
    context = projects.of(path)
    try:
        with projects.clock(path).running(len(context.project.files)):
            return context.roles.standing(path, finding.span.start)
    except (ChangedError, OverBudgetError):
        # A finding for which this is unknown keeps its level.
        return None

