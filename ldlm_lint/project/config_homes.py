"""The programs of a project that read a configuration file, and the keys under which they see its content.

A program reads a file if a launch passes the file to it, if the file is in its Hydra folder, if it opens the file by a
literal path, or if it opens a path argument and uses exactly the keys of the file. Other files belong to something else
(a documentation tool, a cluster, recorded results) and are not reported.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.configs.hydra import Composition, compose
from ldlm_lint.model import Related, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.skim import without_comments

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Document
    from ldlm_lint.project.filesets import FileSet
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches

_HYDRA = lazily(rb"\b(?:hydra\.main|initialize)\(((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)\)")
_CONFIG_PATH = lazily(r"\bconfig_path\s*=\s*((?:[^(),=]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+)")
_FIRST = lazily(r"\s*([\"'][^\"'\n]+[\"'])")
_CONFIG_NAME = lazily(rb"config_name[ \t]*=[ \t]*[\"']([^\"'\n]+)[\"']")
_PACKAGE = lazily(rb"^#[ \t]*@package[ \t]+(\S+)[ \t]*\r?$", re.M)
_OPENS = Trait(
    lazily(
        rb"yaml\.\w*load\w*\(|OmegaConf\.load|json\.load\(|toml\w*\.load\w*\(|parse_(?:yaml|json)_file|parse_args_into_dataclasses"
        rb"|HfArgumentParser"
        rb"|\bdraccus\b|\btyro\b|\bpyrallis\b|\bjsonargparse\b|YAML\(|Config\.fromfile|yacs"
    ),
    (
        *(b"yaml.", b"OmegaConf.load", b"json.load(", b"toml", b"parse_yaml_file", b"parse_json_file", b"parse_args_into_dataclasses"),
        *(b"HfArgumentParser", b"draccus", b"tyro", b"pyrallis", b"jsonargparse", b"YAML(", b"Config.fromfile", b"yacs"),
    ),
)
_STARTS = Trait(lazily(rb"^if[ \t]+__name__[ \t]*==|^@hydra\.main", re.M), (b"__name__", b"@hydra.main"))
_NAMES_FILES = Trait(
    lazily(rb"[\"']([\w./ -]*?[\w-]+\.(?:ya?ml|json|toml))[\"']"), (b".yaml", b".yml", b".json", b".toml")
)
# Folders of recorded runs, or of code other than the project's own training.
_RECORDED = lazily(
    r"(?:^|/)(?:results?|outputs?|wandb|runs|logs?|archived?|old|backups?|multirun|\.hydra|checkpoints?|ckpts?|artifacts"
    r"|golden_values|tests?|test_\w+|docs?|\.github|\.circleci|third_party|vendor|node_modules)/",
    re.I,
)
# The keys that name a class whose arguments are next to or below: Hydra, Lightning, latent-diffusion and its heirs.
CLASS_KEYS = ("_target_", "target", "class_path", "_class", "cls")
_WORD = lazily(rb"[A-Za-z_]\w*")
_FITTING = 0.6
_FEWEST = 4


class Home(NamedTuple):
    """A program that reads a file.

    ``entry`` is the Python file it starts with, ``prefix`` the keys below which the content of the file is in the
    program's configuration, ``related`` the place that shows it. ``chosen``: this file is read, not one of several
    alternatives.
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
        self._compositions: dict[str, tuple[Composition, ...]] = {}
        self._packages: dict[str, dict[str, frozenset[tuple[str, ...]]]] = {}
        self._words: dict[str, frozenset[bytes]] = {}
        self._words_by_file: dict[str, frozenset[bytes]] = {}

    def of(self, path: str) -> tuple[Home, ...]:
        """The programs that read a file, surest first; empty if it belongs to something else."""
        if path not in self._homes:
            found = list(self._launched(path))
            if not self.is_recorded(path):
                found += [*self._in_hydra_folder(path), *self._by_literal(path)]
                found += [] if found else self._beside(path)
                found += [] if found else self._fitting(path)
            self._homes[path] = tuple({(one.entry, one.prefix): one for one in reversed(found)}.values())[::-1]
        return self._homes[path]

    def is_recorded(self, path: str) -> bool:
        """Whether a file is in a folder of recorded runs, tests or documents."""
        return _RECORDED.search(path.removeprefix(self._project.root)) is not None

    def _launched(self, path: str) -> Iterator[Home]:
        for program in self._launches.of_config(path):
            if program.entry is not None:
                use = next(one for one in program.configs if one.path == path)
                related = (Related(use.span, f"the program reads this file ({use.why})"),)
                yield Home(program.entry, self._package(path, program.entry), related, True)

    def _package(self, path: str, entry: str) -> tuple[str, ...]:
        return next((one.prefix for one in self._in_hydra_folder(path) if one.entry == entry), ())

    @cached_property
    def hydra_folders(self) -> tuple[tuple[str, str], ...]:
        """The Hydra configuration folders of the project: (Python file that names it, folder)."""
        return tuple(self._find_folders())

    def _find_folders(self) -> Iterator[tuple[str, str]]:
        for file in sorted(self._project.files):
            data = self._project.data(file)
            if b"hydra" not in data or self._project.is_test(file):
                continue
            for call in _HYDRA.finditer(without_comments(data)):
                folder = _folder_of(call[1].decode(errors="replace"))
                if folder is None and (name := _CONFIG_NAME.search(call[1])):
                    # If only the run determines the folder, the file next to the program is used.
                    beside = posixpath.join(posixpath.dirname(file), name[1].decode(errors="replace").removesuffix(".yaml") + ".yaml")
                    folder = "." if beside in self._project.others else None
                if folder is not None:
                    yield file, posixpath.normpath(posixpath.join(posixpath.dirname(file), folder))

    def hydra_folder(self, home: Home, path: str) -> str | None:
        """The Hydra folder of a program that a file is in; None if there is none."""
        folders = (folder for file, folder in self.hydra_folders if file == home.entry)
        return next((one for one in folders if path.startswith(one + "/")), None)

    def compositions(self, folder: str) -> tuple[Composition, ...]:
        """Hydra's composition of each primary configuration in a folder, without a command line."""
        if folder not in self._compositions:
            names = (one for one in sorted(self._project.others) if posixpath.dirname(one) == folder and one.endswith((".yaml", ".yml")))
            self._compositions[folder] = tuple(compose(self._project, folder, posixpath.basename(one)) for one in names)
        return self._compositions[folder]

    def _in_hydra_folder(self, path: str) -> Iterator[Home]:
        for file, folder in self.hydra_folders:
            if path.startswith(folder + "/") and path.endswith((".yaml", ".yml")):
                group = tuple(posixpath.relpath(posixpath.dirname(path), folder).split("/"))
                for prefix in sorted(self._prefixes(path, folder, () if group == (".",) else group)):
                    yield Home(file, prefix)

    def _prefixes(self, path: str, folder: str, group: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
        """The keys above the content of a file in a Hydra folder: from the defaults lists, else from the file itself.

        A file without a list is an alternative to its siblings, with the same keys.
        """
        placed = self._placed(folder)
        if path in placed:
            return placed[path]
        own = self._prefix(path, group)
        beside = placed.get(posixpath.dirname(path), frozenset()) if own == group else frozenset()
        return beside or frozenset({own})

    def _placed(self, folder: str) -> dict[str, frozenset[tuple[str, ...]]]:
        """The keys at which primary configurations of a Hydra folder place files, by file and by group folder."""
        if folder not in self._packages:
            found: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
            for part in (part for one in self.compositions(folder) for part in one.parts if part.document is not None):
                package = tuple(str(key) for key in part.package)
                found[part.path].add(package)
                if posixpath.dirname(part.path) != folder and _PACKAGE.search(self._project.data(part.path)) is None:
                    found[posixpath.dirname(part.path)].add(package)
            self._packages[folder] = {path: frozenset(packages) for path, packages in found.items()}
        return self._packages[folder]

    def _prefix(self, path: str, group: tuple[str, ...]) -> tuple[str, ...]:
        header = _PACKAGE.search(self._project.data(path))
        if header is None or header[1] == b"_group_":
            return group
        name = header[1].decode(errors="replace")
        return () if name == "_global_" else tuple(name.replace("_group_", ".".join(group)).split("."))

    @cached_property
    def _loaders(self) -> FileSet:
        """The Python files that open configurations."""
        return self._project.showing(_OPENS) & self._project.plain

    def _by_literal(self, path: str) -> Iterator[Home]:
        """A path in the text of a file that opens configurations, itself or through what it imports."""
        for file, literal, span in self._literals.get(posixpath.basename(path), ()):
            if self._names(file, literal, path):
                yield Home(file, (), (Related(span, "this file is read here"),), True)

    @cached_property
    def _literals(self) -> dict[str, list[tuple[str, str, Span]]]:
        """The paths in the text of the files that open configurations, by the name of the file that they lead to."""
        found: dict[str, list[tuple[str, str, Span]]] = {}
        for file in sorted(self._project.showing(_NAMES_FILES) & self._project.plain):
            literals = list(_NAMES_FILES.pattern.finditer(self._project.data(file)))
            if not self._loaders.isdisjoint(self._project.reach(file)):
                for one in literals:
                    literal = one[1].decode(errors="replace")
                    found.setdefault(posixpath.basename(literal), []).append((file, literal, Span(file, one.start(), one.end())))
        return found

    def _names(self, file: str, literal: str, path: str) -> bool:
        wanted = posixpath.normpath(literal.strip())
        folders = (posixpath.dirname(file), self._project.root)
        if any(posixpath.normpath(posixpath.join(one, wanted)) == path for one in folders):
            return True
        parts = [part for part in wanted.split("/") if part not in ("..", ".")]
        return len(parts) > 1 and path.endswith("/" + "/".join(parts))

    def _beside(self, path: str) -> Iterator[Home]:
        """A file next to one that a program reads, with most of the same keys: another choice of the same option."""
        folder, suffix = posixpath.dirname(path), posixpath.splitext(path)[1]
        mine = self._top_keys(path)
        for other in sorted(self._project.others):
            if other == path or posixpath.dirname(other) != folder or posixpath.splitext(other)[1] != suffix or not mine:
                continue
            homes = [*self._launched(other), *self._by_literal(other)]
            theirs = self._top_keys(other) if homes else frozenset()
            if homes and len(mine & theirs) * 2 > len(mine | theirs):
                note = "this program reads a file next to it"
                yield from (Home(one.entry, one.prefix, tuple(Related(related.span, note) for related in one.related)) for one in homes)
                return

    def _top_keys(self, path: str) -> frozenset[str]:
        document = self._project.document(path)
        return frozenset(one.name for one in document.children() if one.name) if document else frozenset()

    def _fitting(self, path: str) -> Iterator[Home]:
        """The programs that open a configuration given as an argument, and whose code mentions the keys of this one."""
        document = self._project.document(path)
        if document is None:
            return
        names = {one.name.encode() for one in document.scalars() if one.name}
        if len(names) < _FEWEST:
            return
        for entry in self._entries:
            words = self._words_of(entry).union(*(self._words_in(file) for file in self._named_classes(document, entry)))
            if len(names & words) >= _FITTING * len(names):
                yield Home(entry, ())

    def reach_of(self, home: Home, document: Document) -> FileSet:
        """The files of a program: the imports of its entry, and the classes named in the configuration."""
        named = self._named_classes(document, home.entry)
        return self._project.reach_of_all((home.entry, *named))

    def _named_classes(self, document: Document, entry: str) -> set[str]:
        """The project's files of the classes that a configuration names, which no import leads to."""
        named = (one.value for one in document.scalars() if one.name in CLASS_KEYS and isinstance(one.value, str))
        found = (self._project.resolve(entry, name) for name in named)
        return {one[0] for one in found if one is not None}

    @cached_property
    def _entries(self) -> tuple[str, ...]:
        """The programs that open configurations."""
        files = sorted(self._project.showing(_STARTS) & self._project.plain)
        return tuple(one for one in files if not self._loaders.isdisjoint(self._project.reach(one)))

    def _words_of(self, entry: str) -> frozenset[bytes]:
        """The names in the text of a program and its imports."""
        if entry not in self._words:
            self._words[entry] = frozenset().union(*(self._words_in(one) for one in self._project.reach(entry)))
        return self._words[entry]

    def words_of_programs(self, homes: Iterable[Home], document: Document) -> Iterator[frozenset[bytes]]:
        """The names in the text of the programs that read a file, the classes that it names among it, in several sets."""
        for home in homes:
            yield self._words_of(home.entry)
            yield from map(self._words_in, self._named_classes(document, home.entry))

    def _words_in(self, file: str) -> frozenset[bytes]:
        if file not in self._words_by_file:
            self._words_by_file[file] = frozenset(_WORD.findall(without_comments(self._project.data(file))))
        return self._words_by_file[file]


def _folder_of(arguments: str) -> str | None:
    """The folder that ``config_path`` names, as a literal or relative to the file; else None."""
    found = _CONFIG_PATH.search(arguments) or _FIRST.match(arguments)
    text = found[1].strip() if found else ""
    parts = re.findall(r"[\"']([^\"'\n]*)[\"']", text)
    if not parts or not (text[0] in "\"'" or "__file__" in text):
        return None
    folder = posixpath.join(*parts)
    return None if "://" in folder or posixpath.isabs(folder) else folder
