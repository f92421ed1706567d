"""Whether a project is built into a package that others install and import, and the settings of its build."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project

# A settings file alone builds nothing: many projects keep the settings of their tools in it.
_BUILDS = (("setup.py", (b"",)), ("setup.cfg", (b"[options", b"[metadata]")), ("pyproject.toml", (b"[build-system]",)))


def build_texts(project: Project) -> tuple[bytes, ...]:
    """The contents of the build files at a project's root; empty if there are none."""
    found = []
    for name, words in _BUILDS:
        path = f"{project.root.rstrip('/')}/{name}"
        project.note("file", path)
        text = project.data(path)
        if any(word in text for word in words) and (text or path in project.files):
            found.append(text)
    return tuple(found)
