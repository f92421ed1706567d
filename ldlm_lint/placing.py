"""In which code the findings of a run stand: the project's own, some that was copied in, some that no program reaches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError
from ldlm_lint.projects import Projects
from ldlm_lint.select import LINTER_FAMILY

if TYPE_CHECKING:
    from ldlm_lint.model import Finding
    from ldlm_lint.reach import Standing


def placed(findings: Iterable[Finding], projects: Projects) -> Iterator[Finding]:
    """The findings, those in code that counts little with their `Standing`; a file that cannot be read is said as loud as ever."""
    known: dict[str, Standing | None] = {}
    for finding in findings:
        path = finding.span.path
        if finding.code[1:3] == LINTER_FAMILY:
            yield finding
            continue
        if path not in known:
            known[path] = _copied(path, projects)
        yield finding if known[path] is None else finding._replace(standing=known[path])


def _copied(path: str, projects: Projects) -> Standing | None:
    from ldlm_lint.project.texts import ChangedError

    context = projects.of(path)
    try:
        with projects.clock(path).running(len(context.project.files)):
            return context.copied.standing(path)
    except (ChangedError, OverBudgetError):
        # A finding of which this cannot be told counts in full.
        return None
