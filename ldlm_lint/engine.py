"""Files in, report out: discover, lint each file by itself, then decide what depends on other files.

No globals, no working directory, no printing. A file's result depends on its bytes, the version and the configuration
alone; everything that needs a second file is a claim, which the project pass answers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.autofix.choices import respecting_choices
from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.config import Config, Configured
from ldlm_lint.decision import Decision, decision_of
from ldlm_lint.gate import EVERYTHING, Gate, stale
from ldlm_lint.linting import Overlay, selected_rules, source_of
from ldlm_lint.model import Finding, KnownLaunch, Problem, Report
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.reach import Reach
from ldlm_lint.rules import ALL, by_symbol, linter
from ldlm_lint.source import Source
from ldlm_lint.sources import Sources
from ldlm_lint.suppress import suppressions
from ldlm_lint.tomlfile import ConfigError
from ldlm_lint.trades import with_trades

if TYPE_CHECKING:
    from ldlm_lint.batch import Progress
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.evidence.dossier import Dossier


def run(
    paths: Sequence[Path],
    configured: Configured,
    *,
    base: Path,
    overlay: Overlay | None = None,
    gate: Gate = EVERYTHING,
    evidence: Dossier | None = None,
    session: Cache | None = None,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Lint the files below ``paths`` (absolute) and return what was found, decided, selected and sorted.

    ``configured`` gives the configuration of each file; one `Config` applies to all. Raises ConfigError for that of the
    run. ``base`` is the directory that bounds symbolic links where a path has no project of its own. ``overlay`` gives
    contents (by absolute path with forward slashes) that replace the file on disk. Findings that ``gate`` holds back
    are counted, and not fixed. ``evidence`` is the evidence of probes. ``session`` is the cache of earlier runs,
    ``jobs`` how many processes lint (0: as many as are worth starting), ``progress`` is called for every finished file.
    """
    overlay = overlay or {}
    root = configured.run.root
    decision = decision_of(paths, configured, base, overlay, session=session, jobs=jobs, progress=progress)
    sources = Sources({path.as_posix(): kind for path, kind in decision.files}, overlay)
    decided = list(decision.findings)
    if any(is_notebook(finding.span.path) for finding in decided):
        from ldlm_lint.notebooks.order import known

        decided = known(decided, sources)
    joined = None
    if evidence is not None:
        from ldlm_lint.evidence.applied import applied

        joined = applied(
            decided, evidence, dict(decision.files), configured, functools.partial(source_of, overlay=overlay), sources
        )
        decided = [_seen(finding) for finding in joined.findings]
    kept, withdrawn, suppressed = _select(decided, configured, sources)
    kept += _unused(decided, decision, configured, sources)
    kept = respecting_choices(with_trades(kept, configured), sources)
    sifted = gate.sift(kept, sources, root)
    shown = merge_groups(kept, [*withdrawn, *sifted.held])
    _add_related(shown, sources)
    if any(map(is_notebook, sources)):
        from ldlm_lint.notebooks.fixes import bounded, in_cells

        shown = in_cells(bounded(shown, sources), sources)
    problems = [*decision.problems, *_problems(decided, sources)]
    checked = {path.as_posix() for path, _ in decision.files} - {problem.path for problem in problems}
    shown_in = {finding.span.path for finding in shown}
    return Report(
        findings=tuple(sorted(shown, key=lambda finding: finding.order)),
        problems=tuple(sorted(problems, key=lambda problem: (problem.path, problem.line))),
        files=len(decision.files) - sum(finding.rule == linter.UNREADABLE_FILE.symbol for finding in decided),
        suppressed=suppressed,
        unseen=decision.unseen,
        excluded=decision.excluded,
        requested=len(paths),
        sources=sources,
        root=root,
        baselined=sifted.baselined,
        unchanged=len(sifted.held) - sifted.baselined - sifted.unsure,
        unsure=sifted.unsure,
        stale=stale(sifted.gone, root, paths, checked, functools.partial(_applies, configured)),
        evidence=joined,
        launches={launch[0]: KnownLaunch(*launch[1:]) for launch in decision.launches if launch[0] in shown_in},
        warnings=decision.warnings,
    )


def _seen(finding: Finding) -> Finding:
    """The finding; if a probe observed it, its code counts as reached, whatever the project's text suggests."""
    unreached = finding.standing is not None and finding.standing.reach is Reach.UNREACHED
    if unreached and finding.evidence is not None and finding.evidence.was_seen:
        return finding._replace(standing=None)
    return finding


def _unused(decided: list[Finding], decision: Decision, configured: Configured, sources: Sources) -> Iterator[Finding]:
    """The comments that silence none of the findings, in the files where that rule is on."""
    paths = [name for path, _ in decision.files if _asks_for_unused(configured.of(name := path.as_posix()))]
    if paths:
        from ldlm_lint.unused import in_files

        yield from in_files(decided, paths, sources, lambda path: applied_rules(configured.of(path), path))


def _asks_for_unused(config: Config) -> bool:
    return linter.UNUSED_SUPPRESSION.symbol in selected_rules(config)


def _problems(findings: Iterable[Finding], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """The reasons for exit code 3: files that could not be read, and our own failures."""
    grave = {linter.UNREADABLE_FILE.symbol, linter.INTERNAL_ERROR.symbol}
    for finding in findings:
        if finding.rule in grave:
            line, _ = sources[finding.span.path].position(finding.span.start)
            yield Problem(finding.span.path, line, by_symbol[finding.rule].text(finding.args))


def _add_related(findings: Iterable[Finding], sources: Sources) -> None:
    """Read the files that findings point to, for their lines and columns."""
    for finding in findings:
        for related in finding.related:
            sources[related.span.path]
        if finding.in_step is not None:
            for span in (finding.in_step.step, finding.in_step.loop):
                sources[(span or finding.span).path]


def _select(
    findings: list[Finding], configured: Configured, sources: dict[str, Source]
) -> tuple[list[Finding], list[Finding], int]:
    """The findings that are selected and not silenced, the others, and how many of those a comment silences."""
    kept: list[Finding] = []
    withdrawn: list[Finding] = []
    silenced = 0
    pragmas = {}
    for finding in findings:
        path = finding.span.path
        if not _applies(configured, finding.rule, path) or finding.severity < configured.of(path).level:
            withdrawn.append(finding)
            continue
        if path not in pragmas:
            pragmas[path] = suppressions(sources[path])
        covered = pragmas[path].covers(finding, by_symbol[finding.rule])
        (withdrawn if covered else kept).append(finding)
        silenced += covered
    return kept, withdrawn, silenced


def applied_rules(config: Config, path: str) -> frozenset[str]:
    """The symbols of the rules that a configuration applies to a file."""
    return selected_rules(config) - config.ignored_at(path, ALL)


def _applies(configured: Configured, symbol: str, path: str) -> bool:
    """Whether a rule can report in this run about a path; none can about a path that no longer exists."""
    try:
        return symbol not in by_symbol or symbol in applied_rules(configured.of(path), path)
    except ConfigError:
        # The project is not checked, and another project's finding does not belong to this run.
        return False
