"""Notebooks: their code cells as one Python text, and edits of that text as edits of the file.

`document` finds the code cells of a file and where they stand in it, `magics` replaces what is not Python by lines that
are, `text` joins the cells to the text that is linted and fixed, `rewrite` puts its changes back into the file and touches
nothing else, `fixes` says which fixes a notebook bears.
"""

from __future__ import annotations

SUFFIX = ".ipynb"
MAX_BYTES = 50_000_000
"""The largest notebook that is read: pictures in its outputs take room, its code may take what any file may."""


def is_notebook(path: str) -> bool:
    """Whether a path names a notebook."""
    return path[-len(SUFFIX) :].lower() == SUFFIX
