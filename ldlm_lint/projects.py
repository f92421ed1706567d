"""The projects of a run, each created at the first question about one of its files."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.budget import Clock
from ldlm_lint.config import Config, Configured, may_be_project, root_among
from ldlm_lint.discover import kind_of_head, kind_of_name, project_files
from ldlm_lint.garbage_collection import bring_back
from ldlm_lint.source import Kind, UnreadableError, read_bytes
from ldlm_lint.tomlfile import ConfigError

if TYPE_CHECKING:
    from ldlm_lint.cache.contract import Cache
    from ldlm_lint.project.flows import Flows
    from ldlm_lint.project.questions import Context
    from ldlm_lint.project.tables import Tabled, Tables
    from ldlm_lint.requirements import TorchVersion


class Projects:
    """The projects that its files belong to.

    ``linted`` are the paths of the files of the run (absolute, forward slashes), ``overlay`` contents that are not on
    disk yet, ``configured`` says which files belong to a project, ``session`` is the cache of earlier runs, ``named``
    are the files and directories named for the run.
    """

    def __init__(
        self,
        linted: Sequence[str],
        configured: Configured,
        overlay: Mapping[str, bytes],
        session: Cache | None = None,
        named: Sequence[Path] = (),
    ) -> None:
        self._linted = linted
        self._configured = configured
        self._overlay = overlay
        self._session = session
        self._named = named
        self._roots: dict[str, str] = {}
        self._clocks: dict[str, Clock] = defaultdict(Clock)
        self._flows: Flows | None = None
        self._tables: Tables | None = None
        self._contexts: dict[str, Context] = {}

    def __reduce__(self) -> tuple[type[Projects], tuple[Sequence[str], Configured, Mapping[str, bytes], None, Sequence[Path]]]:
        """Another process creates its own projects and does not get the session."""
        return Projects, (self._linted, self._configured, self._overlay, None, self._named)

    @property
    def known(self) -> Iterable[Context]:
        """The projects that were used."""
        return self._contexts.values()

    def forget(self) -> None:
        """Release all analyses: they reference each other and would wait for the garbage collector."""
        for context in self._contexts.values():
            for analysis in (context.project, *vars(context).values()):
                getattr(analysis, "__dict__", {}).clear()
            vars(context).clear()
        self._contexts.clear()
        self._flows = self._tables = None
        bring_back()

    def wants_table(self, path: str) -> bool:
        """Whether the linked program will take the table of a Python file."""
        return self._asks_program and not self.of(path).project.is_test(path)

    @cached_property
    def _asks_program(self) -> bool:
        from ldlm_lint.checkers.queries import queries
        from ldlm_lint.linting import selected_rules

        selected = selected_rules(self._configured.run)
        return any(not selected.isdisjoint(query.symbols) for query in queries())

    def learn_table(self, path: str, one: Tabled) -> None:
        """Take over the table of a file that was parsed anyway."""
        self._known_tables.put(path, one)

    @property
    def _known_tables(self) -> Tables:
        if self._tables is None:
            from ldlm_lint.project.tables import Tables

            self._tables = Tables()
        return self._tables

    def _known_flows(self) -> Flows:
        if self._flows is None:
            from ldlm_lint.project.flows import Flows

            self._flows = Flows()
        return self._flows

    def of(self, path: str) -> Context:
        """The project that a file belongs to."""
        root = self._root_of(path)
        if root not in self._contexts:
            self._contexts[root] = self._context(root)
        return self._contexts[root]

    def warm(self) -> None:
        """Compute now what most questions depend on, so that forked processes need not each do it.

        With many projects it is unknown which will be needed.
        """
        if len({self._root_of(path) for path in self._linted}) == 1:
            _ = self.of(self._linted[0]).project.training_files

    def clock(self, path: str) -> Clock:
        """The time for questions to the project of a file."""
        return self._clocks[self._root_of(path)]

    @cached_property
    def _bases(self) -> list[Path]:
        """The project roots if none is marked: the named directories, else the directory that contains all named
        paths.
        """
        folders = [path for path in self._named if path.is_dir()]
        return folders or [base for base in (Path(self._configured.run.root),) if may_be_project(base)]

    def _root_of(self, path: str) -> str:
        folder = path.rpartition("/")[0]
        if folder not in self._roots:
            notes = () if self._session is None else (self._session.note,)
            self._roots[folder] = root_among(Path(path), self._bases, *notes).as_posix()
        return self._roots[folder]

    def _context(self, root: str) -> Context:
        """The project at a root: all its files as context, and those linted below it although they are ignored."""
        from ldlm_lint.project import Project
        from ldlm_lint.project.questions import Context

        below = root.rstrip("/") + "/"
        # A buffer of an editor may not be on disk yet.
        unsaved = (path for path in self._overlay if not os.path.lexists(path))
        named = {
            path: kind
            for path in (*self._linted, *unsaved)
            if path.startswith(below) and (kind := self._kind_of(path)) is not None
        }
        kinds = named | {path.as_posix(): kind for path, kind in self._below(root)}
        if self._session is not None:
            for path in kinds:
                if path not in self._overlay:
                    self._session.note("file", path)
        others = {path: kind for path, kind in kinds.items() if kind is not Kind.PYTHON}
        inner = self.programs_inside(path for path, kind in others.items() if kind is Kind.SHELL)
        files = (*(path for path, kind in kinds.items() if kind is Kind.PYTHON), *inner)
        texts = {**self._overlay, **inner}
        return Context(Project(root, files, texts, self._known_flows(), others, self._session, self._known_tables), self._told_torch, self.facts)

    def _kind_of(self, path: str) -> Kind | None:
        """The front end of a linted file by its name, of a buffer without a suffix by its first line."""
        kind = kind_of_name(path)
        return kind_of_head(Path(path), self._overlay[path]) if kind is None and path in self._overlay else kind

    def facts(self, path: str) -> Mapping[str, object]:
        """The facts for the rules of a file, see `Config.facts`."""
        return self._config(path).facts

    def _config(self, path: str) -> Config:
        """The configuration of a file; errors in it are reported when its own files are linted, and do not stop
        questions about other files."""
        try:
            return self._configured.of(path)
        except ConfigError:
            return Config()

    def programs_inside(self, scripts: Iterable[str]) -> dict[str, bytes]:
        """The Python programs inside of scripts: files of the project that are not on disk."""
        found: dict[str, bytes] = {}
        for path in scripts:
            data = self._script_with_programs(path)
            if data:
                from ldlm_lint.shell.embedded import programs_in

                found |= programs_in(path, data)
        return found

    def may_hold_programs(self, script: str) -> bool:
        """Whether a script may have Python programs inside it."""
        return bool(self._script_with_programs(script))

    def _script_with_programs(self, path: str) -> bytes:
        """The text of a script that may have Python programs inside it; empty for every other one."""
        with contextlib.suppress(OSError, UnreadableError):
            data = self._overlay[path] if path in self._overlay else read_bytes(Path(path))
            if b"<<" in data or (b"python" in data and b"-c" in data):
                return data
        return b""

    def _told_torch(self, path: str) -> TorchVersion | None:
        """The torch that the configuration of a file names."""
        config = self._config(path)
        return config.target_torch.oldest if config.names_torch else None

    def _below(self, root: str) -> tuple[tuple[Path, Kind], ...]:
        find = project_files if self._session is None else self._session.project_files
        return find(Path(root), self._configured).files
