"""Dockerfiles: ``ENV`` settings, and the shell code of ``RUN``, ``CMD`` and ``ENTRYPOINT``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    """What the image hands to its processes."""
    yield from ()
