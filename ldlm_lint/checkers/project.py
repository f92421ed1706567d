"""Brings the findings of the linter into pylint: of Python files, scripts, facts of other files, broken files.

pylint hands its plugins Python trees only, and an answer that rests on other files waits for all of them. So what each file
has given is collected, over all worker processes, and the engine asks their projects once at the end; what was reported with
a file is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from astroid import nodes
from pylint.checkers import BaseChecker
from pylint.utils import FileState

from ldlm_lint import engine
from ldlm_lint.batch import config_key, may_be_kept
from ldlm_lint.cache.memory import Memory
from ldlm_lint.cache.session import opened
from ldlm_lint.checkers import symbols_of
from ldlm_lint.checkers.messages import add_message, message_definitions
from ldlm_lint.collector import Settled, at_our_pace
from ldlm_lint.config import Config, may_be_project, project_root, root_among
from ldlm_lint.discover import project_files
from ldlm_lint.linting import Overlay, lint_file, source_of
from ldlm_lint.model import FileResult, Finding, Report, Severity
from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import dotted_name
from ldlm_lint.rules import ALL, by_symbol
from ldlm_lint.rules.linter import INTERNAL_ERROR, RULES, UNPARSABLE_FILE, UNREADABLE_FILE, UNUSED_SUPPRESSION
from ldlm_lint.select import Layer
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

if TYPE_CHECKING:
    from pylint.lint import PyLinter

    from ldlm_lint.cache.contract import Cache

# ``# pylint: enable=NAME``, which has a rule speak in one file that is off elsewhere.
_ENABLES = lazily(rb"pylint:[^\n]*enable")
_BROKEN = {UNPARSABLE_FILE.symbol, UNREADABLE_FILE.symbol}


class DeclaredChecker(BaseChecker):
    """The rules of a room as pylint has to know them: by name and message. `ProjectChecker` brings their findings."""

    def __init__(self, linter: PyLinter, room: str) -> None:
        self.name = f"ldlm-{room.replace('_', '-')}"
        self.msgs = message_definitions(by_symbol[symbol] for symbol in sorted(symbols_of(room)))
        super().__init__(linter)


class ProjectChecker(BaseChecker):
    """The linter's own rules, and the findings of all others: of each file when it was visited, the rest at the end.

    A file is linted as the command does it, once, and what it gave is handed to the run over the project.
    """

    rules = RULES
    name = "ldlm-project"
    msgs = message_definitions(RULES)

    def __init__(self, linter: PyLinter) -> None:
        super().__init__(linter)
        # pylint asks disabled checkers for their map data without ever opening them.
        self._visited: dict[str, _Visit] = {}
        self._texts: dict[str, bytes] = {}
        self._projects: dict[Path, _Linted] = {}
        self._settled = Settled()

    def open(self) -> None:
        """Called once for a run in one process, before pylint makes its trees; with workers this is called per file."""
        if self.linter.config.jobs == 1:
            self._settled.begin()

    def leave_module(self, node: nodes.Module) -> None:
        """Report what the file tells by itself; a failure of ours is a message, since it would cost all others of the file."""
        try:
            with at_our_pace():
                self._take(node)
        except Exception as error:
            failure = {"error": f"leave_module: {type(error).__name__}: {error}"}
            self.linter.add_message(INTERNAL_ERROR.symbol, line=1, col_offset=0, args=failure)

    def _take(self, node: nodes.Module) -> None:
        if not node.file:
            return
        path = Path(node.file).absolute()
        if node.file_bytes is not None:
            # What stdin holds takes the place of the file.
            self._texts[path.as_posix()] = bytes(node.file_bytes)
        project = self._project(_root_of(path))
        visit = self._visited[path.as_posix()] = project.visit(path.as_posix(), self._texts)
        result = visit.result
        if not any(finding.rule in _BROKEN for finding in result.findings):
            for finding, source in project.certain(result, self._texts):
                add_message(self.linter, finding, source)

    def close(self) -> None:
        """Report at the end of a run in one process; with workers this is called per file."""
        if self.linter.config.jobs == 1:
            try:
                self._report_projects(self._visited)
            finally:
                self._settled.end()

    def get_map_data(self) -> list[_Visit]:
        """What the files have given that this worker has visited since it was last asked."""
        visited, self._visited = self._visited, {}
        return list(visited.values())

    def reduce_map_data(self, linter: PyLinter, data: list[list[_Visit]]) -> None:
        """Report in the parent process, once for all workers."""
        self._report_projects({one.result.path: one for visits in data for one in visits})

    def _project(self, root: Path) -> _Linted:
        if root not in self._projects:
            self._projects[root] = _Linted(root, tuple(one for one in by_symbol if self.linter.is_message_enabled(one)))
        return self._projects[root]

    def _report_projects(self, visited: Mapping[str, _Visit]) -> None:
        files: dict[Path, dict[str, _Visit]] = defaultdict(dict)
        for path, visit in visited.items():
            files[_root_of(Path(path))][path] = visit
        if not files:
            files[project_root(Path.cwd())] = {}
        # The state of the last module would answer for the lines of every other file.
        self.linter.file_state = FileState("", self.linter.msgs_store, is_base_filestate=True)
        with at_our_pace():
            for root in sorted(files):
                self._report_project(root, files[root])

    def _report_project(self, root: Path, visited: Mapping[str, _Visit]) -> None:
        project = self._project(root)
        found = project_files(root, project.config).files
        scripts = {path.as_posix() for path, kind in found if kind is not Kind.PYTHON}
        broken = set(self._not_visited((path.as_posix() for path, kind in found if kind is Kind.PYTHON), visited, root))
        report = project.report(visited, scripts | broken, self._texts)
        cut_short = {finding.span.path for finding in report.findings if finding.rule in _BROKEN}
        for finding in report.findings:
            path = finding.span.path
            if path in scripts | cut_short or (path in visited and finding.confirmed):
                self._emit(finding, report)

    def _not_visited(self, paths: Iterable[str], visited: Collection[str], root: Path) -> Iterator[str]:
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


class _Visit(NamedTuple):
    """What a file gave when it had a ``content``; ``new`` if no earlier run has left it, ``wide`` if all rules were asked."""

    result: FileResult
    content: str
    new: bool
    wide: bool


def _root_of(path: Path) -> Path:
    """The root of a file's project; where none is marked, the directory that pylint runs in is taken for one."""
    here = Path.cwd()
    return root_among(path, [here] if may_be_project(here) else [])


