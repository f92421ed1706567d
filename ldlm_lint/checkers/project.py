"""Brings into pylint what no visitor of a Python tree can say: scripts, facts of other files, broken files.

pylint hands its plugins Python trees only. So the paths of a run are collected, over all worker processes, and the
engine lints their projects once at the end; what the visitors have reported already is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from astroid import nodes
from pylint.utils import FileState

from ldlm_lint import engine
from ldlm_lint.checkers.base import LdlmChecker, add_message
from ldlm_lint.config import Config, project_root
from ldlm_lint.discover import discover
from ldlm_lint.model import Finding, Report, Severity
from ldlm_lint.project.index import dotted_name
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.linter import RULES, UNPARSABLE_FILE, UNREADABLE_FILE
from ldlm_lint.select import Layer
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter

_BROKEN = {UNPARSABLE_FILE.symbol, UNREADABLE_FILE.symbol}


class ProjectChecker(LdlmChecker):
    """The linter's own rules, and the findings of every family that are decided per project."""

    rules = RULES

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        # pylint asks disabled checkers for their map data without ever opening them.
        self._visited: set[str] = set()

    def visit_module(self, node: nodes.Module) -> None:
        """Remember the file."""
        if node.file:
            self._visited.add(Path(node.file).absolute().as_posix())

    def close(self) -> None:
        """Report at the end of a run in one process; with workers this is called per file."""
        if self.linter.config.jobs == 1:
            self._report_projects(self._visited)

    def get_map_data(self) -> list[str]:
        """The files that this worker has visited since it was last asked."""
        visited, self._visited = self._visited, set()
        return sorted(visited)

    def reduce_map_data(self, linter: PyLinter, data: list[list[str]]) -> None:
        """Report in the parent process, once for all workers."""
        self._report_projects({path for visited in data for path in visited})

    def _report_projects(self, visited: set[str]) -> None:
        files: dict[Path, set[str]] = defaultdict(set)
        for path in visited:
            files[project_root(Path(path))].add(path)
        if not files:
            files[project_root(Path.cwd())] = set()
        # The state of the last module would answer for the lines of every other file.
        self.linter.file_state = FileState("", self.linter.msgs_store, is_base_filestate=True)
        for root in sorted(files):
            self._report_project(root, files[root])

    def _report_project(self, root: Path, visited: set[str]) -> None:
        config = Config.load(root)
        found = discover([root], config, root).files
        scripts = {path.as_posix() for path, kind in found if kind is not Kind.PYTHON}
        broken = set(self._not_visited((path.as_posix() for path, kind in found if kind is Kind.PYTHON), visited, root))
        everything = replace(
            config, select=("ALL",), extend_select=(), ignore=(), overrides=Layer(), exclude=(), level=Severity.INFO
        )
        report = engine.run([Path(path) for path in sorted(visited | scripts | broken)], everything, base=root)
        cut_short = {finding.span.path for finding in report.findings if finding.rule in _BROKEN}
        for finding in report.findings:
            path = finding.span.path
            if path in scripts | cut_short or (path in visited and finding.confirmed):
                self._emit(finding, report)

    def _not_visited(self, paths: Iterable[str], visited: set[str], root: Path) -> Iterator[str]:
        """The files that pylint was given but has no tree of, since they do not parse; it tells only their module names."""
        modules = [f".{name}" for name in self.linter.stats.by_module if name]
        for path in paths:
            name = "." + dotted_name(path, root.as_posix())
            if path not in visited and any(name.endswith(module) for module in modules):
                yield path

    def _emit(self, finding: Finding, report: Report) -> None:
        rule = by_symbol[finding.rule]
        if not self.linter.is_message_enabled(rule.symbol):
            return
        source = report.sources[finding.span.path]
        assert isinstance(source, Source)
        self.linter.set_current_module(dotted_name(finding.span.path, Path.cwd().as_posix()), finding.span.path)
        add_message(self.linter, finding, source)
