"""The files that bound packages for the code of a folder: those in it, and those of folders in it that have no code."""

from __future__ import annotations

import functools
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import translate
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.ignores import CACHE_TAG, FILE_NAME, Level, Note, ignored, level, levels_above, note_nothing
from ldlm_lint.requirements import Bound, Said, lists
from ldlm_lint.requirements.installs import of_commands, of_container, of_images
from ldlm_lint.requirements.specifiers import bound

_LARGEST = 1_000_000
_LARGEST_LOCK = 8_000_000
# A folder with more files holds data or results, not lists of packages; it is not read to its end.
_MOST_FILES = 400
_CODE = (".py", ".ipynb", ".pyx", ".cpp", ".cu")
# Sphinx reads it: the folder documents the code around it, and what builds its pages runs no training.
_OF_SPHINX = "conf.py"
# A folder with one of these is a project of its own.
_OF_A_PROJECT = frozenset({".git", "pyproject.toml", "setup.py"})
_NO_CODE = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})


def _of_pip(text: str) -> Iterator[Said]:
    found = list(lists.of_pip(text))
    yield from found or lists.of_companions(text)


def _of_yaml(text: str) -> Iterator[Said]:
    yield from lists.of_conda_environment(text)
    yield from of_images(text)


def _of_cog(text: str) -> Iterator[Said]:
    yield from lists.of_cog(text)
    yield from of_commands(text)


def _of_page(text: str) -> Iterator[Said]:
    yield from of_commands(text)
    yield from lists.of_page(text)


class _Reader(NamedTuple):
    """What reads the files whose names, in lower case, match one of some patterns; ``words``: a file contains one of them."""

    patterns: tuple[str, ...]
    read: Callable[[str], Iterable[Said]]
    words: tuple[bytes, ...] = (b"torch",)


_ANY = (b"torch", b"python")
# Documentation has no format that says where it describes the installation: these are the usual names of its pages.
_PAGES = ("readme*", "*install*", "*getting*started*", "*get_started*", "*quick*start*", "*environment*", "*setup*")
_NAMES_OF_PAGES = (*(f"{one}{suffix}" for one in _PAGES for suffix in (".md", ".rst", ".txt")), "readme", "install")
_DOCUMENTATION = _Reader(_NAMES_OF_PAGES, _of_page, (b"torch", b"python="))
_READERS = (
    _Reader(("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml"), lists.of_lock),
    _Reader(("pipfile.lock",), lists.of_pipfile_lock),
    _Reader(("conda-lock.yml", "conda-lock.yaml"), lists.of_conda_lock),
    _Reader(("pyproject.toml",), lists.of_pyproject, (b"torch", b"requires-python", b"python")),
    _Reader(("pixi.toml",), lists.of_pixi),
    _Reader(("pipfile",), lists.of_pipfile),
    _Reader(("setup.py",), lists.of_setup_py, (b"torch", b"python_requires")),
    _Reader(("setup.cfg",), lists.of_setup_cfg, (b"torch", b"python_requires")),
    _Reader((".python-version",), lists.of_python_version, (b"3.",)),
    _Reader(("*requirements*.txt", "*requirements*.in", "*constraints*.txt", "requirements/*.txt", "requirements/*.in"), _of_pip, (b"torch", b"triton", b"-r", b"-c", b"--requirement", b"--constraint")),
    _Reader(("cog.yaml", "cog.yml"), _of_cog, _ANY),
    _Reader(("*.yml", "*.yaml"), _of_yaml, (b"dependencies", b"image")),
    _Reader(("dockerfile*", "*.dockerfile", "containerfile*", "singularity*", "*.def"), of_container, _ANY),
    _Reader(("*.sh", "*.bash", "makefile"), of_commands, (b"torch", b"python=")),
    _DOCUMENTATION,
)


