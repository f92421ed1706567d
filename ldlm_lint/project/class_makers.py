"""The files that create objects of a class, by the text of all files."""

from __future__ import annotations

import re

from ldlm_lint.project.filesets import FileSet
from ldlm_lint.project.index import Project


class ClassMakers:
    """The creators of objects of classes; a class is identified by its last name."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._holding: dict[str, FileSet] = {}

    def calling(self, model: str) -> FileSet:
        """The files that call a class by its name."""
        return self._project.calling_by_name(model)

    def holding(self, model: str) -> FileSet:
        """The files that call one of a class's ``from_...`` constructors, or store the class in a table of classes."""
        if model not in self._holding:
            project, word, name = self._project, model.encode(), re.escape(model).encode()
            made = re.compile(rb"%s(?<!\w%s)\.from_\w+\(|[\"'][ \t]*:[ \t]*(?:\w+\.)*%s[ \t]*[,}\n]" % (name, name, name))
            texts = ((path, project.data(path)) for path in project.files)
            self._holding[model] = project.universe.of(path for path, data in texts if word in data and made.search(data))
        return self._holding[model]
