"""Compose, Kubernetes and job files: the environment and the commands that they give to containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.configs.document import Document
from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """What a file hands to the processes of its containers."""
    yield from ()