class Levels:
    """The bounds of folders, each read once; ``note`` is called for every look at the file system, see `ignores.Note`."""

    def __init__(self, note: Note = note_nothing) -> None:
        self._note = note
        self._found: dict[str, tuple[Bound, ...]] = {}
        self._ignores: dict[str, tuple[Level, ...]] = {}

    def around(self, folder: str, root: str) -> Iterator[tuple[Bound, ...]]:
        """The bounds of a folder and of those around it up to a root (absolute, forward slashes), the nearest first."""
        while True:
            yield self._in(folder, root)
            if folder == root or not folder.startswith(root.rstrip("/") + "/"):
                return
            folder = folder.rpartition("/")[0] or "/"

    def _in(self, folder: str, root: str) -> tuple[Bound, ...]:
        if folder not in self._found:
            self._found[folder] = tuple(self._bounds(folder, root))
        return self._found[folder]

    def _bounds(self, folder: str, root: str) -> Iterator[Bound]:
        real = os.path.realpath(root)
        waiting = [(path, reader) for path, reader in self._files(folder, root)]
        seen: set[str] = set()
        while waiting:
            path, reader = waiting.pop(0)
            if path in seen:
                continue
            seen.add(path)
            text = self._text(path, reader, real)
            for said in reader.read(text) if text else ():
                found = bound(said, path, text.count("\n", 0, said.at) + 1)
                if found is not None:
                    yield found._replace(is_told=reader is _DOCUMENTATION)
            if reader.read is _of_pip:
                base = posixpath.dirname(path)
                waiting += ((posixpath.normpath(posixpath.join(base, one)), reader) for one in lists.included(text))

    def _files(self, folder: str, root: str) -> Iterator[tuple[str, _Reader]]:
        """The files of a folder, and those of the folders in it without code, that may bound packages."""
        names, folders = self._entries(folder)
        for name in names or ():
            reader = _reader(name)
            if reader is not None:
                yield f"{folder.rstrip('/')}/{name}", reader
        for one in folders:
            for path in self._without_code(f"{folder.rstrip('/')}/{one}", root):
                reader = _reader(path[len(folder.rstrip("/")) + 1 :])
                if reader is not None:
                    yield path, reader

    def _without_code(self, top: str, root: str) -> list[str]:
        """The files below a folder; none if some are code, only documentation if Sphinx reads them."""
        if ignored(top, True, self._ignored_in(posixpath.dirname(top) or "/", root)):
            return []
        found: list[str] = []
        waiting = [top]
        count = 0
        while waiting:
            folder = waiting.pop()
            if self._is_cache(folder):
                continue
            names, folders = self._entries(folder)
            count += len(names or ()) + len(folders)
            if names is None or count > _MOST_FILES or not _OF_A_PROJECT.isdisjoint(names) or any(one.endswith(_CODE) and one != _OF_SPHINX for one in names):
                return []
            found += (f"{folder}/{one}" for one in names)
            waiting += (f"{folder}/{one}" for one in folders)
        if any(posixpath.basename(one) == _OF_SPHINX for one in found):
            return [one for one in sorted(found) if _reader(posixpath.basename(one)) is _DOCUMENTATION]
        return sorted(found)

    def _is_cache(self, folder: str) -> bool:
        """Whether a folder is marked as a cache, as ours may be: its list changes with each run."""
        tag = f"{folder}/{CACHE_TAG}"
        self._note("exists", tag)
        return os.path.exists(tag)

    def _entries(self, folder: str) -> tuple[list[str] | None, list[str]]:
        """The names of the files and folders in a folder, in order; None for more files than lists of packages are."""
        self._note("listing", folder)
        names: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders += [] if entry.name.startswith(".") or entry.name in _NO_CODE else [entry.name]
                        names += [entry.name] if entry.name == ".git" else []
                    else:
                        names.append(entry.name)
        except OSError:
            return None, []
        return sorted(names), sorted(folders)

    def _ignored_in(self, folder: str, root: str) -> tuple[Level, ...]:
        if folder not in self._ignores:
            is_inner = folder.startswith(root.rstrip("/") + "/")
            above = self._ignored_in(posixpath.dirname(folder), root) if is_inner else levels_above(Path(folder), self._note)
            self._note("file", f"{folder}/{FILE_NAME}")
            self._ignores[folder] = (*above, *level(folder))
        return self._ignores[folder]

    def _text(self, path: str, reader: _Reader, root: str) -> str:
        """The text of a file below a root (a real path); empty if it names no package, or a link leads elsewhere."""
        self._note("file", path)
        try:
            if os.path.islink(path):
                self._note("target", path)
            most = _LARGEST_LOCK if path.endswith(".lock") else _LARGEST
            real = os.path.realpath(path)
            if not os.path.isfile(real) or os.path.getsize(real) > most or not f"{real}/".startswith(f"{root.rstrip('/')}/"):
                return ""
            with open(real, "rb") as file:
                data = file.read()
        except (OSError, ValueError):
            return ""
        return lists.readable(data) if any(word in data for word in reader.words) else ""


@functools.cache
def _names() -> list[tuple[re.Pattern[str], bool, _Reader]]:
    """The readers with their patterns, and whether these are of the name of a folder too."""
    pairs = [(pattern, reader) for reader in _READERS for pattern in reader.patterns]
    return [(re.compile(translate(pattern)), "/" in pattern, reader) for pattern, reader in pairs]


@functools.lru_cache(4096)
def _reader(path: str) -> _Reader | None:
    """What reads a file, by its name and the name of its folder."""
    parts = path.lower().split("/")
    name, near = parts[-1], "/".join(parts[-2:])
    return next((reader for pattern, is_near, reader in _names() if pattern.match(near if is_near else name)), None)
