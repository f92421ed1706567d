"""Files that a training framework reads: Hugging Face, DeepSpeed, Accelerate, Lightning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.configs.document import Document
from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """What the settings of a framework cost."""
    yield from ()
