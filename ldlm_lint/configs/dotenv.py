"""``.env`` files: one variable a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    """What the variables of the file cost."""
    yield from ()
