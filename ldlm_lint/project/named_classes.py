"""The classes that configurations name: without an import in the program that instantiates them.

``target: models.gpt.GPT`` and Hydra's ``_target_`` count as a call if a training program reads the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.project.config_homes import Homes
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project
from ldlm_lint.source import Kind

_WORDS = (b"target", b"class_path")
_NAMED = lazily(
    rb"(?m)^[ \t-]*[\"']?(?:_target_|target|class_path)[\"']?[ \t]*:[ \t]*[\"']?([A-Za-z_]\w*(?:\.\w+)*\.[A-Z]\w*)[\"']?[ \t\r]*(?:#.*)?$"
)
# Such a file does not serve training.
_PREDICTS = lazily(r"(?i)(?:^|[/_.-])(?:infer\w*|sampl\w*|eval\w*|test\w*|demo\w*|predict\w*|generat\w*|serv\w*)(?:[/_.-]|$)")


class Naming(NamedTuple):
    """A configuration, the classes (file and name) that it names, and all files that these reach by imports."""

    path: str
    classes: frozenset[tuple[str, str]]
    reach: FileSet


class NamedClasses:
    """Answers which programs train with a file because a configuration names a class for them."""

    def __init__(self, project: Project, homes: Callable[[], Homes], trains: Callable[[str], bool]) -> None:
        self._project = project
        self._homes = homes
        self._trains = trains
        self._programs: dict[str, tuple[str, ...]] = {}

    def may_take(self, path: str) -> bool:
        """Whether a configuration names a class of a file, or one that reaches it: a necessary condition, found by text alone."""
        return path in self._taken

    def trained_with(self, path: str, fits: Callable[[Naming], bool]) -> Iterator[str]:
        """The programs that train with what a file defines, if a matching configuration names it."""
        if self.may_take(path):
            for one in self._namings:
                if path in one.reach and fits(one):
                    yield from self._programs_of(one.path)

    @cached_property
    def _taken(self) -> FileSet:
        return self._project.universe.joined(*(one.reach for one in self._namings))

    @cached_property
    def _namings(self) -> tuple[Naming, ...]:
        return tuple(self._find())

    def _find(self) -> Iterator[Naming]:
        project = self._project
        for path in project.of_kind(Kind.YAML):
            data = project.data(path)
            if not any(word in data for word in _WORDS) or _PREDICTS.search(path.removeprefix(project.root)):
                continue
            names = {one.decode() for one in _NAMED.findall(data)}
            found = (project.resolve(path, name) for name in sorted(names))
            classes = frozenset(one for one in found if one is not None and one[1] and "." not in one[1])
            if classes:
                yield Naming(path, classes, project.reach_of_all({file for file, _ in classes}))

    def _programs_of(self, config: str) -> tuple[str, ...]:
        """The programs that read a configuration and train."""
        if config not in self._programs:
            homes = self._homes()
            entries = () if homes.is_recorded(config) else tuple(dict.fromkeys(one.entry for one in homes.of(config)))
            self._programs[config] = tuple(one for one in entries if not self._project.is_test(one) and self._trains(one))
        return self._programs[config]


__all__ = ["NamedClasses", "Naming"]
