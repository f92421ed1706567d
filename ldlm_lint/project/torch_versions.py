"""The torch versions of a project's programs: what their files say, which modules they import that newer versions no longer
have, and what a branch of the code says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.model import Interface
from ldlm_lint.project.traits import Trait
from ldlm_lint.requirements import PYTHON, TORCH, Bound, Package, TorchVersion
from ldlm_lint.requirements.choice import Choice, chosen, together
from ldlm_lint.requirements.levels import Levels

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.python.torch_branches import OlderTorch

_NEW = b"|".join(sorted({name.rpartition(".")[2].encode() for name in tables.dated_names()}))
# Without one of these a file has no branch for an older torch: its version, a question for a new name, an import that
# is in a block.
_ASKS = Trait(
    re.compile(
        rb"torch\.(?:torch_)?(?:version\.)?__version__|torch[\w.]* import[^\n]*__version__|hasattr\([^()]*,\s*[\"'](?:%s)[\"']"
        rb"|^[ \t]+from torch[\w.]* import[^\n]*\b(?:%s)\b" % (_NEW, _NEW),
        re.M,
    ),
    (b"__version__", b"hasattr(", b"from torch"),
)


_REMOVED: TorchVersion = (2, 0)
_IMPORTS_REMOVED = Trait(re.compile(rb"^(?:from|import)[ \t]+torch\._six\b[^\n#]*", re.M), (b"torch._six",))
"""A program with this import, under no condition, does not start on torch 2.0: https://github.com/pytorch/pytorch/pull/94709."""


class TorchVersions:
    """The versions of torch that a project allows; ``told`` returns the one in the configuration of a file, which
    decides alone."""

    def __init__(self, project: Project, told: Callable[[str], TorchVersion | None] = lambda path: None) -> None:
        self._project = project
        self._told = told
        self._older: dict[str, list[OlderTorch]] = {}
        self._chosen: dict[tuple[str, str], Choice] = {}
        self._of: dict[str, Choice] = {}

    def of(self, path: str) -> Choice:
        """The torch that a file runs on, and the requirements that say so."""
        told = self._told(path)
        if told is not None:
            return Choice(told, told)
        if path not in self._of:
            self._of[path] = self._that_starts(path, self._of_programs(TORCH, path))
        return self._of[path]

    def _that_starts(self, path: str, choice: Choice) -> Choice:
        """The versions of a choice on which the programs of a file start."""
        removing = self._project.showing(_IMPORTS_REMOVED)
        if not removing or path not in self._project.files or (choice.newest is not None and choice.newest < _REMOVED):
            return choice
        if choice.oldest is not None and choice.oldest >= _REMOVED:
            return choice
        starts = [one for one in self._project.importers(path) if not self._project.importers(one) - {one}] or [path]
        found = [self._project.reach(one) & removing for one in starts]
        if not all(found):
            return choice
        allowed = tuple(one for one in TORCH.versions if one < _REMOVED)
        bounds = [self._import_in(next(iter(one)), allowed) for one in found]
        return Choice(choice.oldest, allowed[-1], tuple(dict.fromkeys((*choice.bounds, *bounds))), tuple(dict.fromkeys((*choice.all, *bounds))))

    def _import_in(self, path: str, allowed: tuple[TorchVersion, ...]) -> Bound:
        """The bound that an import of a removed module is."""
        data = self._project.data(path)
        match = _IMPORTS_REMOVED.pattern.search(data)
        assert match is not None
        return Bound(TORCH.name, path, data.count(b"\n", 0, match.start()) + 1, match[0].decode(errors="replace").strip(), allowed, None)

    def python_of(self, path: str) -> Choice:
        """The Python that a file runs on, and the requirements that say so."""
        return self._of_programs(PYTHON, path)

    def lacks(self, path: str, needed: TorchVersion) -> bool:
        """Whether every torch that a file runs on is older than a version."""
        newest = self.of(path).newest
        return newest is not None and newest < needed

    def against(self, path: str, needed: TorchVersion) -> list[Bound]:
        """The requirements that choose an older torch for a file than a version, although others allow it."""
        choice = self.of(path)
        return [one for one in choice.bounds if one.newest is not None and one.newest < needed] if not self.lacks(path, needed) else []

    def others(self, path: str, needed: TorchVersion) -> str:
        """The requirements for a file that allow a version, as text."""
        fitting = [one for one in self.of(path).bounds if one.newest is None or one.newest >= needed]
        return ", ".join(dict.fromkeys(f"{self._relative(one.path)} ({one.text})" for one in fitting))

    def why_lacking(self, path: str, needs: Sequence[Interface]) -> str:
        """Why a torch version of a file lacks one of these interfaces, as text; empty if none is known to."""
        if not needs:
            return ""
        newest = max(needs, key=lambda one: one.since)
        missing = f"but {newest.name} needs torch {_words(newest.since)}"
        told = self._told(path)
        if told is not None:
            return f"target-torch is {_words(told)}, {missing}" if told < newest.since else ""
        bounds = self._of_all(path)
        oldest = min(bounds, key=lambda one: (one.floor, one.path, one.line), default=None)
        if oldest is not None and oldest.floor < newest.since:
            return f"{self._relative(oldest.path)} allows torch {_words(oldest.floor)} ({oldest.text}), {missing}"
        if any(one.lower is not None for one in bounds):
            return ""
        place = self._branch(path, newest.since)
        return f"{place[0]}:{place[1].line} has a branch for torch before {_words(place[1].before)}, {missing}" if place else ""

    def _of_all(self, path: str) -> list[Bound]:
        """The bounds of the programs that a file is part of, of whatever strength."""
        found = [bound for one in self._programs(path) for bound in self._around(TORCH, one).all if bound.allowed or bound.lower]
        return list(dict.fromkeys(found))

    def _of_programs(self, package: Package, path: str) -> Choice:
        """What the files around a file say; if they say nothing, what all programs with it say."""
        own = self._around(package, path)
        if own.bounds:
            return own
        programs = [self._around(package, one) for one in self._programs(path) if one != path]
        return together(programs) if programs and all(one.bounds for one in programs) else own

    def _around(self, package: Package, path: str) -> Choice:
        folder = posixpath.dirname(path)
        if (package.name, folder) not in self._chosen:
            self._chosen[package.name, folder] = chosen(package, self._levels.around(folder, self._project.root))
        return self._chosen[package.name, folder]

    @cached_property
    def _levels(self) -> Levels:
        return Levels(self._project.note)

    def _programs(self, path: str) -> list[str]:
        """The files that run in one program with a file; only itself if it is not Python."""
        if path not in self._project.files:
            return [path]
        return [path, *self._project.universe.joined(self._project.reach(path), self._project.importers(path))]

    def _branch(self, path: str, since: TorchVersion) -> tuple[str, OlderTorch] | None:
        """A branch in the programs of a file for torch versions before a version."""
        asking = self._project.showing(_ASKS) & self._project.plain
        for one in self._programs(path):
            for branch in self._branches(one) if one in asking else ():
                if branch.before <= since:
                    return self._relative(one), branch
        return None

    def _branches(self, path: str) -> list[OlderTorch]:
        from ldlm_lint.python.torch_branches import older_torch

        if path not in self._older:
            self._older[path] = self._project.trees.glance(path, lambda module, _: older_torch(module)) or []
        return self._older[path]

    def _relative(self, path: str) -> str:
        return posixpath.relpath(path, self._project.root)


def _words(version: TorchVersion) -> str:
    return ".".join(map(str, version))
