"""The place of a project's journal, without loading the code to use it: most runs have no journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldlm_lint.config import FILE_NAME, JOURNAL, common_directory, project_root


def journal_root(paths: Sequence[Path], base: Path) -> Path:
    """The root of the project around absolute paths, without links; a journal of it is in ``.ldlm-lint/`` below.

    An unmarked directory is not a place to find a journal again: there the root is ``base``, the current directory, if
    all paths are below it.
    """
    root = project_root(common_directory(paths))
    marked = (root / ".git").exists() or (root / FILE_NAME).is_file()
    if not marked and all(path == base or base in path.parents for path in paths):
        root = base
    return root.resolve()


def runs_of(root: Path) -> Path:
    """The folder with the runs of the journal at a root."""
    return root / JOURNAL / "runs"
