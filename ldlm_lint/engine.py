"""Files in, report out: discover, lint each file by itself, then decide what rests on other files.

No globals, no working directory, no printing. A file's result depends on its bytes, the version and the
configuration alone; everything that needs a second file is a claim, answered by the project pass.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.config import Config
from ldlm_lint.deciding import decide_all, once
from ldlm_lint.discover import discover, kind_of_name
from ldlm_lint.gate import EVERYTHING, Gate, stale
from ldlm_lint.linting import Overlay, lint_file, selected_rules, source_of
from ldlm_lint.model import Finding, Problem, Report
from ldlm_lint.rules import ALL, by_symbol, linter
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

if TYPE_CHECKING:
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.project.questions import Context


def run(
    paths: Sequence[Path],
    config: Config,
    *,
    base: Path,
    overlay: Overlay | None = None,
    gate: Gate = EVERYTHING,
    evidence: Dossier | None = None,
) -> Report:
    """Lint the files below ``paths`` (absolute) and return what was found, decided, selected and sorted.

    ``base`` is the directory that bounds symbolic links where a path has no project of its own. ``overlay`` gives
    contents (by absolute path with forward slashes) that take the place of what is on disk. What ``gate`` holds back
    is counted, and for fixes it is as good as suppressed. ``evidence`` is what probes saw of the findings.
    """
    overlay = overlay or {}
    found = discover(paths, config, Path(config.root) if config.root else base, overlay)
    sources: dict[str, Source] = {}
    results = [lint_file(path, kind, config, overlay, sources) for path, kind in found.files]
    contexts: dict[str, Context] = {}
    decided = list(once(decide_all(results, config, overlay, contexts)))
    joined = None
    if evidence is not None:
        from ldlm_lint.evidence.applied import applied

        joined = applied(
            decided, evidence, dict(found.files), config, functools.partial(source_of, overlay=overlay), sources
        )
        decided = list(joined.findings)
    kept, withdrawn, suppressed = _select(decided, config, sources)
    sifted = gate.sift(kept, sources, config.root)
    shown = merge_groups(kept, [*withdrawn, *sifted.held])
    _add_related(shown, overlay, sources)
    problems = [*found.problems, *_problems(decided, sources)]
    checked = {result.path for result in results} - {problem.path for problem in problems}
    return Report(
        findings=tuple(sorted(shown, key=lambda finding: finding.order)),
        problems=tuple(sorted(problems, key=lambda problem: (problem.path, problem.line))),
        files=len(results) - sum(finding.rule == linter.UNREADABLE_FILE.symbol for finding in decided),
        suppressed=suppressed,
        unseen=sum(result.unseen for result in results),
        excluded=found.excluded,
        requested=len(paths),
        sources=sources,
        root=config.root,
        baselined=sifted.baselined,
        unchanged=len(sifted.held) - sifted.baselined,
        stale=stale(sifted.gone, config.root, paths, checked, functools.partial(_applies, config)),
        evidence=joined,
        launches=_launches(contexts.values(), {finding.span.path for finding in shown}),
    )


def _launches(contexts: Iterable[Context], paths: Collection[str]) -> dict[str, str]:
    """The only script that launches a file, by the file, where the projects' launches are known anyway."""
    scripts: dict[str, set[str]] = defaultdict(set)
    for context in contexts:
        for program in context.known_programs:
            runs = context.project.reach(program.entry) if program.entry is not None else frozenset()
            for path in {program.path, *(use.path for use in program.configs), *runs}.intersection(paths):
                scripts[path].add(program.path)
    only = {path: next(iter(found)) for path, found in scripts.items() if len(found) == 1}
    # What a batch system starts cannot be run as it stands.
    return {path: script for path, script in only.items() if script.endswith((".sh", ".bash"))}


def _problems(findings: Iterable[Finding], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """What makes a run end with exit code 3: files that could not be read, and our own failures."""
    grave = {linter.UNREADABLE_FILE.symbol, linter.INTERNAL_ERROR.symbol}
    for finding in findings:
        if finding.rule in grave:
            line, _ = sources[finding.span.path].position(finding.span.start)
            yield Problem(finding.span.path, line, by_symbol[finding.rule].text(finding.args))


def _add_related(findings: Iterable[Finding], overlay: Overlay, sources: dict[str, Source]) -> None:
    """Add the sources of the files that findings point to, for their lines and columns."""
    for path in {related.span.path for finding in findings for related in finding.related} - sources.keys():
        sources[path] = source_of(path, kind_of_name(path) or Kind.SHELL, overlay)


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
