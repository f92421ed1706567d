"""Which classes are derived from which, and which files make objects of a class, by the text of all files."""

from __future__ import annotations

import re
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project

# The bases are only looked at, so that the next class is found wherever it stands.
_CLASS = lazily(rb"class(?<![^\n]class)[ \t]+(\w+)\((?=([^)]*))")
_BASE = lazily(rb"\w+\b(?![ \t]*=)")


class ClassMakers:
    """Answers who derives from classes, and who makes objects of them; a class is told by its last name."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._holding: dict[str, FileSet] = {}

    def derived(self, model: str) -> frozenset[tuple[str, str]]:
        """The classes, with their files, that name a class as one of their bases."""
        return self._derived.get(model, frozenset())

    @cached_property
    def _derived(self) -> dict[str, frozenset[tuple[str, str]]]:
        found: dict[str, set[tuple[str, str]]] = {}
        for path in self._project.files:
            for name, bases in _CLASS.findall(self._project.data(path)):
                for base in _BASE.findall(bases):
                    found.setdefault(base.decode(), set()).add((path, name.decode()))
        return {base: frozenset(classes) for base, classes in found.items()}

    def calling(self, model: str) -> FileSet:
        """The files that call a class by its name."""
        return self._project.calling_by_name(model)

    def holding(self, model: str) -> FileSet:
        """The files that call one of a class's ``from_...`` constructors, or keep the class among others to be called."""
        if model not in self._holding:
            project, word, name = self._project, model.encode(), re.escape(model).encode()
            made = re.compile(rb"%s(?<!\w%s)\.from_\w+\(|[\"'][ \t]*:[ \t]*(?:\w+\.)*%s[ \t]*[,}\n]" % (name, name, name))
            texts = ((path, project.data(path)) for path in project.files)
            self._holding[model] = project.universe.of(path for path, data in texts if word in data and made.search(data))
        return self._holding[model]
