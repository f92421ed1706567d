"""One run of the engine for pylint: over the files that it checks, and the scripts and configuration files of their projects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import engine
from ldlm_lint.cache.memory import Memory
from ldlm_lint.cache.session import opened
from ldlm_lint.config import common_directory, may_be_project, project_root, root_among
from ldlm_lint.linting import Overlay
from ldlm_lint.model import Finding
from ldlm_lint.project.index import dotted_name
from ldlm_lint.pylint_host.selection import Selection
from ldlm_lint.rules.linter import UNPARSABLE_FILE, UNREADABLE_FILE
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache

_BROKEN = {UNPARSABLE_FILE.symbol, UNREADABLE_FILE.symbol}


class Noted(NamedTuple):
    """A file that pylint checks, its name of the module, and whether a comment of pylint's switches on rules of ours."""

    path: str
    module: str
    switches_on: bool


class Run:
    """The run over ``noted`` files (modules by path); ``modules`` are the names of all modules of pylint's.

    ``texts`` replace the files on disk.
    """

    def __init__(self, noted: Mapping[str, str], modules: Collection[str], selection: Selection, texts: Overlay) -> None:
        self._noted = noted
        self._modules = modules
        self._selection = selection
        self._texts = texts
        paths = [Path(path) for path in noted] or [Path.cwd()]
        self._session: Cache = opened(project_root(common_directory(paths))) or Memory()

    def findings(self, *, jobs: int) -> Iterator[tuple[Finding, Source, str]]:
        """What is reported, with the text and the module of each file."""
        guessed = self._guessed
        paths = [Path(path) for path in sorted({*self._noted, *guessed, *self._scripts})]
        try:
            report = engine.run(
                paths, self._selection, base=Path.cwd(), overlay=self._texts, session=self._session, jobs=jobs
            )
        finally:
            self._session.close()
        broken = {finding.span.path for finding in report.findings if finding.rule in _BROKEN}
        # Modules first: pylint heads each with its name once, and all of these have been visited.
        for finding in sorted(report.findings, key=lambda one: one.span.path not in self._noted):
            path, source = finding.span.path, report.sources[finding.span.path]
            if (path not in guessed or path in broken) and self._selection.reports(finding, source):
                yield finding, source, self._noted.get(path) or guessed.get(path) or dotted_name(path, Path.cwd().as_posix())

    @property
    def folders(self) -> frozenset[str]:
        """The directories of all files but those that pylint could not parse."""
        return frozenset(path.rpartition("/")[0] for path in (*self._noted, *self._scripts))

    @property
    def first(self) -> tuple[str, str]:
        """The module and the path that stand for the whole run."""
        here = Path.cwd()
        return next(((module, path) for path, module in self._noted.items()), (here.name, here.as_posix()))

    @property
    def _scripts(self) -> list[str]:
        return [path for path, kind in self._files.items() if kind is not Kind.PYTHON]

    @cached_property
    def _guessed(self) -> dict[str, str]:
        """The files that pylint may have got and not parsed: it tells no more of these than the names of their modules."""
        found = {}
        for path, kind in self._files.items():
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            module = next((name for at in range(len(parts)) if (name := ".".join(parts[at:])) in self._modules), None)
            if kind is Kind.PYTHON and path not in self._noted and module is not None:
                found[path] = module
        return found

    @cached_property
    def _files(self) -> dict[str, Kind]:
        """The files of all projects."""
        found = (file for root in self._roots for file in self._session.project_files(root, self._selection).files)
        return {path.as_posix(): kind for path, kind in found}

    @cached_property
    def _roots(self) -> list[Path]:
        """The projects of the files, as the engine finds them; that of the working directory if there is no file."""
        bases = [base for base in (Path(self._selection.run.root),) if may_be_project(base)]
        return sorted({root_among(Path(path), bases) for path in self._noted}) or [project_root(Path.cwd())]
