"""What is said of a Python file by itself: that its text does not parse. All other rules about Python ask the linked program."""

from __future__ import annotations

import sys

from ldlm_lint.model import FileResult, Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.python.syntax import required
from ldlm_lint.rules.linter import UNPARSABLE_FILE
from ldlm_lint.source import Source

_TEMPLATE = lazily(r"\{\{.*\}\}")
"""Placeholders of cookiecutter in a path: the file is not Python yet, which its author knows."""
_DATABRICKS = b"# Databricks notebook source"
"""The first line of a notebook that Databricks exported as Python, as public repositories have it."""
_EXPORTED = "a notebook that Databricks exported, whose commands are not Python"


def lint(source: Source) -> FileResult:
    """The result of a Python file: a finding where its text does not parse, the line as unseen where it is a template."""
    line, message = _first_error(source)
    if not line:
        return FileResult(source.path)
    if _TEMPLATE.search(source.path):
        return FileResult(source.path, unseen=(line,))
    return FileResult(source.path, (_syntax_error(source, line, message),))


def _first_error(source: Source) -> tuple[int, str]:
    """The line of the first syntax error, from 1, and what is wrong there; line 0 for a text that parses."""
    try:
        required(source)
    except SyntaxError as failure:
        return failure.lineno or 1, failure.msg or "invalid syntax"
    except (TypeError, ValueError, MemoryError, RecursionError) as failure:
        # The parser raises a bare MemoryError where its own stack is full.
        return 1, (str(failure) if not isinstance(failure, RecursionError) else "") or "too deeply nested"
    return 0, ""


def _syntax_error(source: Source, line: int, message: str) -> Finding:
    from ldlm_lint.code.newer_syntax import asks_for_newer, newer_python

    line = min(line, len(source.lines))
    text = source.lines[line - 1]
    start = len(text) - len(text.lstrip())
    span = source.span_of(line, start, line, max(len(text.encode()), start))
    message_alone, newer = message, newer_python(text, message, sys.version_info[:2])
    if newer:
        message += f" (Python {newer} and later can read it, ldlm-lint runs on {sys.version_info[0]}.{sys.version_info[1]})"
    args = (("error", message), ("checked", "only the code before it is checked"))
    finding = Finding(UNPARSABLE_FILE.symbol, UNPARSABLE_FILE.code, span, args, claims=asks_for_newer(message_alone, text))
    return finding.lowered(_EXPORTED) if source.data.startswith(_DATABRICKS) and text.lstrip()[:1] in ("!", "%") else finding
