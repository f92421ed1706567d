"""The configuration files of a launch: those that it names, and those that its program loads itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ldlm_lint.configs.hydra import Composition, Override, compose
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.project import entry_configs
from ldlm_lint.project.entry_configs import SUFFIX, EntryConfigs, Hydra
from ldlm_lint.project.index import Project
from ldlm_lint.project.launch_paths import Paths
from ldlm_lint.project.programs import ConfigUse, Given
from ldlm_lint.source import Kind

_KINDS = (Kind.YAML, Kind.JSON, Kind.TOML)
_NAMES = lazily(
    r"(?:^|_)(?:config|configs|cfg|conf|deepspeed|ds|zero|recipe|hparams?|params?|opts?|args|settings?|yaml|experiment|exp|job)(?:_|$)",
    re.I,
)
# Options that name data in a format of configurations.
_DATA = lazily(
    r"data|train|eval|valid|test|vocab|label|token|prompt|caption|annot|index|image|input|output|out|save|log|file_?list|blend|merge|weight"
)


class Primary(NamedTuple):
    """Hydra's primary config of one launch: the folder (absolute), the name, and the place that names it."""

    folder: str
    name: str
    span: Span
    why: str


@dataclass
class Configs:
    """Finds the configuration files of programs."""

    project: Project
    paths: Paths
    _read: dict[str, EntryConfigs] = field(default_factory=dict)
    _composed: dict[tuple[str, str, tuple[Override, ...]], Composition] = field(default_factory=dict)

    def of(
        self, entry: str | None, options: Iterable[Given], arguments: tuple[Given, ...], folders: tuple[str, ...]
    ) -> tuple[ConfigUse, ...]:
        """The files that a program reads, each once, those of the command line first."""
        found = [*self._named(options, folders, launcher=True), *self._named(arguments, folders)]
        if entry is not None:
            found += self._of_hydra(entry, arguments)
            found += self._of_entry(entry, arguments, folders)
        uses: dict[str, ConfigUse] = {}
        for use in found:
            uses.setdefault(use.path, use)
        return tuple(uses.values())

    def facts(self, path: str) -> EntryConfigs:
        """The references to configuration files in a Python file of the project."""
        if path not in self._read:
            self._read[path] = entry_configs.read(path, self.project.data(path))
        return self._read[path]

    # On the command line

    def _named(
        self, given: Iterable[Given], folders: tuple[str, ...], *, launcher: bool = False
    ) -> Iterator[ConfigUse]:
        for one in given:
            for value in one.values or ():
                if not SUFFIX.fullmatch(value.text) or not (launcher or _is_config(one, value.text)):
                    continue
                path = self.paths.find(value.text, folders)
                if path is not None and self.project.others.get(path) in _KINDS:
                    yield ConfigUse(path, value.span, one.shown or "named on the command line")

    # Hydra

    def primary(self, entry: str, arguments: tuple[Given, ...]) -> Primary | None:
        """Hydra's primary config of a program with these arguments; None without Hydra, or if unknown."""
        hydra = self.facts(entry).hydra
        if hydra is None:
            return None
        name, span, why = hydra.name, hydra.span, "hydra.main"
        if (given := _last(arguments, ("config_name",), ("cn",))) is not None:
            name = _single(given)
            span, why = given.span, given.shown
        folder = self._folder(entry, hydra, arguments)
        if name is None or folder is None:
            return None
        return Primary(folder, name.removesuffix(".yaml"), span, why)

    def _folder(self, entry: str, hydra: Hydra, arguments: tuple[Given, ...]) -> str | None:
        """The folder of the primary config: relative to the entry's own, or that of a package (``pkg://a.b``)."""
        given = _last(arguments, ("config_path",), ("cp",))
        text = hydra.folder if given is None else _single(given)
        if text is None or "$" in text:
            return None
        if text.startswith("pkg://"):
            text = posixpath.join(self.project.root, text[6:].replace(".", "/"))
        folder = posixpath.normpath(posixpath.join(posixpath.dirname(entry), text))
        return folder if folder == self.project.root or folder.startswith(self.project.root + "/") else None

    def composition(self, entry: str, arguments: tuple[Given, ...]) -> Composition | None:
        """Hydra's composition for a program with these arguments."""
        primary = self.primary(entry, arguments)
        if primary is None:
            return None
        key = primary.folder, primary.name, tuple(_overrides(arguments))
        if key not in self._composed:
            self._composed[key] = compose(self.project, *key)
        return self._composed[key]

    def _of_hydra(self, entry: str, arguments: tuple[Given, ...]) -> Iterator[ConfigUse]:
        primary = self.primary(entry, arguments)
        if primary is None:
            return
        path = posixpath.join(primary.folder, f"{primary.name}.yaml")
        if self.project.others.get(path) is not Kind.YAML:
            return
        yield ConfigUse(path, primary.span, primary.why)
        composed = self.composition(entry, arguments)
        for part in composed.parts if composed is not None else ():
            if part.document is not None and part.path != path:
                package = ".".join(str(key) for key in part.package)
                yield ConfigUse(part.path, primary.span, f"composed into {package or 'the root'}", primary=False)

    # By the program itself

    def _of_entry(self, entry: str, arguments: tuple[Given, ...], folders: tuple[str, ...]) -> Iterator[ConfigUse]:
        """Defaults of options that the command omits, in the entry or its imports, and loaded paths."""
        given = {one.keys for one in arguments}
        near = (*folders, posixpath.dirname(entry))
        for path in (entry, *sorted(self.project.imported_by(entry))):
            facts = self.facts(path)
            for one in facts.defaults:
                if one.keys not in given and (found := self._config(one.text, near)):
                    yield ConfigUse(found, one.span, f"the default of --{one.keys[0]}")
            for one in facts.loaded:
                if found := self._config(one.text, near):
                    yield ConfigUse(found, one.span, "loaded by the program")

    def _config(self, text: str, folders: Iterable[str]) -> str | None:
        path = self.paths.find(text, folders)
        return path if path is not None and self.project.others.get(path) in _KINDS else None


def _is_config(given: Given, text: str) -> bool:
    """Whether an argument names a configuration, not data: by its name, or as a positional or override in YAML or TOML."""
    if not given.keys:
        return not text.endswith(".json") or "config" in text or "zero" in text
    name = "_".join(given.keys)
    return _NAMES.search(name) is not None or (not text.endswith(".json") and not _DATA.search(name))


def _last(arguments: tuple[Given, ...], *names: tuple[str, ...]) -> Given | None:
    return next((one for one in reversed(arguments) if one.keys in names and not one.override), None)


def _single(given: Given) -> str | None:
    texts = given.texts
    return next(iter(texts)) if texts is not None and len(texts) == 1 else None


def _overrides(arguments: tuple[Given, ...]) -> Iterator[Override]:
    """The overrides in Hydra's form; groups have slashes, which distinguishes them from keys."""
    for one in arguments:
        if one.override:
            deleted = one.mark == "~"
            yield Override(one.shown, "" if deleted else _single(one))
