"""Examples, tutorials and notebooks beside a library: programs that show how to use the package that a repository
builds.

They are short on purpose and are not trained with as they are. What another program imports, what a script or a
container outside of the folder starts, or what the README tells users to run is a training of the repository instead,
whatever its folder is called. So are the programs of a folder that does not use the package, and of a repository that builds none.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.notebooks import is_notebook
from ldlm_lint.project.builds import build_texts
from ldlm_lint.reach import Reach, Standing
from ldlm_lint.source import Kind
from ldlm_lint.vocabulary.asides import ASIDES

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches

_INIT = "__init__.py"
_SOURCES = "src"
_SETUP = "setup.py"


class Examples:
    """Tells which files of a project are examples, and of what."""

    def __init__(self, project: Project, launches: Callable[[], Launches]) -> None:
        self._project = project
        self._find_launches = launches
        self._root = project.root.rstrip("/")
        self._known: dict[str, Standing | None] = {}
        self._started: dict[str, bool] = {}
        self._shown: dict[str, str] = {}

    def standing(self, path: str) -> Standing | None:
        """The `Standing` of an example; None for a file that belongs to the library or to a training."""
        if path not in self._known:
            self._known[path] = self._judged(path)
        return self._known[path]

    def _judged(self, path: str) -> Standing | None:
        area = self._folder(path) if self._packages else ""
        beside = self._used_in(area) if area else ""
        if not beside and is_notebook(path):
            area, beside = "", self._beside_notebook(path)
        if not beside or not self._is_example(path, area):
            return None
        return Standing(Reach.EXAMPLE, f"{area}/" if area else path, beside)

    def _beside_notebook(self, path: str) -> str:
        """What a notebook is beside: the library, or for one that does not train itself a program that does."""
        return self._library or ("" if path in self._project.training_files else self._training_beside(path))

    def _is_example(self, path: str, area: str) -> bool:
        """Whether nothing outside of a folder of examples uses a file of it, or starts the files there."""
        if path in self._project.files:
            return not self._is_imported(path) and not self._is_started(area or path)
        if self._project.others.get(path) is not Kind.SHELL:
            return False
        entries = {one.entry for one in self._find_launches().starts if one.path == path}
        return bool(entries) and all(one is not None and self.standing(one) is not None for one in entries)

    def _folder(self, path: str) -> str:
        """The outermost folder around a file whose name is one for examples, outside of the package; else empty."""
        folder, found = posixpath.dirname(path), ""
        while folder.startswith(f"{self._root}/"):
            if folder in self._packages:
                return ""
            if not ASIDES.isdisjoint(re.split(r"[-_ ]", posixpath.basename(folder).lower())):
                found = folder
            folder = posixpath.dirname(folder)
        return found

    def _used_in(self, area: str) -> str:
        """The package of the repository that the files of a folder show; empty if they use none."""
        if area not in self._shown:
            names = {posixpath.basename(one) for one in self._packages}
            inside = (one for one in self._project.files if one.startswith(f"{area}/"))
            used = {name.partition(".")[0] for one in inside for name in self._project.skim(one).imports} & names
            self._shown[area] = self._library if self._library in used else min(used, default="")
        return self._shown[area]

    @cached_property
    def _packages(self) -> frozenset[str]:
        """The packages that the repository builds, without tests and examples: those at its top, in ``src``, or in a
        folder at the top that has the build."""
        return frozenset(self._package_folders())

    def _package_folders(self) -> Iterator[str]:
        for path in self._project.plain:
            folder, name = posixpath.split(path)
            around, own = posixpath.split(folder)
            if name == _INIT and ASIDES.isdisjoint((own.lower(),)) and self._is_built_in(around):
                yield folder

    def _is_built_in(self, folder: str) -> bool:
        if folder in (self._root, f"{self._root}/{_SOURCES}"):
            return bool(build_texts(self._project))
        return posixpath.dirname(folder) == self._root and f"{folder}/{_SETUP}" in self._project.files

    @cached_property
    def _library(self) -> str:
        """The name of the package with the most files; empty for a project that builds none."""
        sizes = {folder: sum(path.startswith(f"{folder}/") for path in self._project.plain) for folder in self._packages}
        return posixpath.basename(max(sorted(sizes), key=sizes.__getitem__)) if sizes else ""

    def _training_beside(self, path: str) -> str:
        """The program of the repository that trains and that a notebook is beside: in its folder, or in one above it."""
        folder = posixpath.dirname(path)
        trains = (one for one in self._project.training_files if not is_notebook(one))
        near = sorted((one for one in trains if f"{folder}/".startswith(f"{posixpath.dirname(one)}/")), key=lambda one: (-one.count("/"), len(one), one))
        return posixpath.relpath(near[0], self._root) if near else ""

    def _is_imported(self, path: str) -> bool:
        """Whether a program other than an example or a test imports a file."""
        project = self._project
        return any(one != path and not project.is_test(one) and not self._folder(one) and not is_notebook(one) for one in project.importers(path))

    def _is_started(self, area: str) -> bool:
        """Whether a script, a container or the README starts a program in a folder, or this file."""
        if area not in self._started:
            launches = self._find_launches()
            starts = (one.entry for one in launches.starts if one.entry is not None and not self._is_aside(one.path))
            self._started[area] = any(_is_in(one, area) for one in (*starts, *launches.documented))
        return self._started[area]

    def _is_aside(self, path: str) -> bool:
        return bool(self._folder(path)) or self._project.is_test(path)


def _is_in(path: str, area: str) -> bool:
    return path == area or path.startswith(f"{area}/")


__all__ = ["Examples"]
