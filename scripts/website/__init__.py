"""What makes a site of docs/: a Sphinx extension (docs/conf.py names it), one module for each concern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from website import landing, pages, report, rules, search

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx with the application."""
    for concern in (pages, rules, search, landing, report):
        concern.setup(app)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
