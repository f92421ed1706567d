"""What a file is to its repository: its own code, or one of those that matter less: copied from another project, an
example beside the library, code that no program reaches.

Tests are recognized by `Project.is_test`: rules do not look at them at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ldlm_lint.project.copied import Copied
from ldlm_lint.project.examples import Examples
from ldlm_lint.project.unreached import Unreached

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project
    from ldlm_lint.project.launches import Launches
    from ldlm_lint.reach import Standing


class Roles:
    """Answers for the places of a project; the first of the reasons that applies is the one to name."""

    def __init__(self, project: Project, launches: Callable[[], Launches]) -> None:
        self._project = project
        self._copied = Copied(project, launches)
        self._examples = Examples(project, launches)
        self._unreached = Unreached(project)

    def standing(self, path: str, offset: int) -> Standing | None:
        """Why the code at an offset of a file matters less; None for the project's own."""
        return self._copied.standing(path) or self._examples.standing(path) or self._unreached_at(path, offset)

    def is_offered(self, path: str) -> bool:
        """Whether a file belongs to a package that is built for others to import."""
        return self._unreached.is_offered(path)

    def _unreached_at(self, path: str, offset: int) -> Standing | None:
        if path not in self._project.files:
            return None
        return self._unreached.standing(path, self._project.data(path).count(b"\n", 0, offset) + 1)


__all__ = ["Roles"]
