"""Code of a project that was copied in from another one: a published package as a folder, or files of another copyright
holder.

Copied code needs nothing of the project: a file that imports the project's own code was written for it, regardless of
the original copyright. A program that users start belongs to the project too, and so does a fork: others are compared
with the holder named by most files, or by the licence at the root.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.project.builds import build_texts
from ldlm_lint.project.holders import Holders, holders_of_licence, words_of
from ldlm_lint.reach import Reach, Standing
from ldlm_lint.tables.published import NEEDED, PUBLISHED

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches

_LICENCES = ("LICENSE", "LICENSE.txt", "LICENSE.md", "license.txt", "LICENCE", "COPYING", "COPYING.txt")
_OF_PROJECTS = ("setup.py", "setup.cfg", "pyproject.toml")
_OF_REPOSITORIES = ("README.md", "LICENSE")
_OF_OTHERS = frozenset({"third_party", "thirdparty", "3rdparty", "3rd_party", "vendored", "_vendor"})
_MAIN = b"__main__"
_MODEL_FILES = ("modeling_", "configuration_", "tokenization_")
_HUGGINGFACE = frozenset({"huggingface"})
_LEAST_FILES = 2
_FOREIGN_SHARE = 0.8
_MOST_LICENCE = 1 << 16


class Copied:
    """Tells which files of a project were copied in, and from where."""

    def __init__(self, project: Project, launches: Callable[[], Launches]) -> None:
        self._project = project
        self._find_launches = launches
        self._root = project.root.rstrip("/")
        self._folders: dict[str, Standing | None] = {}
        self._below: dict[str, tuple[str, ...]] = {}
        self._licences: dict[str, tuple[str, ...]] = {}

    def standing(self, path: str) -> Standing | None:
        """The `Standing` of a file that was copied in; None for the project's own."""
        for folder in self._around(path):
            if folder not in self._folders:
                self._folders[folder] = self._copied_folder(folder)
            if (found := self._folders[folder]) is not None:
                return None if self._is_launched(path, folder) else found
        return self._copied_file(path) if path in self._project.files else None

    def _is_launched(self, path: str, folder: str) -> bool:
        """Whether a program in copied code is one that the project's own scripts start."""
        if _MAIN not in self._project.data(path) or path not in self._project.files:
            return False
        return any(one.entry == path and not one.path.startswith(f"{folder}/") for one in self._find_launches().starts)

    def _around(self, path: str) -> Iterator[str]:
        """The folders that a file is in, the outermost first; the root is among them only inside of a larger
        repository."""
        root, folders = self._root, []
        folder = posixpath.dirname(path)
        while folder.startswith(root) and folder != root:
            folders.append(folder)
            folder = posixpath.dirname(folder)
        if self._is_part:
            folders.append(root)
        return reversed(folders)

    def _copied_folder(self, folder: str) -> Standing | None:
        origin = self._published(folder) or self._of_others(folder)
        if not origin and folder != self._root:
            origin = self._licensed(folder) or self._held_by_others(folder)
        return Standing(Reach.COPIED, f"{folder}/", origin) if origin else None

    def _published(self, folder: str) -> str:
        """The published package in a folder, alone or together with its build files."""
        name = posixpath.basename(folder)
        if self._is_published(folder, name):
            return name
        if not any(self._exists(f"{folder}/{one}") for one in _OF_PROJECTS):
            return ""
        for name in PUBLISHED:
            for inner in (f"{folder}/{name}", f"{folder}/src/{name}"):
                # Files next to a package that a project is built from belong to the project.
                if self._holds_package(inner, name) and 2 * len(self._in(inner)) >= len(self._in(folder)):
                    return name
        return ""

    def _is_published(self, folder: str, name: str) -> bool:
        if not self._holds_package(folder, name) or self._is_own_package(folder):
            return False
        # Without a build, the main package of a repository is at its top.
        is_top = posixpath.dirname(folder) in (self._root, f"{self._root}/src")
        return not is_top or 2 * len(self._in(folder)) < len(self._holders.words)

    def _holds_package(self, folder: str, name: str) -> bool:
        return sum(self._has_module(folder, one) for one in PUBLISHED.get(name, ())) >= NEEDED

    def _has_module(self, folder: str, name: str) -> bool:
        return f"{folder}/{name}.py" in self._project.files or f"{folder}/{name}" in self._all_folders

    @cached_property
    def _all_folders(self) -> frozenset[str]:
        """The folders with Python files in them, directly or in subfolders."""
        found: set[str] = set()
        for path in self._project.universe.paths:
            folder = posixpath.dirname(path)
            while folder not in found and len(folder) > len(self._root):
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    def _is_own_package(self, folder: str) -> bool:
        """Whether a folder is the package that the project builds: it is next to its ``setup.py``, or in ``src``.

        The build names it, or it has the most code of all folders there.
        """
        around, name = posixpath.dirname(folder), posixpath.basename(folder)
        beside = posixpath.dirname(around) if posixpath.basename(around) == "src" else around
        if beside != self._root or self._is_part:
            return False
        texts = build_texts(self._project)
        named = re.compile(rb"(?m)^[ \t]*name[ \t]*=[ \t]*[\"']%s" % re.escape(name.encode()))
        return bool(texts) and (any(map(named.search, texts)) or self._is_largest(folder))

    def _is_largest(self, folder: str) -> bool:
        around = posixpath.dirname(folder) + "/"
        tops = Counter(path[len(around) :].partition("/")[0] for path in self._holders.words if path.startswith(around) and "/" in path[len(around) :])
        return tops[posixpath.basename(folder)] >= max(tops.values(), default=0)

    def _of_others(self, folder: str) -> str:
        """The code in a folder named as one for third-party code."""
        if posixpath.basename(folder) in _OF_OTHERS:
            # Each of several projects is judged separately.
            return "" if any(posixpath.dirname(path) != folder for path in self._in(folder)) else self._told(folder)
        return posixpath.basename(folder) if posixpath.basename(posixpath.dirname(folder)) in _OF_OTHERS else ""

    def _told(self, folder: str) -> str:
        return self._most(self._in(folder)) or "other projects"

    def _licensed(self, folder: str) -> str:
        """The holder whose licence is in a folder that other code of the project uses."""
        holders = self._licence(folder)
        words = frozenset().union(*map(words_of, holders))
        files = self._in(folder)
        if not words or words & self._holders.beside(files) or not self._needs_nobody(files, words):
            return ""
        # A whole project under another licence is used as a library, however it is found.
        whole = bool(self._licence(self._repository)) and any(self._exists(f"{folder}/{one}") for one in _OF_PROJECTS)
        return holders[0] if whole or self._is_library(folder) else ""

    def _held_by_others(self, folder: str) -> str:
        """The holder of nearly all files of a folder that other code of the project uses."""
        files, holders = self._in(folder), self._holders
        own = holders.beside(files)
        foreign = [path for path in files if holders.words[path] and not holders.words[path] & own]
        if not own or len(foreign) < max(_LEAST_FILES, _FOREIGN_SHARE * len(files)) or 2 * len(files) >= len(holders.words):
            return ""
        words = frozenset().union(*(holders.words[path] for path in foreign))
        return self._most(foreign) if self._needs_nobody(files, words) and self._is_library(folder) else ""

    def _copied_file(self, path: str) -> Standing | None:
        """A single file of another holder if the files around it name no holder, or a model from transformers."""
        origin = self._upstream(path)
        words = self._holders.words.get(path)
        if not origin and words and not words & self._holders.own and self._names_holders and not self._is_adopted(path):
            origin = self._most((path,))
        return Standing(Reach.COPIED, path, origin) if origin else None

    def _upstream(self, path: str) -> str:
        """The package that a file of a model was taken from: a tool generated it there, or its head still names the
        holder."""
        generated = self._project.generated_from(path)
        if generated and not any(self._has_module(self._root + below, generated) for below in ("", "/src")):
            return generated
        if not posixpath.basename(path).startswith(_MODEL_FILES) or _HUGGINGFACE & self._holders.main:
            return ""
        return "transformers" if _HUGGINGFACE & self._holders.words.get(path, frozenset()) and self._is_used_alone(path) else ""

    def _is_adopted(self, path: str) -> bool:
        """Whether a file of another holder now belongs to the project: it is a program or trains, or own files are next
        to it."""
        if _MAIN in self._project.data(path) or self._project.skim(path).trains or not self._is_used_alone(path):
            return True
        folder, holders = posixpath.dirname(path), self._holders
        return any(words & holders.own for one, words in holders.words.items() if posixpath.dirname(one) == folder)

    def _is_used_alone(self, path: str) -> bool:
        return self._is_used({path}) and self._needs_nobody((path,), self._holders.words[path])

    def _is_library(self, folder: str) -> bool:
        """Whether code outside of a folder uses it, and the project itself is not built from it."""
        return not self._is_own_package(folder) and self._is_used(frozenset(self._in(folder)))

    def _needs_nobody(self, files: Collection[str], words: frozenset[str]) -> bool:
        """Whether these files only need each other and files of the same holders."""
        inside, known = frozenset(files), self._holders.words
        return all(one in inside or known.get(one, words) & words for path in files for one in self._project.imported_by(path))

    def _is_used(self, files: Collection[str]) -> bool:
        importers = (self._project.importers(path) for path in files)
        return any(one not in files and not self._project.is_test(one) for found in importers for one in found)

    def _most(self, files: Iterable[str]) -> str:
        """The holder named by most of these files."""
        counts = Counter(holder for path in files for holder in self._project.holders(path)[:1])
        return counts.most_common(1)[0][0] if counts else ""

    def _in(self, folder: str) -> tuple[str, ...]:
        """The files with code below a folder."""
        if folder not in self._below:
            self._below[folder] = tuple(one for one in self._holders.words if one.startswith(f"{folder}/"))
        return self._below[folder]

    @cached_property
    def _holders(self) -> Holders:
        project = self._project
        licensed = frozenset().union(*map(words_of, self._licence(self._repository)))
        # An empty __init__.py names no holder and imports nothing.
        files = (path for path in project.plain if not path.endswith("/__init__.py") or project.skim(path).imports or project.skim(path).defined)
        return Holders(self._root, {path: frozenset().union(*map(words_of, project.holders(path))) for path in files}, licensed)

    @cached_property
    def _names_holders(self) -> bool:
        """Whether the project usually names the holder at the head of a file."""
        holders = self._holders
        return 2 * sum(bool(words & holders.own) for words in holders.words.values()) >= len(holders.words)

    @cached_property
    def _repository(self) -> str:
        """The root of the repository that the project is in: the nearest folder upwards with ``.git``.

        Without one, as in a copy, the folder above if it has a licence or a README; else the project's own root.
        """
        folder = self._root
        while folder and folder != posixpath.dirname(folder):
            if self._exists(f"{folder}/.git"):
                return folder
            folder = posixpath.dirname(folder)
        around = posixpath.dirname(self._root)
        return around if any(self._exists(f"{around}/{one}") for one in _OF_REPOSITORIES) else self._root

    @property
    def _is_part(self) -> bool:
        return self._repository != self._root

    def _exists(self, path: str) -> bool:
        self._project.note("exists", path)
        return os.path.exists(path)

    def _licence(self, folder: str) -> tuple[str, ...]:
        """The holders that the licence in a folder names."""
        if folder not in self._licences:
            self._licences[folder] = next((found for name in _LICENCES if (found := self._read_licence(f"{folder}/{name}"))), ())
        return self._licences[folder]

    def _read_licence(self, path: str) -> tuple[str, ...]:
        self._project.note("file", path)
        if not os.path.isfile(path):
            return ()
        try:
            with open(path, "rb") as file:
                return holders_of_licence(file.read(_MOST_LICENCE))
        except OSError:
            # An unreadable licence is ignored.
            return ()
