"""The result of a run before anything is selected, silenced or held back; this part is cached."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.batch import Progress, lint_files
from ldlm_lint.config import Configured
from ldlm_lint.confirming import decide_all, once
from ldlm_lint.discover import Discovery, discover
from ldlm_lint.found import found_by_program
from ldlm_lint.in_steps import arranged
from ldlm_lint.linting import Overlay
from ldlm_lint.model import Finding, KnownLaunch, Problem
from ldlm_lint.placing import placed
from ldlm_lint.projects import Projects
from ldlm_lint.rules import linter
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.project.questions import Context

_GAVE_UP = "gave up"
Launch = tuple[str, str, int, str, str, str]
"""A file, and the fields of the `KnownLaunch` that runs it."""


class Decision(NamedTuple):
    """The files that were linted, the errors that prevented linting others, and the findings that the project confirms.

    ``unseen``, ``excluded`` and ``warnings`` are those of the report. ``launches`` are those of the only scripts that
    launch a file with a finding.
    """

    files: tuple[tuple[Path, Kind], ...]
    problems: tuple[Problem, ...]
    findings: tuple[Finding, ...]
    unseen: tuple[tuple[str, int], ...]
    excluded: int
    launches: tuple[Launch, ...]
    warnings: tuple[Problem, ...] = ()


def decision_of(
    paths: Sequence[Path],
    configured: Configured,
    base: Path,
    overlay: Overlay,
    *,
    session: Cache | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Decision:
    """Find the files below ``paths``, lint each by itself and ask the project; arguments as for `ldlm_lint.engine.run`."""
    if session is None or overlay:
        return _decided(paths, configured, base, overlay, session, jobs, progress)
    from ldlm_lint.cache import decisions

    key = decisions.key(paths, configured, base)
    remembered = decisions.recall(session, key)
    if remembered is not None:
        return remembered
    decision = _decided(paths, configured, base, overlay, session, jobs, progress)
    session.lasting = all(map(_lasts, decision.findings))
    if session.lasting:
        decisions.remember(session, key, decision)
    return decision


def _lasts(finding: Finding) -> bool:
    """Whether another run over the same contents would give the same result; not if time or memory ran out."""
    if finding.rule == linter.UNREADABLE_FILE.symbol:
        return not str(dict(finding.args).get("error", "")).startswith(_GAVE_UP)
    return finding.rule != linter.INTERNAL_ERROR.symbol


def _decided(
    paths: Sequence[Path],
    configured: Configured,
    base: Path,
    overlay: Overlay,
    session: Cache | None,
    jobs: int,
    progress: Progress | None,
) -> Decision:
    found = discovered(paths, configured, Path(configured.run.root or base), overlay, session)
    projects = Projects([path.as_posix() for path, _ in found.files], configured, overlay, session, paths)
    results = lint_files(found.files, configured, overlay, projects, session=session, jobs=jobs, progress=progress)
    decided = list(decide_all(results, configured, projects))
    decided += found_by_program(found.files, decided, configured, projects)
    findings = tuple(arranged(list(placed(once(decided), projects)), projects))
    found_in = {finding.span.path for finding in findings}
    launches = tuple(sorted(_launches(projects.known, found_in)))
    projects.forget()
    return Decision(
        files=found.files,
        problems=found.problems,
        findings=findings,
        unseen=tuple((result.path, line) for result in results for line in result.unseen),
        excluded=found.excluded,
        launches=launches,
        warnings=found.warnings,
    )


def discovered(
    paths: Sequence[Path], configured: Configured, root: Path, overlay: Overlay, session: Cache | None
) -> Discovery:
    """The files below paths, as `ldlm_lint.discover.discover` finds them, or from the cache of a session."""
    if session is None or any(path.as_posix() in overlay for path in paths):
        return discover(paths, configured, root, overlay)
    return session.discover(paths, configured, root)


def _launches(contexts: Iterable[Context], paths: Collection[str]) -> Iterable[Launch]:
    """The first launch of the only script that launches a file, by the file, if the launches are already known."""
    launches: dict[str, dict[str, KnownLaunch]] = defaultdict(dict)
    for context in contexts:
        for launch, files in context.known_launches(paths):
            for path in files:
                launches[path].setdefault(launch.script, launch)
    only = ((path, next(iter(found.values()))) for path, found in launches.items() if len(found) == 1)
    # A script for a batch system cannot be run directly.
    return ((path, *launch) for path, launch in only if launch.script.endswith((".sh", ".bash")))
