"""Which programs of a project read a configuration file, and under which keys its content stands there.

A file is read by a program that a launch names it to, whose Hydra folder it lies in, that opens it by a literal path, or
that opens whatever it is told and uses the very keys of the file. A file of which none of this holds belongs to
something else (a documentation tool, a cluster, recorded results) and nothing is said of it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ldlm_lint.model import Related, Span
from ldlm_lint.project.index import Project
from ldlm_lint.project.launches import Launches
from ldlm_lint.python.skim import without_comments

_HYDRA = re.compile(rb"\b(?:hydra\.main|initialize)\(((?:[^()]|\([^()]*\))*)\)")
_CONFIG_PATH = re.compile(rb"(?:config_path[ \t]*=|^)\s*[\"']([^\"'\n]+)[\"']")
_PACKAGE = re.compile(rb"^#[ \t]*@package[ \t]+(\S+)[ \t]*\r?$", re.M)
_LITERAL = re.compile(rb"[\"']([\w./ -]*?[\w-]+\.(?:ya?ml|json|toml))[\"']")
_LOADS = re.compile(
    rb"yaml\.\w*load\w*\(|OmegaConf\.load|json\.load\(|toml\w*\.load\w*\(|parse_(?:yaml|json)_file|parse_args_into_dataclasses|HfArgumentParser"
    rb"|\bdraccus\b|\btyro\b|\bpyrallis\b|\bjsonargparse\b|YAML\(|Config\.fromfile|yacs"
)
_ENTRY = re.compile(rb"^if[ \t]+__name__[ \t]*==|^@hydra\.main", re.M)
# Folders of what a run has written down, or of what is not this project's own training.
_RECORDED = re.compile(
    r"(?:^|/)(?:results?|outputs?|wandb|runs|logs?|archived?|old|backups?|multirun|\.hydra|checkpoints?|ckpts?|artifacts|golden_values|tests?|test_\w+"
    r"|docs?|\.github|\.circleci|third_party|vendor|node_modules)/",
    re.I,
)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_FITTING = 0.6
_FEWEST = 4


@dataclass(frozen=True)
class Home:
    """A program that reads a file.

    ``entry`` is the Python file it starts with, ``prefix`` the keys below which the content of the file stands in what the
    program sees, ``related`` the place that shows it. ``chosen``: the file is the one that is read, not one of several
    that could be.
    """

    entry: str
    prefix: tuple[str, ...]
    related: tuple[Related, ...] = ()
    chosen: bool = False


class Homes:
    """Answers which programs read a configuration file."""

    def __init__(self, project: Project, launches: Launches) -> None:
        self._project = project
        self._launches = launches
        self._homes: dict[str, tuple[Home, ...]] = {}
        self._words: dict[str, frozenset[bytes]] = {}
        self._folders: tuple[tuple[str, str], ...] | None = None
        self._loading: frozenset[str] | None = None

    def of(self, path: str) -> tuple[Home, ...]:
        """The programs that read a file, surest first; none where it belongs to something else."""
        if path not in self._homes:
            found = list(self._launched(path))
            if not self.is_recorded(path):
                found += [*self._in_hydra_folder(path), *self._by_literal(path)]
                found += [] if found else self._beside(path)
                found += [] if found else self._fitting(path)
            self._homes[path] = tuple({(one.entry, one.prefix): one for one in reversed(found)}.values())[::-1]
        return self._homes[path]

    def is_recorded(self, path: str) -> bool:
        """Whether a file lies where runs write down what they did, or where tests and documents lie."""
        return _RECORDED.search(path.removeprefix(self._project.root)) is not None

    def _launched(self, path: str) -> Iterator[Home]:
        for program in self._launches.of_config(path):
            if program.entry is not None:
                use = next(one for one in program.configs if one.path == path)
                yield Home(program.entry, self._package(path, program.entry), (Related(use.span, "a launch reads this file"),), True)

    def _package(self, path: str, entry: str) -> tuple[str, ...]:
        return next((one.prefix for one in self._in_hydra_folder(path) if one.entry == entry), ())

    def hydra_folders(self) -> tuple[tuple[str, str], ...]:
        """The Hydra configuration folders of the project: (Python file that names it, folder)."""
        if self._folders is None:
            self._folders = tuple(self._find_folders())
        return self._folders

    def _find_folders(self) -> Iterator[tuple[str, str]]:
        for file in sorted(self._project.files):
            data = self._project.data(file)
            if b"hydra" not in data or self._project.is_test(file):
                continue
            for call in _HYDRA.finditer(without_comments(data)):
                if found := _CONFIG_PATH.search(call[1]):
                    yield file, posixpath.normpath(posixpath.join(posixpath.dirname(file), found[1].decode(errors="replace")))

    def _in_hydra_folder(self, path: str) -> Iterator[Home]:
        for file, folder in self.hydra_folders():
            if path.startswith(folder + "/") and path.endswith((".yaml", ".yml")):
                group = tuple(posixpath.relpath(posixpath.dirname(path), folder).split("/"))
                yield Home(file, self._prefix(path, () if group == (".",) else group))

    def _prefix(self, path: str, group: tuple[str, ...]) -> tuple[str, ...]:
        header = _PACKAGE.search(self._project.data(path))
        if header is None or header[1] == b"_group_":
            return group
        name = header[1].decode(errors="replace")
        return () if name == "_global_" else tuple(name.replace("_group_", ".".join(group)).split("."))

    def _loaders(self) -> frozenset[str]:
        """The Python files that open configurations."""
        if self._loading is None:
            files = (one for one in self._project.files if not self._project.is_test(one))
            self._loading = frozenset(one for one in files if _LOADS.search(self._project.data(one)))
        return self._loading

    def _by_literal(self, path: str) -> Iterator[Home]:
        """A path in the text of a file that opens configurations, itself or through what it imports."""
        name = posixpath.basename(path).encode()
        for file in sorted(self._project.files):
            data = self._project.data(file)
            if name not in data or self._project.is_test(file) or self._loaders().isdisjoint(self._project.reach(file)):
                continue
            for literal in _LITERAL.finditer(data):
                if self._names(file, literal[1].decode(errors="replace"), path):
                    span = Span(file, literal.start(), literal.end())
                    yield Home(file, (), (Related(span, "this file is read here"),), True)
                    break

    def _names(self, file: str, literal: str, path: str) -> bool:
        wanted = posixpath.normpath(literal.strip())
        folders = (posixpath.dirname(file), self._project.root)
        if any(posixpath.normpath(posixpath.join(one, wanted)) == path for one in folders):
            return True
        parts = [part for part in wanted.split("/") if part not in ("..", ".")]
        return len(parts) > 1 and path.endswith("/" + "/".join(parts))

    def _beside(self, path: str) -> Iterator[Home]:
        """A file beside one that a program reads, with most of the same keys: another choice of the same option."""
        folder, suffix = posixpath.dirname(path), posixpath.splitext(path)[1]
        mine = self._top_keys(path)
        for other in sorted(self._project.others):
            if other == path or posixpath.dirname(other) != folder or posixpath.splitext(other)[1] != suffix or not mine:
                continue
            homes = [*self._launched(other), *self._by_literal(other)]
            theirs = self._top_keys(other) if homes else frozenset()
            if homes and len(mine & theirs) * 2 > len(mine | theirs):
                note = "a file beside it is read by this program"
                yield from (Home(one.entry, one.prefix, tuple(Related(related.span, note) for related in one.related)) for one in homes)
                return

    def _top_keys(self, path: str) -> frozenset[str]:
        document = self._project.document(path)
        return frozenset(one.name for one in document.children() if one.name) if document else frozenset()

    def _fitting(self, path: str) -> Iterator[Home]:
        """The programs that open a configuration they are told of, and whose code speaks of the keys of this one."""
        document = self._project.document(path)
        names = {one.name.encode() for one in document.scalars() if one.name} if document else set()
        if len(names) < _FEWEST:
            return
        for entry in self._entries():
            if len(names & self._words_of(entry)) >= _FITTING * len(names):
                yield Home(entry, ())

    def _entries(self) -> Iterator[str]:
        for file in sorted(self._project.files):
            if not self._project.is_test(file) and _ENTRY.search(self._project.data(file)):
                if not self._loaders().isdisjoint(self._project.reach(file)):
                    yield file

    def _words_of(self, entry: str) -> frozenset[bytes]:
        """The names in the text of a program and what it imports."""
        if entry not in self._words:
            self._words[entry] = frozenset().union(*(self._words_in(one) for one in self._project.reach(entry)))
        return self._words[entry]

    def _words_in(self, file: str) -> frozenset[bytes]:
        return frozenset(_WORD.findall(without_comments(self._project.data(file))))
