"""Trees of project files, for the few questions that the facts of a file do not answer."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.project.index import Project, dotted_name
from ldlm_lint.python.tree import parse
from ldlm_lint.source import Kind, Source, UnreadableError


def tree_of(project: Project, path: str) -> nodes.Module | None:
    """The tree of a project file, built anew each time; None for one that cannot be read or parsed."""
    if path not in project.files:
        return None
    try:
        source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
    except UnreadableError:
        return None
    return parse(source, dotted_name(path, project.root)).module
