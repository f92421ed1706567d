"""Finds the configuration of each file: that of the nearest folder upwards which has one.

The first folder upwards with ``.ldlm-lint.toml``, ``ldlm-lint.toml`` or a ``pyproject.toml`` with our table decides
alone: nothing is inherited. A file named by the user replaces all of them, and the command line overrides every file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ldlm_lint.config import Config, Overrides, marked_root, project_root
from ldlm_lint.config_files import NAMES, PYPROJECT, candidates, read_settings, refuse_stray_link
from ldlm_lint.config_reader import config_of
from ldlm_lint.requirements import TORCH, TorchRange
from ldlm_lint.tomlfile import ConfigError, Table

if TYPE_CHECKING:
    from ldlm_lint.model import Problem, Rule
    from ldlm_lint.requirements.choice import Choice
    from ldlm_lint.requirements.levels import Levels

Note = Callable[[str, str], object]


class _Found(NamedTuple):
    """The result for a folder: a configuration, or the error in it; neither if no file was found.

    ``folder`` is that of the file, ``warnings`` come from the files on the way to it.
    """

    config: Config | None = None
    error: ConfigError | None = None
    folder: str = ""
    warnings: tuple[Problem, ...] = ()


def _note_nothing(kind: str, path: str) -> None:
    """A callback that ignores the look-ups."""


class Configurations:
    """The configurations of a run, each read on first use.

    ``start`` (absolute) is the scope of the run: a file, or the directory that contains all named paths. ``explicit``
    is read instead of the files that would be found; its patterns are relative to the project that it is in, or to that
    of ``start`` where it is elsewhere. ``isolated`` reads no file. ``rules`` are `ldlm_lint.rules.ALL` unless given.
    ``note`` is called for each file system look-up, see
    `ldlm_lint.ignores.Note`.
    """

    def __init__(
        self,
        start: Path,
        *,
        explicit: Path | None = None,
        isolated: bool = False,
        overrides: Overrides | None = None,
        rules: Sequence[Rule] | None = None,
        note: Note = _note_nothing,
    ) -> None:
        self._start = start if start.is_dir() else start.parent
        self._explicit = explicit
        self._isolated = isolated
        self._overrides = overrides or Overrides()
        self._given = rules
        self._note = note
        self._found: dict[str, _Found] = {}
        self._roots: dict[str, tuple[str, ...]] = {}
        self._levels: Levels | None = None
        self._torch: dict[tuple[str, str], Choice] = {}
        self._unfiled: dict[str, Config] = {}
        self._configs: dict[str, Config] = {}
        self._with_torch: dict[str, Config] = {}
        self._equal: dict[tuple[int, Choice], Config] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Another process looks up files itself and does not get the session."""
        return {**self.__dict__, "_levels": None, "_note": _note_nothing, "_equal": {}}

    @cached_property
    def run(self) -> Config:
        """The configuration of the run itself, nearest to its start: output format, baseline and root are taken from it alone.

        Raises ConfigError for a file that cannot be used, SelectorError for an unknown rule of the command line.
        """
        config = self._at(self._folder(self._start))
        config.selected(self._rules)
        return config

    @property
    def key(self) -> str:
        """A cache key for which files are found and where settings come from."""
        if self._explicit is not None or self._isolated:
            return repr((self.run.key, self._overrides))
        return repr(("nearest", self._overrides))

    def of(self, path: str) -> Config:
        """The configuration of a file (absolute, forward slashes), which need not exist; raises ConfigError."""
        return self._at(path.rpartition("/")[0])

    def of_folder(self, folder: str) -> Config:
        """The configuration of a directory (absolute, forward slashes), without what its requirements say; raises
        ConfigError."""
        folder = folder.rstrip("/")
        if folder not in self._configs:
            found = self._find(folder)
            if found.error is not None:
                raise found.error
            self._configs[folder] = found.config or self._without_file(folder)
        return self._configs[folder]

    def _at(self, folder: str) -> Config:
        """The configuration of the files in a directory, with the torch that they run on."""
        folder = folder.rstrip("/")
        if folder not in self._with_torch:
            config = self.of_folder(folder)
            if not config.names_torch and not self._isolated:
                torch = self._torch_at(folder, config)
                known = replace(config, target_torch=TorchRange(torch.oldest, torch.newest), torch_bounds=torch.bounds)
                config = self._equal.setdefault((id(config), torch), known)
            self._with_torch[folder] = config
        return self._with_torch[folder]

    def excludes(self, path: str, is_directory: bool) -> bool:
        """Whether a path is excluded: by its configuration, or because the configuration above excludes the folder of
        its configuration."""
        folder = path.rstrip("/") if is_directory else path.rpartition("/")[0]
        found = self._find(folder)
        while True:
            config = found.config if found.config or found.error else self._without_file(folder)
            if config is not None and config.excludes(path, is_directory):
                return True
            if not found.folder or "/" not in found.folder:
                return False
            path, is_directory = found.folder, True
            folder = path.rpartition("/")[0]
            found = self._find(folder)

    def warnings(self, folder: str) -> tuple[Problem, ...]:
        """Probable mistakes in the files in and above a directory: settings that they seem to intend and do not set."""
        return self._find(folder.rstrip("/")).warnings

    def looks(self, folder: str) -> Iterator[tuple[str, str]]:
        """The file system look-ups that determine the configuration of a directory, as kinds of
        `ldlm_lint.cache.index.LOOKS`."""
        if self._explicit is not None or self._isolated:
            return
        folder = folder.rstrip("/")
        while True:
            yield from (("file", f"{folder}/{name}") for name in NAMES)
            if "/" not in folder:
                return
            folder = folder.rpartition("/")[0]

    @property
    def _rules(self) -> Sequence[Rule]:
        if self._given is None:
            from ldlm_lint.rules import ALL

            self._given = ALL
        return self._given

    @cached_property
    def _only(self) -> _Found | None:
        """The configuration of every file, if the user named one."""
        if self._isolated:
            root = project_root(self._start).as_posix()
            return _Found(config_of(Table(), self._rules, root=root, overrides=self._overrides))
        if self._explicit is None:
            return None
        around = marked_root(self._explicit)
        holds = around is not None and around in (self._start, *self._start.parents)
        of_patterns = around if around is not None and holds else project_root(self._start)
        settings = read_settings(self._explicit, named=True)
        assert settings.table is not None
        config = config_of(settings.table, self._rules, root=of_patterns.as_posix(), overrides=self._overrides)
        return _Found(config, warnings=settings.warnings)

    def _find(self, folder: str) -> _Found:
        """The configuration of a directory (no trailing slash); every directory on the way is read once."""
        if self._only is not None:
            return self._only
        unknown = []
        while folder not in self._found:
            unknown.append(folder)
            if "/" not in folder:
                break
            folder = folder.rpartition("/")[0]
        above = self._found.get(folder, _Found())
        for one in reversed(unknown):
            above = self._found[one] = self._in(one, above)
        return above

    def _in(self, folder: str, above: _Found) -> _Found:
        """The configuration in a directory, or that of the directory above."""
        warnings: tuple[Problem, ...] = ()
        for path in map(Path, candidates(folder)):
            try:
                refuse_stray_link(path)
                settings = read_settings(path)
                warnings += settings.warnings
                if settings.table is not None:
                    config = config_of(settings.table, self._rules, root=folder or "/", overrides=self._overrides)
                    return _Found(config, None, folder, warnings)
            except ConfigError as error:
                return _Found(None, error, folder, warnings)
        return above._replace(warnings=(*warnings, *above.warnings)) if warnings else above

    def _without_file(self, folder: str) -> Config:
        """The defaults, for a directory above which there is no file with settings."""
        roots = self._roots_of(folder.rstrip("/"))
        root = roots[0] if roots else self._unmarked(folder)
        if root not in self._unfiled:
            self._unfiled[root] = config_of(Table(), self._rules, root=root or "/", overrides=self._overrides)
        return self._unfiled[root]

    def _unmarked(self, folder: str) -> str:
        """The project root of a directory if no directory is marked as one: the scope of the run."""
        start = self._folder(self._start)
        return start if f"{folder}/".startswith(f"{start}/") else folder

    def _torch_at(self, folder: str, config: Config) -> Choice:
        """The torch that the files in a directory run on, by the requirements in it and around it."""
        from ldlm_lint.requirements.choice import chosen
        from ldlm_lint.requirements.levels import Levels

        if self._levels is None:
            self._levels = Levels(self._note)
        around = (root for root in (*self._roots_of(folder), config.root.rstrip("/")) if f"{folder}/".startswith(f"{root}/"))
        root = min(around, key=len, default=folder)
        if (folder, root) not in self._torch:
            self._torch[folder, root] = chosen(TORCH, self._levels.around(folder, root))
        return self._torch[folder, root]

    def _roots_of(self, folder: str) -> tuple[str, ...]:
        """The roots of projects around a directory, the nearest first, up to that of its repository."""
        unknown = []
        while folder not in self._roots:
            unknown.append(folder)
            if "/" not in folder:
                break
            folder = folder.rpartition("/")[0]
        roots = self._roots.get(folder, ())
        for one in reversed(unknown):
            self._note("file", f"{one}/{PYPROJECT}")
            self._note("exists", f"{one}/.git")
            if os.path.exists(f"{one}/.git"):
                roots = (one,)
            elif os.path.isfile(f"{one}/{PYPROJECT}"):
                roots = (one, *roots)
            self._roots[one] = roots
        return roots

    @staticmethod
    def _folder(path: Path) -> str:
        return path.as_posix().rstrip("/")
