"""The settings of a DataLoader: those of a Trainer, of an object that a configuration creates, and the keys of a project's own
configuration that say how many workers there are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.frameworks.sections import Section, Setting, unsafe, vocabulary
from ldlm_lint.model import Fix
from ldlm_lint.patterns import lazily

_TORCH_LOADER = lazily(r"torch\.utils\.data\.(?:dataloader\.)?DataLoader")
_WORKERS = lazily(r"(?:.*_)?(?:n|num_?|n_|number_of_)?(?:data_?|data_?loader_)?workers(?:_per_\w+)?", re.I)
# A loader for evaluation may work in the main process.
_OBJECT_EVALUATES = lazily(r"(?:^|[/_.-])(?:val|valid|validation|eval|evaluation|test|predict|inference|sample)(?:[/_.-]|$)", re.I)
_KEY_EVALUATES = lazily(
    r"(?:^|_)(?:val|valid|validation|test|testing|eval|evaluation|dev|predict|infer\w*|sampl\w*)(?:_|\d|$|set|loader|data|dl)", re.I
)
# The main process loads the data when debugging.
_DEBUGS = lazily(r"(?:^|[_.-])(?:debug\w*|local|smoke|toy|tiny|overfit|dry|dev|test)(?:[_.-]|$)", re.I)
_OTHER_NUMBER = "another number of workers takes other memory and draws other random numbers, and fewer can be too few"


class _Names(NamedTuple):
    """A framework's names of its loader options, and its error for ``prefetch_factor`` without workers."""

    workers: str
    persistent: str
    prefetch: str
    error_of_prefetch: str = "ValueError"


_OF_TORCH = _Names("num_workers", "persistent_workers", "prefetch_factor")
_OF_TRAINER = _Names(
    "dataloader_num_workers", "dataloader_persistent_workers", "dataloader_prefetch_factor", "ValueError when the arguments are read"
)


class LoaderSettings(NamedTuple):
    """The settings of one loader; ``epochs`` of the run, None if unknown.

    ``trains``: its batches feed a training; a loader of an evaluation may have no workers.
    """

    section: Section
    names: _Names
    epochs: float | None = None
    trains: bool = True

    @property
    def workers(self) -> float | None:
        """Its number of workers; None if it is not set or unknown."""
        return self.section.number(self.names.workers)

    @property
    def persistent(self) -> str:
        """The name of the option that keeps workers."""
        return self.names.persistent

    @property
    def prefetch(self) -> str:
        """The name of the option for the depth of the queue."""
        return self.names.prefetch

    @property
    def lacks_workers(self) -> bool:
        """Whether no number of workers is set, by which the framework has none."""
        return self.names.workers not in self.section.settings and self.section.complete

    def is_off_by_default(self, name: str) -> bool:
        """Whether a missing option is off: the place is complete, and the framework's default says so."""
        return self.section.complete and vocabulary(self.section.framework).defaults.get(name) is False

    def error_of(self, option: str) -> str:
        """The error that an option raises without workers."""
        return self.names.error_of_prefetch if option == self.names.prefetch else "ValueError"


def loader_of(section: Section) -> LoaderSettings | None:
    """What a place says about a loader; None if it says nothing of one."""
    if _TORCH_LOADER.fullmatch(section.made):
        return LoaderSettings(section, _OF_TORCH, trains=_OBJECT_EVALUATES.search(section.where) is None)
    if section.made or section.framework in ("own", "lightning"):
        return None
    # A number of steps ends the run, in whichever epoch.
    by_steps = section.has("max_steps") and not (section.number("max_steps") or 1) <= 0
    return LoaderSettings(section, _OF_TRAINER, None if by_steps else section.number("num_train_epochs"))


def own_workers(section: Section) -> Iterator[tuple[str, Setting]]:
    """The numbers of workers in a project's own configuration, by their paths."""
    for path, setting in section.settings.items() if section.framework == "own" else ():
        if _WORKERS.fullmatch(setting.name):
            yield path, setting


def beside(section: Section, path: str) -> list[str]:
    """The paths of the other settings in the same mapping."""
    head = path.rpartition(".")[0] or path.partition(":")[0] + ":"
    return [one for one in section.settings if one != path and (one.rpartition(".")[0] or one.partition(":")[0] + ":") == head]


def needing_workers(section: Section, path: str) -> list[str]:
    """The paths of the settings beside a number of workers that raise without any."""
    names = {one: section.settings[one].name for one in beside(section, path)}
    return [
        one
        for one, name in names.items()
        if (name == "prefetch_factor" and section.number(one) is not None) or (name == "persistent_workers" and section.flag(one) is True)
    ]


def has_no_workers_beside(section: Section, path: str) -> bool:
    """Whether the mapping of a setting says that there are no workers."""
    return any(_WORKERS.fullmatch(section.settings[one].name) and section.number(one) == 0 for one in beside(section, path))


def is_meant(section: Section, path: str) -> bool:
    """No workers for an evaluation, or in a file for debugging."""
    file = section.settings[path].span.path.rpartition("/")[2]
    return any(map(_KEY_EVALUATES.search, path.partition(":")[2].split("."))) or _DEBUGS.search(file) is not None


def another_number(section: Section, setting: Setting, count: int) -> Fix | None:
    """Write another number of workers in a project's own configuration."""
    return unsafe(f"set {setting.name} to {count}", section.editor.replace(setting, count), _OTHER_NUMBER)


__all__ = ["LoaderSettings", "another_number", "beside", "has_no_workers_beside", "is_meant", "loader_of", "needing_workers", "own_workers"]