def _enables(path: str, texts: Overlay) -> bool:
    """Whether a comment of a file may switch on rules there; one that cannot be read says so elsewhere."""
    try:
        return _ENABLES.search(texts[path] if path in texts else Path(path).read_bytes()) is not None
    except OSError:
        return False


class _Linted:
    """A project under pylint, and what earlier runs have left of its files.

    pylint selects: of the rules that are off in it only those are asked that a comment may switch on, and all where somebody
    wants to know which comments silence nothing.
    """

    def __init__(self, root: Path, enabled: tuple[str, ...]) -> None:
        self.config = Config.load(root)
        self._root = root
        everything = replace(
            self.config, select=("ALL",), extend_select=(), ignore=(), overrides=Layer(), exclude=(), level=Severity.INFO
        )
        narrow = everything if UNUSED_SUPPRESSION.symbol in enabled else replace(everything, select=enabled)
        self._configs = {False: narrow, True: everything}
        self._keys = {wide: config_key(config) for wide, config in self._configs.items()}
        self._session: Cache = opened(root) or Memory()

    def visit(self, path: str, texts: Overlay) -> _Visit:
        """What a Python file gives, from its text where ``texts`` hold one."""
        content = self._session.content(path)
        wide = _enables(path, texts)
        known = self._session.result(path, Kind.PYTHON, self._keys[wide]) if path not in texts else None
        result = known or lint_file(Path(path), Kind.PYTHON, self._configs[wide], texts, {})
        return _Visit(result, content, known is None, wide)

    def certain(self, result: FileResult, texts: Overlay) -> Iterator[tuple[Finding, Source]]:
        """The findings that wait for no other file, unless the file or the configuration silences them."""
        certain = [finding for finding in result.findings if not finding.claims]
        if certain:
            source = source_of(result.path, Kind.PYTHON, texts)
            silenced, ignored = suppressions(source), self.config.ignored_at(result.path, ALL)
            for finding in certain:
                if finding.rule not in ignored and not silenced.covers(finding, by_symbol[finding.rule]):
                    yield finding, source

    def report(self, visited: Mapping[str, _Visit], others: Collection[str], texts: Overlay) -> Report:
        """What the project says of the files that were visited, and of ``others`` in it."""
        for path, visit in visited.items():
            # Another process may have read what is no longer there.
            if visit.new and path not in texts and may_be_kept(visit.result) and self._session.content(path) == visit.content:
                self._session.keep(Kind.PYTHON, self._keys[visit.wide], visit.result)
        paths = [Path(path) for path in sorted({*visited, *others})]
        config = self._configs[any(visit.wide for visit in visited.values())]
        try:
            return engine.run(paths, config, base=self._root, overlay=texts, session=self._session)
        finally:
            self._session.close()
