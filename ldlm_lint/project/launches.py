"""The launches of a project: script or container → entry file → configuration files → the values that are given.

One `Program` for each command that starts Python, wherever it stands. What cannot be told stays None: unknown is not
a fact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.model import Span
from ldlm_lint.project.index import Project


@dataclass(frozen=True, slots=True)
class Possible:
    """A value that an argument may have, as text, and where a user would edit it; ``note`` says how it is known."""

    text: str
    span: Span
    note: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that reaches a program.

    ``keys``: ``--dataloader.num-workers 4`` and ``dataloader.num_workers=4`` are both ``("dataloader", "num_workers")``;
    empty for a positional. ``values`` are all the values it may have, None where one is unknown; a flag without a
    value has none. ``override``: it is written as ``key=value`` (Hydra, OmegaConf), not as an option.
    """

    keys: tuple[str, ...]
    values: tuple[Possible, ...] | None
    span: Span
    override: bool = False


@dataclass(frozen=True, slots=True)
class ConfigUse:
    """A configuration file of the project that a program reads, and the place that says so."""

    path: str
    span: Span
    why: str


@dataclass(frozen=True, slots=True)
class Program:
    """A command that starts a program of the project.

    ``path`` is the file it stands in, ``launcher`` as in `ldlm_lint.shell.script.Launch`, ``entry`` the project's
    Python file that runs (None: not of this project), ``entry_text`` as it is written, ``options`` the launcher's own.
    """

    path: str
    span: Span
    launcher: str
    entry_text: str
    entry: str | None
    options: tuple[Given, ...]
    arguments: tuple[Given, ...]
    configs: tuple[ConfigUse, ...] = ()

    def given(self, *keys: str) -> Given | None:
        """The last argument with these keys, which is the one that counts."""
        return next((one for one in reversed(self.arguments) if one.keys == keys), None)


class Launches:
    """All programs that the files of a project start."""

    def __init__(self, project: Project) -> None:
        self._project = project

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Every program, ordered by file and place."""
        return ()

    def of_config(self, path: str) -> tuple[Program, ...]:
        """The programs that read a configuration file."""
        return tuple(one for one in self.programs if any(use.path == path for use in one.configs))

    def of_entry(self, path: str) -> tuple[Program, ...]:
        """The programs whose entry is a Python file."""
        return tuple(one for one in self.programs if one.entry == path)
