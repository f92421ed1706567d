"""Files that a training framework reads: the settings of transformers' Trainer and its relatives, Lightning, Hydra objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.configs import framework_objects, framework_sections
from ldlm_lint.configs.document import Document
from ldlm_lint.model import Finding
from ldlm_lint.source import Source


def findings(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the settings of a framework."""
    if framework_sections.HINT.search(source.data):
        for section in framework_sections.sections(source, document):
            yield from findings_of(section, options)
    engine = framework_sections.engine_section(source, document) if b"gradient_accumulation_steps" in source.data else None
    if engine is not None:
        yield from findings_of(engine, options)
    if framework_objects.HINT.search(source.data):
        yield from framework_objects.findings(source, document, options)
