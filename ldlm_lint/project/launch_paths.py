"""The targets of paths in a command: the possible working folders, and the project's files behind its names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.project.index import Project

# Idioms for the folder of the script itself, with the steps from there: "$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)".
_DIRNAME = lazily(r"\$\(\s*(?:(?:realpath|readlink\s+-f)\s*)?(?:(?:\$\(?|\()\s*)?dirname\b.*?(?:BASH_SOURCE|\$\{?0\b|%x)")
_STEPS = lazily(r"(?:BASH_SOURCE[^)]*|\$\{?0\}?\"?[^)]*)\)+\"?((?:/[\w.-]+)+)")
_TOP = lazily(r"git rev-parse --show-toplevel")
_HERE = lazily(r"\$\(\s*pwd\s*\)|`\s*pwd\s*`|\$\{?PWD\}?|\.")
_LEADING = lazily(r"\$(?:\{(\w+)\}|(\w+))(/.*|$)")
_DEPTH = 4
_CERTAIN = 2


class Paths:
    """The folders and files of one project, for looking up names in its scripts."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @property
    def root(self) -> str:
        """The root folder of the project."""
        return self._project.root

    @cached_property
    def files(self) -> frozenset[str]:
        """Every file of the project."""
        return frozenset(self._project.files) | self._project.others.keys()

    @cached_property
    def folders(self) -> frozenset[str]:
        """Every folder that holds a file of the project, below its root."""
        found: set[str] = {self.root}
        for path in self.files:
            folder = posixpath.dirname(path)
            while folder.startswith(self.root) and folder not in found:
                found.add(folder)
                folder = posixpath.dirname(folder)
        return frozenset(found)

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self.files):
            found.setdefault(posixpath.basename(path), []).append(path)
        return found

    def upwards(self, path: str) -> tuple[str, ...]:
        """The folder of a file and the folders above it, up to the root: the possible working folders of a user."""
        folder, found = posixpath.dirname(path), []
        while folder.startswith(self.root) and folder != self.root:
            found.append(folder)
            folder = posixpath.dirname(folder)
        return (*found, self.root)

    def find(self, text: str, folders: Iterable[str]) -> str | None:
        """The file of the project behind a path as written; None if there is not exactly one.

        A path with an unknown folder (``$ROOT/tools/train.py``, ``/home/me/project/train.py``) is looked up from the
        folders too, and then by the end of its path, if only one file matches.
        """
        if not text or "$(" in text or "`" in text or "*" in text:
            return None
        if text.startswith(self.root + "/") and text in self.files:
            return text
        leading = _LEADING.fullmatch(text)
        bare = leading[3] if leading else text
        if "$" in bare or not bare.strip("/"):
            return None
        relative = bare.lstrip("/")
        if not bare.startswith("/") or leading:
            for folder in folders:
                place = posixpath.normpath(posixpath.join(folder, relative))
                if place in self.files:
                    return place
        return self._by_end(relative, sure=bool(leading)) if bare.startswith("/") else None

    def _by_end(self, relative: str, *, sure: bool) -> str | None:
        """The one file whose path ends like a text; of a foreign machine's path two steps at least must agree."""
        parts = posixpath.normpath(relative).split("/")
        named = posixpath.basename(self.root) in parts[:-1]
        for start in range(len(parts)):
            end = "/".join(parts[start:])
            if len(parts) - start < _CERTAIN and not (sure and start == 0) and not named:
                return None
            found = [path for path in self._by_name.get(parts[-1], ()) if path.endswith("/" + end)]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def module(self, name: str, folders: Iterable[str]) -> str | None:
        """The file that ``python -m name`` runs, None for a module that is not of the project."""
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
            return None
        for folder in folders:
            found = self._project.resolve(posixpath.join(folder, "x"), name)
            if found is not None and not found[1]:
                main = posixpath.join(posixpath.dirname(found[0]), "__main__.py")
                package = found[0].endswith("/__init__.py")
                return (main if main in self.files else None) if package else found[0]
        return None

    def below(self, folders: Iterable[str], text: str) -> tuple[str, ...]:
        """The folders of the project that a path leads to from others."""
        places = (posixpath.normpath(posixpath.join(folder, text)) for folder in folders)
        return tuple(place for place in places if place in self.folders)


def own_folder(raw: str, script: str, root: str) -> str | None:
    """The folder of a shell text: the script's own, one near it, or the project's root; None for others."""
    if _TOP.search(raw):
        behind = raw.rpartition(")")[2].strip("\"'/ ")
        return posixpath.normpath(posixpath.join(root, behind))
    if not _DIRNAME.search(raw) and not re.search(r"\$\{(?:BASH_SOURCE\[?0?\]?|0)%/\*\}", raw):
        return None
    folder = posixpath.dirname(script)
    for _ in range(raw.count("dirname") - 1):
        folder = posixpath.dirname(folder)
    inner, _, behind = raw.rpartition(")")
    steps = _STEPS.search(f"{inner})")
    parts = (steps[1] if steps else "", behind.strip("\"' "))
    place = posixpath.normpath(posixpath.join(folder, *(one.strip("/") for one in parts if one.startswith("/"))))
    return place if place == root or place.startswith(root + "/") else None


def is_here(text: str) -> bool:
    """Whether a text means the working folder of the command."""
    return _HERE.fullmatch(text.strip("\"'")) is not None


def leading_variable(text: str) -> tuple[str, str] | None:
    """The variable at the beginning of a path, and the rest."""
    match = _LEADING.fullmatch(text)
    return (match[1] or match[2], match[3]) if match else None


def variables(text: str) -> Iterator[str]:
    """The plain variables of a text."""
    for match in re.finditer(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*|\d))", text):
        yield match[1] or match[2]
