"""Files in, report out: discover, lint each file by itself, then decide what rests on other files.

No globals, no working directory, no printing. A file's result depends on its bytes, the version and the
configuration alone; everything that needs a second file is a claim, answered by the project pass.
"""

from __future__ import annotations

import ast
import functools
import traceback
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover, kind_of_name
from ldlm_lint.gate import EVERYTHING, Gate, stale
from ldlm_lint.model import FileResult, Finding, Problem, Report, Span
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules import ALL, by_symbol, linter
from ldlm_lint.source import Kind, Source, UnreadableError
from ldlm_lint.suppress import suppressions

if TYPE_CHECKING:
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.project.questions import Context
    from ldlm_lint.python.flow import ModuleFlow

Overlay = Mapping[str, bytes]


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
    found = discover(paths, config, Path(config.root) if config.root else base)
    sources: dict[str, Source] = {}
    results = [lint_file(path, kind, config, overlay, sources) for path, kind in found.files]
    contexts: dict[str, Context] = {}
    decided = list(_once(_decide(results, config, overlay, contexts)))
    joined = None
    if evidence is not None:
        from ldlm_lint.evidence.applied import applied

        joined = applied(
            decided, evidence, dict(found.files), config, functools.partial(_source, overlay=overlay), sources
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


def _source(path: str, kind: Kind, overlay: Overlay) -> Source:
    return Source.from_bytes(path, overlay[path], kind) if path in overlay else Source.read(Path(path), kind)


def _problems(findings: Iterable[Finding], sources: Mapping[str, Source]) -> Iterator[Problem]:
    """What makes a run end with exit code 3: files that could not be read, and our own failures."""
    grave = {linter.UNREADABLE_FILE.symbol, linter.INTERNAL_ERROR.symbol}
    for finding in findings:
        if finding.rule in grave:
            line, _ = sources[finding.span.path].position(finding.span.start)
            yield Problem(finding.span.path, line, by_symbol[finding.rule].text(finding.args))


def lint_file(path: Path, kind: Kind, config: Config, overlay: Overlay, sources: dict[str, Source]) -> FileResult:
    """The result of one file; the source of a file with findings is put into ``sources``."""
    name = path.as_posix()
    try:
        source = _source(name, kind, overlay)
    except UnreadableError as error:
        return _unreadable(path, kind, error, sources)
    at_risk = rules_at_risk(source.data, kind) - _idle(config)
    if not at_risk and _parses(source):
        return FileResult(name)
    try:
        result = _lint(source, config, at_risk)
    except Exception as error:
        result = FileResult(name, (_internal_error(source.span(0, 0), error),))
    if result.findings:
        sources[name] = source
    return result


def _idle(config: Config) -> frozenset[str]:
    """The opt-in rules that nobody has asked for; those of the default set may take part in a fix of others."""
    return frozenset(rule.symbol for rule in ALL if not rule.default) - _selected(config)


def _internal_error(span: Span, error: Exception) -> Finding:
    """What a defect of ours leaves of a file or a finding; the others go on."""
    rule = linter.INTERNAL_ERROR
    where = traceback.extract_tb(error.__traceback__)[-1].name
    return Finding(rule.symbol, rule.code, span, (("error", f"{where}: {type(error).__name__}: {error}"),))


def _lint(source: Source, config: Config, at_risk: frozenset[str]) -> FileResult:
    if source.kind is Kind.SHELL:
        from ldlm_lint.shell.lint import lint as lint_shell

        return lint_shell(source, config.facts)
    if source.kind is not Kind.PYTHON:
        from ldlm_lint.configs.lint import lint as lint_config

        return lint_config(source, config.facts)
    from ldlm_lint.checkers.host import lint as lint_python
    from ldlm_lint.project.index import dotted_name

    return lint_python(source, dotted_name(source.path, config.root), config.facts, at_risk)


def _parses(source: Source) -> bool:
    """Whether a file without any trigger is at least Python; a script is read in full only where a trigger stands."""
    if source.kind is not Kind.PYTHON:
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _unreadable(path: Path, kind: Kind, error: UnreadableError, sources: dict[str, Source]) -> FileResult:
    """A finding at the offending line of a file whose text cannot be shown."""
    name = path.as_posix()
    # The report asks every source for lines and columns; this one answers for a file that has none to show.
    blank = Source(name, b"\n" * (error.line - 1), kind)
    sources[name] = blank
    rule = linter.UNREADABLE_FILE
    finding = Finding(rule.symbol, rule.code, blank.span(error.line - 1, error.line - 1), (("error", str(error)),))
    return FileResult(name, (finding,))


def _decide(
    results: Sequence[FileResult], config: Config, overlay: Overlay, contexts: dict[str, Context]
) -> Iterator[Finding]:
    """The findings that stand on their own, and those whose claims the project confirms.

    The projects that had to be asked, by their roots, are put into ``contexts``.
    """
    from ldlm_lint.project import decide

    flows = {result.path: result.flow for result in results if result.flow is not None}
    linted = [result.path for result in results]
    selected = _selected(config)
    for finding in (finding for result in results for finding in result.findings):
        if finding.rule not in selected and not (finding.fix and finding.fix.group):
            # Nobody sees it, and no other finding's fix hangs on it: the project need not be asked.
            continue
        if not finding.claims:
            yield finding
            continue
        path = Path(finding.span.path)
        root = project_root(path).as_posix()
        if root not in contexts:
            contexts[root] = _context(root, linted, config, overlay, flows)
        try:
            decided = decide(finding, contexts[root])
        except Exception as error:
            decided = _internal_error(finding.span, error)
        if decided is not None:
            yield decided


def _once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, each place of a script or configuration once for each rule: two readers of a value are one defect."""
    seen: set[tuple[str, Span]] = set()
    for finding in findings:
        place = (finding.rule, finding.span)
        if place not in seen or kind_of_name(finding.span.path) is Kind.PYTHON:
            yield finding
        seen.add(place)


def _context(
    root: str, linted: Iterable[str], config: Config, overlay: Overlay, flows: Mapping[str, ModuleFlow]
) -> Context:
    """The project at a root: all its files as context, and those linted below it although they are ignored."""
    from ldlm_lint.project import Project
    from ldlm_lint.project.questions import Context

    below = root.rstrip("/") + "/"
    named = {path: kind for path in linted if path.startswith(below) and (kind := kind_of_name(path)) is not None}
    kinds = named | {path.as_posix(): kind for path, kind in discover([Path(root)], config, Path(root)).files}
    files = (path for path, kind in kinds.items() if kind is Kind.PYTHON)
    others = {path: kind for path, kind in kinds.items() if kind is not Kind.PYTHON}
    return Context(Project(root, files, overlay, flows, others))


def _add_related(findings: Iterable[Finding], overlay: Overlay, sources: dict[str, Source]) -> None:
    """Add the sources of the files that findings point to, for their lines and columns."""
    for path in {related.span.path for finding in findings for related in finding.related} - sources.keys():
        sources[path] = _source(path, kind_of_name(path) or Kind.SHELL, overlay)


def _select(
    findings: list[Finding], config: Config, sources: dict[str, Source]
) -> tuple[list[Finding], list[Finding], int]:
    """The findings that are selected and not silenced, the others, and how many of those a comment silences."""
    kept: list[Finding] = []
    withdrawn: list[Finding] = []
    silenced = 0
    pragmas = {}
    selected = _selected(config)
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


def _selected(config: Config) -> frozenset[str]:
    return config.selected(ALL) | {rule.symbol for rule in linter.RULES if rule.default}


def _applies(config: Config, symbol: str, path: str) -> bool:
    """Whether a rule speaks in this run about a path; one that no longer exists has spoken for the last time."""
    return symbol not in by_symbol or (symbol in _selected(config) and symbol not in config.ignored_at(path, ALL))
