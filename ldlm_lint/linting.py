"""Lints one file in isolation: the result depends on its bytes, the version and the configuration alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.budget import FILE_SECONDS, OverBudgetError, limited
from ldlm_lint.config import Config
from ldlm_lint.failures import internal_error
from ldlm_lint.model import FileResult, Finding
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.python.syntax import parses, syntax_of
from ldlm_lint.rules import ALL, linter
from ldlm_lint.source import Kind, OtherEncodingError, Source, UnreadableError

if TYPE_CHECKING:
    from ldlm_lint.project.tables import Tabled

Overlay = Mapping[str, bytes]


def lint_file(
    path: Path,
    kind: Kind,
    config: Config,
    overlay: Overlay,
    sources: dict[str, Source],
    wants_table: Callable[[str], bool] | None = None,
) -> FileResult:
    """The result of one file; the source of a file with findings is put into ``sources``.

    ``wants_table`` says for which Python files the result includes the table.
    """
    tables = kind is Kind.PYTHON and wants_table is not None and wants_table(path.as_posix())
    try:
        with limited(FILE_SECONDS):
            return _linted(path.as_posix(), kind, config, overlay, sources, tables)
    except OtherEncodingError:
        return FileResult(path.as_posix())
    except UnreadableError as error:
        return _unreadable(path, kind, error, sources)
    except OverBudgetError as error:
        return _unreadable(path, kind, UnreadableError(str(error)), sources)
    except (RecursionError, MemoryError) as error:
        return _unreadable(path, kind, UnreadableError(f"too deeply nested or too large ({type(error).__name__})"), sources)


def _linted(
    name: str, kind: Kind, config: Config, overlay: Overlay, sources: dict[str, Source], tables: bool
) -> FileResult:
    source = source_of(name, kind, overlay)
    table = _table(source) if tables else None
    try:
        result = _lint(source, config)
    except (RecursionError, MemoryError, UnreadableError):
        raise
    except Exception as error:
        result = FileResult(name, (internal_error(source.span(0, 0), error),))
    if result.findings:
        sources[name] = source
    return result if table is None else result._replace(table=table)


def _table(source: Source) -> Tabled | None:
    """The table of a file's facts, from the same tree that is linted."""
    from ldlm_lint.project.tables import tabled

    tree = syntax_of(source)
    return None if tree is None else tabled(tree)


@functools.lru_cache
def selected_rules(config: Config) -> frozenset[str]:
    """The symbols of the rules that are shown, those about the linter itself among them."""
    return config.selected(ALL) | {rule.symbol for rule in linter.RULES if rule.default}


@functools.lru_cache
def idle_rules(config: Config) -> frozenset[str]:
    """The opt-in rules that were not selected; rules of the default set may take part in the fix of others."""
    return frozenset(rule.symbol for rule in ALL if not rule.default) - selected_rules(config)


def source_of(path: str, kind: Kind, overlay: Overlay) -> Source:
    """A file as it is in the overlay, or on disk; raises UnreadableError."""
    return Source.from_bytes(path, overlay[path], kind) if path in overlay else Source.read(Path(path), kind)


def _lint(source: Source, config: Config) -> FileResult:
    """The result of a file by itself; a script or configuration is looked at if it has a word of some rule."""
    if source.kind is Kind.PYTHON:
        return _lint_python(source)
    if not rules_at_risk(source.data, source.kind) - idle_rules(config):
        return FileResult(source.path)
    if source.kind is Kind.SHELL:
        from ldlm_lint.checkers.scripts.lint import lint as lint_shell

        return lint_shell(source, config.facts)
    from ldlm_lint.checkers.configurations.lint import lint as lint_config

    return lint_config(source, config.facts)


def _lint_python(source: Source) -> FileResult:
    if parses(source) and not any(part.error for part in source.parts):
        return FileResult(source.path)
    from ldlm_lint.checkers.unparsable import lint

    return _with_unparsed(lint(source), source) if source.parts else lint(source)


def _with_unparsed(result: FileResult, source: Source) -> FileResult:
    """The result of a notebook together with the cells that are not Python."""
    from ldlm_lint.notebooks.fixes import unparsed

    return result._replace(findings=tuple(sorted((*result.findings, *unparsed(source)), key=lambda one: one.order)))


def _unreadable(path: Path, kind: Kind, error: UnreadableError, sources: dict[str, Source]) -> FileResult:
    """A finding at the offending line of a file whose text cannot be shown."""
    name = path.as_posix()
    # The report asks every source for lines and columns; this one serves a file without text to show.
    blank = Source(name, b"\n" * (error.line - 1), kind)
    sources[name] = blank
    rule = linter.UNREADABLE_FILE
    finding = Finding(rule.symbol, rule.code, blank.span(error.line - 1, error.line - 1), (("error", str(error)),))
    return FileResult(name, (finding,))
