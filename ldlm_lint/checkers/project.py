"""Passes the findings of the linter to pylint: of Python files, scripts, facts of other files, broken files.

pylint passes only Python trees to its plugins, and an answer that depends on other files waits for all of them. So the
results of all files are collected, over all worker processes, and the engine queries their projects once at the end;
findings already reported with a file are skipped.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from astroid import nodes
from pylint.checkers import BaseChecker
from pylint.constants import MSG_TYPES_LONG
from pylint.exceptions import EmptyReportError

from ldlm_lint.checkers.messages import (
    add_fault,
    add_ignored,
    add_message,
    add_message_at,
    between_modules,
    excuse,
    message_definitions,
    turn_to,
)
from ldlm_lint.checkers.project_run import ProjectRun, Visit
from ldlm_lint.checkers.selection import Selection
from ldlm_lint.checkers.switches import told
from ldlm_lint.config import may_be_project, project_root, root_among
from ldlm_lint.configurations import Configurations
from ldlm_lint.families import ALL_FAMILIES, UMBRELLAS
from ldlm_lint.garbage_collection import Settled, at_our_pace
from ldlm_lint.linting import source_of
from ldlm_lint.model import FileResult
from ldlm_lint.project.index import dotted_name
from ldlm_lint.rules import ALL
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.source import Kind, UnreadableError
from ldlm_lint.tomlfile import ConfigError

if TYPE_CHECKING:
    from pylint.lint import PyLinter
    from pylint.reporters.ureports.nodes import Section
    from pylint.utils import LinterStats


class FamilyChecker(BaseChecker):
    """The rules of a family for pylint: names and messages. `ProjectChecker` reports their findings."""

    def __init__(self, linter: PyLinter, family: str) -> None:
        self.name = UMBRELLAS[family]
        self.msgs = message_definitions(rule for rule in ALL if rule.family == family)
        super().__init__(linter)


class ProjectChecker(BaseChecker):
    """The findings of all rules: of each file when it was visited, the rest at the end.

    A file is linted once, as by the command, and its result goes to the run over the project. All rules are messages of
    this checker, so that its name selects all of them, and pylint runs it as long as one of them is on.
    """

    name = ALL_FAMILIES
    msgs = message_definitions(ALL)

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        # pylint asks disabled checkers for their map data without ever opening them.
        self._visited: dict[str, Visit] = {}
        self._texts: dict[str, bytes] = {}
        self._projects: dict[Path, ProjectRun] = {}
        self._settled = Settled()
        self._late: dict[str, dict[str, int]] = {}
        self.reports = (("RP6800", "Messages that wait for all files", self._count_late),)

    def open(self) -> None:
        """Called once for a run in one process, before pylint builds its trees; with workers this is called per
        file.
        """
        if self._is_alone:
            self._settled.begin()

    def leave_module(self, node: nodes.Module) -> None:
        """Report the findings of the file alone; a failure of ours becomes a message, since an exception would lose all
        others of the file."""
        try:
            with at_our_pace():
                self._take(node)
        except Exception as error:
            self._fail("leave_module", error)

    def close(self) -> None:
        """Report at the end of a run in one process; with workers this is called per file."""
        if self._is_alone:
            try:
                self._report_projects({visit.result.path: visit for visit in self.get_map_data()})
            finally:
                self._settled.end()

    def get_map_data(self) -> list[Visit]:
        """The results of the files that this worker has visited since the last call."""
        visited, self._visited = self._visited, {}
        return list(visited.values())

    def reduce_map_data(self, linter: PyLinter, data: list[list[Visit]]) -> None:
        """Report in the parent process, once for all workers."""
        counted = linter.stats.by_module
        before = {module: copy(counts) for module, counts in counted.items()}
        visited = {visit.result.path: visit for visits in data for visit in visits}
        self._report_projects(visited)
        modules = {visit.module for visit in visited.values()} & before.keys()
        self._late = {
            module: {kind: counted[module][kind] - before[module][kind] for kind in MSG_TYPES_LONG}  # type: ignore[literal-required]
            for module in modules
        }

    @property
    def _is_alone(self) -> bool:
        """Whether one process visits all files; stdin is never passed to a worker."""
        config = self.linter.config
        return bool(config.jobs == 1 or config.from_stdin)

    @cached_property
    def _selection(self) -> Selection:
        return Selection(told(self.linter), Configurations(Path.cwd()))

    def _take(self, node: nodes.Module) -> None:
        if not node.file or self._selection.is_empty:
            return
        path = Path(os.path.abspath(node.file)).as_posix()
        if node.file_bytes is not None:
            # The text from stdin replaces the file.
            self._texts[path] = bytes(node.file_bytes)
        module = self.linter.current_name
        try:
            if self._selection.configured.excludes(path, False):
                return
            project = self._project(_root_of(Path(path)))
            visit = self._visited[path] = project.visit(path, module, self._texts)
        except ConfigError:
            # Said once for all files, at the end.
            self._visited[path] = Visit(FileResult(path), "", False, False, module)
            return
        for finding, source, silenced in project.certain(visit, self._texts):
            (add_ignored if silenced else add_message)(self.linter, finding, source)
        self._excuse(path)

    def _excuse(self, path: str) -> None:
        """Keep comments that silence findings of the program; an unreadable file has its own finding."""
        with contextlib.suppress(UnreadableError):
            source = source_of(path, Kind.PYTHON, self._texts)
            if b"pylint:" in source.data:
                from ldlm_lint.checkers.by_program import of_program

                excuse(self.linter, source, of_program())

    def _project(self, root: Path) -> ProjectRun:
        if root not in self._projects:
            self._projects[root] = ProjectRun(root, self._selection)
        return self._projects[root]

    def _report_projects(self, visited: Mapping[str, Visit]) -> None:
        if self._selection.is_empty:
            return
        files: dict[Path, dict[str, Visit]] = defaultdict(dict)
        for path, visit in visited.items():
            files[_root_of(Path(path))][path] = visit
        if not files:
            files[project_root(Path.cwd())] = {}
        with at_our_pace(), between_modules(self.linter):
            self._report_configurations(files)
            for root in sorted(files):
                try:
                    self._report_project(root, files[root])
                except Exception as error:
                    module, path = next(((one.module, path) for path, one in files[root].items()), (root.name, root.as_posix()))
                    turn_to(self.linter, module, path)
                    self._fail("_report_project", error)

    def _report_configurations(self, files: Mapping[Path, Mapping[str, Visit]]) -> None:
        """Report errors in the settings of all these files, and of the scripts next to them, once each."""
        folders = {path.rpartition("/")[0] for visited in files.values() for path in visited}
        folders = folders.union(*(self._project(root).folders for root in files))
        for fault in sorted(self._selection.faults(folders)):
            add_fault(self.linter, fault)

    def _report_project(self, root: Path, visited: Mapping[str, Visit]) -> None:
        project = self._project(root)
        visited = {path: visit for path, visit in visited.items() if self._selection.is_usable(path)}
        unparsed = dict(self._not_visited(project.python_files, visited, root))
        for finding, source in project.rest(visited, unparsed.keys(), self._texts):
            path = finding.span.path
            module = visited[path].module if path in visited else unparsed.get(path) or dotted_name(path, Path.cwd().as_posix())
            add_message_at(self.linter, module, finding, source)

    def _not_visited(self, paths: Iterable[str], visited: Mapping[str, Visit], root: Path) -> Iterator[tuple[str, str]]:
        """The files that pylint got but could not parse, with the modules that it names."""
        modules = [name for name in self.linter.stats.by_module if name]
        for path in paths:
            name = "." + dotted_name(path, root.as_posix())
            module = next((one for one in modules if name.endswith("." + one)), None)
            if path not in visited and module is not None:
                yield path, module

    def _fail(self, where: str, error: Exception) -> None:
        failure = INTERNAL_ERROR.text((("error", f"{where}: {type(error).__name__}: {error}"),))
        self.linter.add_message(INTERNAL_ERROR.symbol, line=1, col_offset=0, args=(failure,))

    def _count_late(self, _: Section, stats: LinterStats, __: LinterStats | None) -> NoReturn:
        """Count late messages by module: pylint uses the workers' counts instead of its own."""
        for module, counts in self._late.items():
            for kind, count in counts.items():
                stats.by_module[module][kind] += count  # type: ignore[literal-required]
        self._late = {}
        raise EmptyReportError


def _root_of(path: Path) -> Path:
    """The root of a file's project; where none is marked, the directory that pylint runs in is used."""
    here = Path.cwd()
    return root_among(path, [here] if may_be_project(here) else [])

