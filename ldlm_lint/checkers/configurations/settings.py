"""Files that a training framework reads: the settings of transformers' Trainer and its relatives, Lightning, Hydra objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs.document import Document
from ldlm_lint.frameworks import documents, objects
from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the settings of a framework."""
    if documents.HINT.search(source.data):
        for section in documents.sections(source, document):
            yield from findings_of(section, options)
    engine = documents.engine_section(source, document) if b"gradient_accumulation_steps" in source.data else None
    if engine is not None:
        yield from findings_of(engine, options)
    if objects.HINT.search(source.data):
        for section, claims in objects.sections(source, document):
            yield from (one._replace(claims=(*one.claims, *claims)) for one in findings_of(section, options))
