"""Files in, report out: discover, lint each file by itself, then decide what rests on other files.

No globals, no working directory, no printing. A file's result depends on its bytes, the version and the
configuration alone; everything that needs a second file is a claim, answered by the project pass.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.config import Config
from ldlm_lint.decision import Decision, decision_of
from ldlm_lint.gate import EVERYTHING, Gate, stale
from ldlm_lint.linting import Overlay, selected_rules, source_of
from ldlm_lint.model import Finding, Problem, Report
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.rules import ALL, by_symbol, linter
from ldlm_lint.source import Source
from ldlm_lint.sources import Sources
from ldlm_lint.suppress import suppressions
from ldlm_lint.trades import with_trades

if TYPE_CHECKING:
    from ldlm_lint.batch import Progress
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.evidence.dossier import Dossier


def run(
    paths: Sequence[Path],
    config: Config,
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

    ``base`` is the directory that bounds symbolic links where a path has no project of its own. ``overlay`` gives
    contents (by absolute path with forward slashes) that take the place of what is on disk. What ``gate`` holds back
    is counted, and for fixes it is as good as suppressed. ``evidence`` is what probes saw of the findings.
    ``session`` is what earlier runs remember, ``jobs`` how many processes lint (0: as many as pay), ``progress`` is
    told of every file that is done.
    """
    overlay = overlay or {}
    decision = decision_of(paths, config, base, overlay, session=session, jobs=jobs, progress=progress)
    sources = Sources({path.as_posix(): kind for path, kind in decision.files}, overlay, dict(decision.scopes))
    decided = list(decision.findings)
    if any(is_notebook(finding.span.path) for finding in decided):
        from ldlm_lint.notebooks.order import known

        decided = known(decided, sources)
    joined = None
    if evidence is not None:
        from ldlm_lint.evidence.applied import applied

        joined = applied(
            decided, evidence, dict(decision.files), config, functools.partial(source_of, overlay=overlay), sources
        )
        decided = list(joined.findings)
    kept, withdrawn, suppressed = _select(decided, config, sources)
    kept += _unused(decided, decision, config, sources)
    kept = with_trades(kept, config)
    sifted = gate.sift(kept, sources, config.root)
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
        root=config.root,
        baselined=sifted.baselined,
        unchanged=len(sifted.held) - sifted.baselined,
        stale=stale(sifted.gone, config.root, paths, checked, functools.partial(_applies, config)),
        evidence=joined,
        launches={path: script for path, script in decision.launches if path in shown_in},
    )


def _unused(decided: list[Finding], decision: Decision, config: Config, sources: Sources) -> Iterator[Finding]:
    """The comments that silence none of the findings, where somebody asks for them."""
    selected = selected_rules(config)
    if linter.UNUSED_SUPPRESSION.symbol in selected:
        from ldlm_lint.unused import in_files

        paths = [path.as_posix() for path, _ in decision.files]
        yield from in_files(decided, paths, sources, lambda path: selected - config.ignored_at(path, ALL))


def _problems(findings: Iterable[Finding], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """What makes a run end with exit code 3: files that could not be read, and our own failures."""
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


def _select(
    findings: list[Finding], config: Config, sources: dict[str, Source]
) -> tuple[list[Finding], list[Finding], int]:
    """The findings that are selected and not silenced, the others, and how many of those a comment silences."""
    kept: list[Finding] = []
    withdrawn: list[Finding] = []
    silenced = 0
    pragmas = {}
    selected = selected_rules(config)
    for finding in findings:
        path = finding.span.path
        if finding.rule not in selected or finding.rule in config.ignored_at(path, ALL):
            withdrawn.append(finding)
            continue
        if path not in pragmas:
            pragmas[path] = suppressions(sources[path])
        covered = pragmas[path].covers(finding, by_symbol[finding.rule])
        (withdrawn if covered else kept).append(finding)
        silenced += covered
    return kept, withdrawn, silenced


def _applies(config: Config, symbol: str, path: str) -> bool:
    """Whether a rule speaks in this run about a path; one that no longer exists has spoken for the last time."""
    return symbol not in by_symbol or (symbol in selected_rules(config) and symbol not in config.ignored_at(path, ALL))
