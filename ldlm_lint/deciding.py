"""What one file cannot tell: findings whose claims the project confirms."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.budget import Clock, OverBudgetError
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover, kind_of_name
from ldlm_lint.failures import failed, internal_error
from ldlm_lint.linting import Overlay, selected_rules
from ldlm_lint.model import FileResult, Finding, Span
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.cache.session import Session
    from ldlm_lint.project.questions import Context
    from ldlm_lint.python.flow import ModuleFlow


def decide_all(
    results: Sequence[FileResult],
    config: Config,
    overlay: Overlay,
    contexts: dict[str, Context],
    session: Session | None = None,
) -> Iterator[Finding]:
    """The findings that stand on their own, and those whose claims the project confirms.

    The projects that had to be asked, by their roots, are put into ``contexts``; ``session`` is what earlier runs
    remember.
    """
    flows = {result.path: result.flow for result in results if result.flow is not None}
    linted = [result.path for result in results]
    selected = selected_rules(config)
    roots: dict[Path, str] = {}
    clocks: dict[str, Clock] = defaultdict(Clock)
    for finding in (finding for result in results for finding in result.findings):
        if finding.rule not in selected and not (finding.fix and finding.fix.group):
            # Nobody sees it, and no other finding's fix hangs on it: the project need not be asked.
            continue
        if not finding.claims:
            yield finding
            continue
        path = Path(finding.span.path)
        if path.parent not in roots:
            found = project_root(path) if session is None else project_root(path, session.note)
            roots[path.parent] = found.as_posix()
        root = roots[path.parent]
        if root not in contexts:
            contexts[root] = _context(root, linted, config, overlay, flows, session)
        decided = _decided(finding, contexts[root], clocks[root])
        if decided is not None:
            yield decided


def _decided(finding: Finding, context: Context, clock: Clock) -> Finding | None:
    """A finding as the project decides it, or what became of the asking."""
    from ldlm_lint.project import decide

    try:
        with clock.running(len(context.project.files) + len(context.project.others)):
            return decide(finding, context)
    except OverBudgetError as error:
        return failed(finding.span, f"{finding.rule}: {error}")
    except Exception as error:
        return internal_error(finding.span, error, finding.rule)


def once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, each place of a script or configuration once for each rule: two readers of a value are one defect."""
    seen: set[tuple[str, Span]] = set()
    for finding in findings:
        place = (finding.rule, finding.span)
        if place not in seen or kind_of_name(finding.span.path) is Kind.PYTHON:
            yield finding
        seen.add(place)


def _context(
    root: str,
    linted: Iterable[str],
    config: Config,
    overlay: Overlay,
    flows: Mapping[str, ModuleFlow],
    session: Session | None,
) -> Context:
    """The project at a root: all its files as context, and those linted below it although they are ignored."""
    from ldlm_lint.project import Project
    from ldlm_lint.project.questions import Context

    below = root.rstrip("/") + "/"
    # A buffer of an editor may not be on disk yet.
    unsaved = (path for path in overlay if not os.path.lexists(path))
    named = {path: kind for path in (*linted, *unsaved) if path.startswith(below) and (kind := kind_of_name(path)) is not None}
    kinds = named | {path.as_posix(): kind for path, kind in _below(root, config, session)}
    for path in kinds if session is not None else ():
        if path not in overlay:
            session.note("file", path)
    files = (path for path, kind in kinds.items() if kind is Kind.PYTHON)
    others = {path: kind for path, kind in kinds.items() if kind is not Kind.PYTHON}
    return Context(Project(root, files, overlay, flows, others, session))


def _below(root: str, config: Config, session: Session | None) -> tuple[tuple[Path, Kind], ...]:
    find = discover if session is None else session.discover
    return find([Path(root)], config, Path(root)).files
