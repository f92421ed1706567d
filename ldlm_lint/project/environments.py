"""The files of a project that set the environment of the same processes: callers and callees, sourced files, images."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches
    from ldlm_lint.project.sourcing import Sourcing

_FILE = lazily(rb"[\w.-]+\.(?:sh|bash|slurm|sbatch|py)\b")
_MODULE = lazily(rb"-m[ \t\"',]+([\w.]+)")
_COMMENT = lazily(rb"(?:^|(?<=\s))#[^\n]*")
# Variables of a whole image, or of any reader of an `.env` file.
_FOR_ALL = (Kind.DOCKERFILE, Kind.DOTENV)


class Environments:
    """The files of a project, connected by the processes that get their variables.

    A file passes them to the scripts it calls and the programs it starts. Names are enough here, since the answer only
    withholds fixes.
    """

    def __init__(self, project: Project, launches: Launches, sourcing: Sourcing) -> None:
        self._project = project
        self._launches = launches
        self._sourcing = sourcing

    def related(self, path: str, candidates: Iterable[str]) -> bool:
        """Whether a process may get variables of a file and of one of the candidates."""
        wanted = set(candidates) - {path}
        if any(self._project.others.get(one) in _FOR_ALL for one in (path, *wanted)):
            return bool(wanted)
        if not wanted.isdisjoint(self._near(path)):
            return True
        above = self._above(path)
        return any(one in above or path in self._above(one) or self._meets(above, one) for one in wanted)

    def _meets(self, above: frozenset[str], path: str) -> bool:
        """Whether one of the files above sources a file, or is sourced by it."""
        return any(path in self._near(one) for one in above)

    def _near(self, path: str) -> Collection[str]:
        """The files that run in one process with a file: sourced scripts, imported modules and their importers."""
        if self._project.others.get(path) is Kind.SHELL:
            return self._sourcing.around(path)
        if path not in self._project.files:
            return frozenset()
        return self._project.importers(path) | self._project.reach(path)

    def _above(self, path: str) -> frozenset[str]:
        """The files that start a file, directly or through others."""
        found: set[str] = set()
        waiting = [path]
        while waiting:
            one = waiting.pop()
            inside = {one} | (set(self._near(one)) if one in self._project.files else set())
            more = {starter for part in inside for starter in self._starters.get(posixpath.basename(part), ())}
            waiting += sorted(more - found)
            found |= more
        return frozenset(found - {path})

    @cached_property
    def _starters(self) -> dict[str, set[str]]:
        """The scripts and configurations that name a file, by its last name."""
        found: dict[str, set[str]] = {}
        for path in self._project.others:
            data = _COMMENT.sub(b"", self._project.data(path))
            names = {name.decode() for name in _FILE.findall(data)}
            names |= {f"{name.decode().rpartition('.')[2]}.py" for name in _MODULE.findall(data)}
            for name in names - {posixpath.basename(path)}:
                found.setdefault(name, set()).add(path)
        for program in self._launches.programs:
            if program.entry is not None:
                found.setdefault(posixpath.basename(program.entry), set()).add(program.path)
        return found
