"""Asks the project to confirm findings that depend on other files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.budget import Clock, OverBudgetError, deep
from ldlm_lint.config import Configured
from ldlm_lint.discover import kind_of_name
from ldlm_lint.failures import failed, internal_error
from ldlm_lint.linting import selected_rules
from ldlm_lint.model import FileResult, Finding, Span
from ldlm_lint.projects import Projects
from ldlm_lint.rules.dated import dated
from ldlm_lint.shell.embedded_paths import as_of_script
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.project.questions import Context


def decide_all(results: Sequence[FileResult], configured: Configured, projects: Projects) -> Iterator[Finding]:
    """The findings without claims, and those whose claims the project confirms; also checks fixes that need a new
    torch."""
    for path, finding in ((result.path, finding) for result in results for finding in result.findings):
        if finding.rule not in selected_rules(configured.of(path)) and not (finding.fix and finding.fix.group):
            # It is not shown, and no other finding's fix depends on it: the project need not be asked.
            continue
        if not asks_project(finding):
            yield finding
            continue
        place = finding.span.path
        found = decided(finding, projects.of(place), projects.clock(place))
        if found is not None:
            yield as_of_script(found)


def asks_project(finding: Finding) -> bool:
    """Whether other files decide about a finding or its fix: by a claim, or by the torch that they require."""
    return bool(finding.claims) or finding.rule in dated() or (finding.fix is not None and bool(finding.fix.needs))


def decided(finding: Finding, context: Context, clock: Clock) -> Finding | None:
    """A finding as the project decides it, or the failure of the question."""
    from ldlm_lint.project import decide
    from ldlm_lint.project.texts import ChangedError

    try:
        with clock.running(len(context.project.files) + len(context.project.others)), deep():
            return decide(finding, context)
    except (ChangedError, OverBudgetError) as error:
        return failed(finding.span, f"{finding.rule}: {error}")
    except Exception as error:
        return internal_error(finding.span, error, finding.rule)


def once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, with one per rule for each place of a script or configuration: two readers of a value are one
    defect.

    The same holds for informational findings in Python, such as a value that several loaders take.
    """
    seen: set[tuple[str, Span]] = set()
    for finding in findings:
        place = (finding.rule, finding.span)
        if place not in seen or (finding.level is None and kind_of_name(finding.span.path) is Kind.PYTHON):
            yield finding
        seen.add(place)
