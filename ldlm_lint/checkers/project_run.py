"""One project under pylint: each of its files linted once, and all of them decided together at the end."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import engine
from ldlm_lint.batch import config_key, may_be_kept
from ldlm_lint.cache.memory import Memory
from ldlm_lint.cache.session import opened
from ldlm_lint.checkers.selection import Asked, Selection
from ldlm_lint.linting import Overlay, lint_file, source_of
from ldlm_lint.model import FileResult, Finding, Report
from ldlm_lint.patterns import lazily
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.dated import dated
from ldlm_lint.rules.linter import UNPARSABLE_FILE, UNREADABLE_FILE
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache

# ``# pylint: enable=NAME``, which reports a rule in one file that is off elsewhere.
_ENABLES = lazily(rb"pylint:[^\n]*enable")
_BROKEN = {UNPARSABLE_FILE.symbol, UNREADABLE_FILE.symbol}


class Visit(NamedTuple):
    """The result of a file with a ``content``; ``new`` if it was not cached, ``wide`` if all rules ran.

    ``module`` is pylint's name of it.
    """

    result: FileResult
    content: str
    new: bool
    wide: bool
    module: str


class ProjectRun:
    """A project at a root, the cached results of its files, and the reported findings."""

    def __init__(self, root: Path, selection: Selection) -> None:
        self._root = root
        self._selection = selection
        self._session: Cache = opened(root) or Memory()

    def visit(self, path: str, module: str, texts: Overlay) -> Visit:
        """The result of a Python file, from its text in ``texts`` if there is one; raises ConfigError."""
        content = self._session.content(path)
        wide = _enables(path, texts)
        config = self._selection.asked(path, all_rules=wide)
        known = self._session.result(path, Kind.PYTHON, config_key(config)) if path not in texts else None
        result = known or lint_file(Path(path), Kind.PYTHON, config, texts, {})
        return Visit(result, content, known is None, wide, module)

    def certain(self, visit: Visit, texts: Overlay) -> Iterator[tuple[Finding, Source, bool]]:
        """The findings of a visited file that do not depend on other files, and whether a comment of pylint silences
        them.

        Silenced findings that depend on other files are included, since their comment is useful.
        """
        findings = visit.result.findings
        if not findings or any(finding.rule in _BROKEN for finding in findings):
            return
        source = source_of(visit.result.path, Kind.PYTHON, texts)
        comments = suppressions(source)
        for finding in findings:
            rule = by_symbol[finding.rule]
            if any(comments.covering(finding, rule)):
                continue
            silenced = comments.covers(finding, rule)
            if silenced or (not finding.claims and rule.symbol not in dated() and self._selection.reports(finding, source, comments)):
                yield finding, source, silenced

    def rest(self, visited: Mapping[str, Visit], unparsed: Set[str], texts: Overlay) -> Iterator[tuple[Finding, Source]]:
        """The findings that need the whole project: in its scripts, in ``unparsed`` Python files, and those that depend
        on other files."""
        scripts = self._paths(python=False)
        report = self._report(visited, scripts | unparsed, texts)
        broken = {finding.span.path for finding in report.findings if finding.rule in _BROKEN}
        comments = functools.cache(lambda path: suppressions(report.sources[path]))
        # Modules first: pylint heads each with its name once, and all of these have been visited.
        for finding in sorted(report.findings, key=lambda one: one.span.path not in visited):
            path = finding.span.path
            if path in scripts | broken or (path in visited and finding.confirmed):
                source = report.sources[path]
                if self._selection.reports(finding, source, comments(path)):
                    yield finding, source

    @property
    def folders(self) -> frozenset[str]:
        """The directories with files of the project that pylint does not visit."""
        return frozenset(path.rpartition("/")[0] for path in self._paths(python=False))

    @property
    def python_files(self) -> frozenset[str]:
        """The paths of the Python files of the project."""
        return self._paths(python=True)

    @cached_property
    def _files(self) -> tuple[tuple[Path, Kind], ...]:
        return self._session.project_files(self._root, self._selection.configured).files

    def _paths(self, *, python: bool) -> frozenset[str]:
        return frozenset(path.as_posix() for path, kind in self._files if (kind is Kind.PYTHON) is python)

    def _report(self, visited: Mapping[str, Visit], others: Collection[str], texts: Overlay) -> Report:
        for path, visit in visited.items():
            # Another process may have read a file that no longer exists.
            if visit.new and path not in texts and may_be_kept(visit.result) and self._session.content(path) == visit.content:
                config = self._selection.asked(path, all_rules=visit.wide)
                self._session.keep(Kind.PYTHON, config_key(config), visit.result)
        paths = [Path(path) for path in sorted({*visited, *others})]
        wide = {path for path, visit in visited.items() if visit.wide}
        asked = Asked(self._selection, self._root.as_posix(), wide)
        try:
            return engine.run(paths, asked, base=self._root, overlay=texts, session=self._session)
        finally:
            self._session.close()


def _enables(path: str, texts: Overlay) -> bool:
    """Whether a comment of a file may switch on rules there; an unreadable file is reported elsewhere."""
    try:
        return _ENABLES.search(texts[path] if path in texts else Path(path).read_bytes()) is not None
    except OSError:
        return False
