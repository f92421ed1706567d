"""The torch versions of a project's programs, for fixes that use newer interfaces."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint import tables
from ldlm_lint.model import Interface
from ldlm_lint.patterns import lazily
from ldlm_lint.project.traits import Trait
from ldlm_lint.requirements import Floor, TorchVersion, bounding_files, floors
from ldlm_lint.source import Kind

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
_ENVIRONMENT = Trait(lazily(rb"^[ \t]*-[^#\n]*torch", re.M), (b"torch",), beside=lazily(rb"^dependencies[ \t]*:", re.M))
# Files of a folder that only lists packages: it has no code.
_LISTS = ("requirements.txt", "environment.yml", "environment.yaml")


class _Bound(NamedTuple):
    """A bound of torch, and the folder whose code it governs."""

    folder: str
    floor: Floor


class TorchVersions:
    """The versions of torch that a project allows; ``told`` returns the one in the configuration of a file, which
    decides alone."""

    def __init__(self, project: Project, told: Callable[[str], TorchVersion | None] = lambda path: None) -> None:
        self._project = project
        self._told = told
        self._older: dict[str, list[OlderTorch]] = {}

    def why_lacking(self, path: str, needs: Sequence[Interface]) -> str:
        """Why a torch version of a file lacks one of these interfaces, as text; empty if none is known to."""
        if not needs:
            return ""
        newest = max(needs, key=lambda one: one.since)
        missing = f"but {newest.name} needs torch {_words(newest.since)}"
        told = self._told(path)
        if told is not None:
            return f"target-torch is {_words(told)}, {missing}" if told < newest.since else ""
        bounds = list(self._bounds_of(path))
        oldest = min(bounds, default=None)
        if oldest is not None and oldest.version < newest.since:
            return f"{self._relative(oldest.path)} allows torch {_words(oldest.version)} ({oldest.requirement}), {missing}"
        if not all(one.open for one in bounds):
            return ""
        place = self._branch(path, newest.since)
        return f"{place[0]}:{place[1].line} has a branch for torch before {_words(place[1].before)}, {missing}" if place else ""

    def _bounds_of(self, path: str) -> Iterator[Floor]:
        """The bounds for a file: those of the folders above it, and of the folders of its program's code."""
        programs = self._programs(path)
        for folder, floor in self._bounds:
            below = folder.rstrip("/") + "/"
            if path.startswith(below) or any(one.startswith(below) for one in programs):
                yield floor

    def _programs(self, path: str) -> list[str]:
        """The files that run in one program with a file; only itself if it is not Python."""
        if path not in self._project.files:
            return [path]
        return [path, *self._project.universe.joined(self._project.reach(path), self._project.importers(path))]

    @cached_property
    def _bounds(self) -> list[_Bound]:
        root = Path(self._project.root)
        found = [(folder, floors(Path(folder), root, self._environments.get(folder, ()))) for folder in self._folders()]
        return [_Bound(self._governed(folder), floor) for folder, allowed in found for floor in allowed]

    @cached_property
    def _environments(self) -> dict[str, list[str]]:
        """The conda environments of the project with torch, under any name, by folder."""
        found: dict[str, list[str]] = {}
        for path in self._project.of_kind(Kind.YAML):
            if _ENVIRONMENT.shows(self._project.data(path)):
                self._project.note("file", path)
                found.setdefault(posixpath.dirname(path), []).append(path)
        return found

    def _folders(self) -> Iterator[str]:
        """The folders of the project that may bound torch."""
        for folder in sorted(self._known):
            self._project.note("listing", folder)
            try:
                with os.scandir(folder) as entries:
                    kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
            except OSError:
                continue
            files = bounding_files(Path(folder), kinds)
            for path in files:
                self._project.note("file", path)
            if files or folder in self._environments:
                yield folder
            others = (posixpath.join(folder, name) for name, is_folder in kinds.items() if is_folder and not name.startswith("."))
            yield from (one for one in others if one not in self._known and self._lists_packages(one))

    def _lists_packages(self, folder: str) -> bool:
        paths = [posixpath.join(folder, name) for name in _LISTS]
        for path in paths:
            self._project.note("file", path)
        return any(map(os.path.isfile, paths))

    @cached_property
    def _known(self) -> frozenset[str]:
        """The folders that hold files of the project, themselves or below."""
        root = self._project.root
        return frozenset(_around((*self._project.files, *self._project.others), root)) | {root}

    @cached_property
    def _coded(self) -> frozenset[str]:
        """The folders that hold Python, themselves or below."""
        return frozenset(_around(self._project.files, self._project.root))

    def _governed(self, folder: str) -> str:
        """The folder whose code a folder's requirements apply to: one without code applies to the folder above."""
        root = self._project.root
        while folder not in self._coded and folder != root and folder.startswith(root):
            folder = posixpath.dirname(folder)
        return folder

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


def _around(paths: Iterable[str], root: str) -> set[str]:
    """The folders of paths, and all folders around them up to the root."""
    found: set[str] = set()
    for folder in {path.rpartition("/")[0] for path in paths}:
        while folder not in found and folder.startswith(root):
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def _words(version: TorchVersion) -> str:
    return ".".join(map(str, version))
