"""Notebooks: their code cells as one Python text, and edits of that text as edits of the file.

`document` finds the code cells of a file and where they are in it, `magics` replaces non-Python lines by Python lines,
`text` joins the cells to the text that is linted and fixed, `rewrite` writes its changes back into the file without
other changes, `fixes` decides which fixes a notebook allows.
"""

from __future__ import annotations

SUFFIX = ".ipynb"
MAX_BYTES = 50_000_000
"""The largest notebook that is read: pictures in its outputs take space, its code may take what any file may."""


def is_notebook(path: str) -> bool:
    """Whether a path names a notebook."""
    return path[-len(SUFFIX) :].lower() == SUFFIX
