"""Keys of a project's own configuration files, which its Python reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.configs.document import Document
from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """What values cost that the program takes from here, and keys that nothing reads."""
    yield from ()
