"""Files in, report out: discover, lint each file by itself, then decide what rests on other files.

No globals, no working directory, no printing. A file's result depends on its bytes, the version and the
configuration alone; everything that needs a second file is a claim, answered by the project pass.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover
from ldlm_lint.model import FileResult, Finding, Problem, Report
from ldlm_lint.python.skim import without_comments
from ldlm_lint.rules import ALL, by_symbol, linter
from ldlm_lint.shell.lint import lint as lint_shell
from ldlm_lint.source import Kind, Source, UnreadableError
from ldlm_lint.suppress import suppressions

Overlay = Mapping[str, bytes]


def run(paths: Sequence[Path], config: Config, *, base: Path, overlay: Overlay | None = None) -> Report:
    """Lint the files below ``paths`` (absolute) and return what was found, decided, selected and sorted.

    ``base`` is the directory that bounds symbolic links where a path has no project of its own. ``overlay`` gives
    contents (by absolute path with forward slashes) that take the place of what is on disk.
    """
    overlay = overlay or {}
    found = discover(paths, config, Path(config.root) if config.root else base)
    sources: dict[str, Source] = {}
    results = [lint_file(path, kind, config, overlay, sources) for path, kind in found.files]
    decided = list(_decide([finding for result in results for finding in result.findings], config, overlay))
    shown, suppressed = _select(decided, config, sources)
    _add_related(shown, overlay, sources)
    problems = [*found.problems, *(problem for result in results for problem in result.problems)]
    return Report(
        findings=tuple(sorted(shown, key=lambda finding: finding.order)),
        problems=tuple(sorted(problems, key=lambda problem: (problem.path, problem.line))),
        files=sum(1 for result in results if not result.problems),
        suppressed=suppressed,
        unseen=sum(result.unseen for result in results),
        excluded=found.excluded,
        requested=len(paths),
        sources=sources,
    )


def lint_file(path: Path, kind: Kind, config: Config, overlay: Overlay, sources: dict[str, Source]) -> FileResult:
    """The result of one file; the source of a file with findings is put into ``sources``."""
    name = path.as_posix()
    try:
        source = Source.from_bytes(name, overlay[name], kind) if name in overlay else Source.read(path, kind)
    except UnreadableError as error:
        return _unreadable(path, kind, error, sources)
    if not may_break_a_rule(source.data, kind) and _parses(source):
        return FileResult(name)
    result = _lint(source, config)
    if result.findings:
        sources[name] = source
    internal = (finding for finding in result.findings if finding.rule == linter.INTERNAL_ERROR.symbol)
    problems = (Problem(name, source.position(one.span.start)[0], by_symbol[one.rule].text(one.args)) for one in internal)
    return replace(result, problems=(*result.problems, *problems))


def _lint(source: Source, config: Config) -> FileResult:
    if source.kind is Kind.SHELL:
        return lint_shell(source, config.options)
    from ldlm_lint.checkers.host import lint as lint_python
    from ldlm_lint.project.index import dotted_name

    return lint_python(source, dotted_name(source.path, config.root), config.options)


def may_break_a_rule(data: bytes, kind: Kind) -> bool:
    """Whether a file holds a trigger of a rule and none of its silencers; without, no rule about training can fire."""
    code = without_comments(data) if kind is Kind.PYTHON else data
    return any(
        triggers.search(code) and not (silencers and silencers.search(code)) for triggers, silencers in _prefilters(kind)
    )


@functools.cache
def _prefilters(kind: Kind) -> tuple[tuple[re.Pattern[bytes], re.Pattern[bytes] | None], ...]:
    """One pair of patterns for all rules without silencers, and one for each rule that has some."""
    rules = [rule for rule in ALL if kind.value in rule.reads and any(rule.triggers)]
    plain = [trigger for rule in rules if not rule.silencers for trigger in rule.triggers]
    special = [(_any_of(rule.triggers), _any_of(rule.silencers)) for rule in rules if rule.silencers]
    return ((_any_of(plain), None), *special)


def _any_of(words: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(b"|".join(re.escape(word) for word in sorted(set(words))) or b"(?!)")


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
    """A finding at the offending line of a file whose text cannot be shown, and the problem that makes exit code 3."""
    name = path.as_posix()
    # The report asks every source for lines and columns; this one answers for a file that has none to show.
    blank = Source(name, b"\n" * (error.line - 1), kind)
    sources[name] = blank
    rule = linter.UNREADABLE_FILE
    finding = Finding(rule.symbol, rule.code, blank.span(error.line - 1, error.line - 1), (("error", str(error)),))
    return FileResult(name, (finding,), (Problem(name, error.line, rule.text(finding.args)),))


def _decide(findings: Iterable[Finding], config: Config, overlay: Overlay) -> Iterator[Finding]:
    """The findings that stand on their own, and those whose claims the project confirms."""
    contexts: dict[str, object] = {}
    for finding in findings:
        if not finding.claims:
            yield finding
            continue
        from ldlm_lint.project import decide

        context = _context(Path(finding.span.path), config, overlay, contexts)
        decided = decide(finding, context)
        if decided is not None:
            yield decided


def _context(path: Path, config: Config, overlay: Overlay, contexts: dict[str, object]) -> object:
    from ldlm_lint.project import Project
    from ldlm_lint.project.questions import Context

    root = project_root(path)
    if root.as_posix() not in contexts:
        files = (one.as_posix() for one, kind in discover([root], config, root).files if kind is Kind.PYTHON)
        contexts[root.as_posix()] = Context(Project(root.as_posix(), {*files, path.as_posix()}, overlay))
    return contexts[root.as_posix()]


def _add_related(findings: Iterable[Finding], overlay: Overlay, sources: dict[str, Source]) -> None:
    """Add the sources of the files that findings point to, for their lines and columns."""
    for path in {related.span.path for finding in findings for related in finding.related} - sources.keys():
        kind = Kind.PYTHON if path.endswith((".py", ".pyi", ".pyw")) else Kind.SHELL
        sources[path] = Source.from_bytes(path, overlay[path], kind) if path in overlay else Source.read(Path(path), kind)


def _select(findings: list[Finding], config: Config, sources: dict[str, Source]) -> tuple[list[Finding], int]:
    """The findings to show, fixes merged, and how many a comment silences."""
    selected = config.selected(ALL) | {rule.symbol for rule in linter.RULES}
    withdrawn: list[Finding] = []
    silenced = 0
    pragmas = {}
    for finding in findings:
        path = finding.span.path
        if finding.rule not in selected or finding.rule in config.ignored_at(path, ALL):
            withdrawn.append(finding)
            continue
        if path not in pragmas:
            pragmas[path] = suppressions(sources[path])
        if pragmas[path].covers(finding, by_symbol[finding.rule]):
            withdrawn.append(finding)
            silenced += 1
    return merge_groups(findings, withdrawn), silenced
