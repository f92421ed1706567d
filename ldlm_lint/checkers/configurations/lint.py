"""The entry point for configuration files: one file in, its findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.configurations import containers, images, own_keys, settings
from ldlm_lint.configs import dotenv
from ldlm_lint.configs.document import ChartError, DataError, Document, DocumentError
from ldlm_lint.configs.read import read
from ldlm_lint.configs.roles import lies_with_pipelines
from ldlm_lint.failures import guarded
from ldlm_lint.model import FileResult, Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.linter import UNPARSABLE_FILE
from ldlm_lint.source import Kind, Source

# Files written by this program: evidence and reports contain variables and paths of a run, and are not settings.
_OURS = lazily(rb'\s*\{\s*"schema":\s*"ldlm-')
_ROOMS = (containers, settings, own_keys)


def lint(source: Source, options: Mapping[str, object]) -> FileResult:
    """Every finding of a configuration file; ``options`` are the rule options by name."""
    if source.kind is Kind.JSON and _OURS.match(source.data):
        return FileResult(source.path)
    try:
        findings = sorted(_found(source, options), key=lambda one: one.order)
    except DataError:
        return FileResult(source.path)
    except ChartError:
        return FileResult(source.path, unseen=(1,))
    except DocumentError as error:
        if lies_with_pipelines(source.path):
            # The service that runs it reports that immediately, and no training reads it.
            return FileResult(source.path, unseen=(error.line,))
        return FileResult(source.path, (_unparsable(source, error),))
    return FileResult(source.path, tuple(findings))


def _found(source: Source, options: Mapping[str, object]) -> Iterator[Finding]:
    if source.kind is Kind.DOTENV:
        yield from dotenv.findings(source, options)
        return
    if source.kind is Kind.DOCKERFILE:
        yield from images.findings(source, options)
        return
    yield from _of_document(source, read(source), options)


def _of_document(source: Source, document: Document, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings of a file that is read in full, from each group of rules for configurations."""
    for room in _ROOMS:
        yield from guarded(room.findings(source, document, options), source.span(0, 0), room.__name__)


def _unparsable(source: Source, error: DocumentError) -> Finding:
    line = min(error.line, len(source.lines))
    text = source.lines[line - 1]
    start = len(text) - len(text.lstrip())
    span = source.span_of(line, start, line, max(len(text.encode()), start))
    args = (("error", error.message), ("checked", "nothing in this file is checked"))
    return Finding(UNPARSABLE_FILE.symbol, UNPARSABLE_FILE.code, span, args)
