"""Numbers of workers that a configuration sets on a loader itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.loaders import Loader
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.configs.document import Entry

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)
_WORKERS = lazily(rb"workers", re.I)
_NUMBER = lazily(rb"workers\w*[\"']?[ \t]*[:=][ \t]*[\"']?\d", re.I)


def are_configured_beyond(view: View, loader: Loader, most: int) -> bool:
    """Whether a configuration sets a loader to more than a number of workers."""
    found = list(_large_entries(view, most))
    if not found:
        return False
    from ldlm_lint.project.configured import TOPICS
    from ldlm_lint.project.questions.configuration import reached_by

    context, place = view.context, (view.path(loader.call.module), loader.call.position)
    for file, entry in found:
        document = context.project.document(file)
        reached = reached_by(context, document, entry, TOPICS["too-many-workers"], lambda sink: (sink.path, sink.position) == place) if document else ()
        if any(True for _ in reached):
            return True
    return False


def _large_entries(view: View, most: int) -> Iterator[tuple[str, Entry]]:
    """The numbers of workers in the project's configurations that are larger."""
    project = view.context.project
    for file in project.of_kind(*_DOCUMENTS):
        document = project.document(file) if _NUMBER.search(project.data(file)) else None
        for entry in document.scalars() if document is not None else ():
            if _WORKERS.search(entry.name.encode()) and type(entry.value) is int and entry.value > most:
                yield file, entry
