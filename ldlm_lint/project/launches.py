"""The launches of a project: script or container → entry file → configuration files → the values that are given.

One `Program` for each command that starts Python, wherever it stands. What cannot be told stays None: unknown is not
a fact.
"""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.project.index import Project
from ldlm_lint.project.programs import ConfigUse, Effective, Given, Place, Possible, Program


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

    def running(self, path: str) -> tuple[Program, ...]:
        """The programs whose entry is a Python file or imports it, directly or through others."""
        return tuple(one for one in self.programs if one.entry is not None and path in self._project.reach(one.entry))

    def value_of(self, program: Program, *keys: str) -> Effective | None:
        """What a key comes to in a program: its last argument, else its configuration; None where nothing sets it.

        An argument wins over a configuration only where both have the same keys in full.
        """
        return None


__all__ = ["ConfigUse", "Effective", "Given", "Launches", "Place", "Possible", "Program"]
