"""The findings that only the linked program shows, not the files one by one."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.budget import OverBudgetError, deep
from ldlm_lint.config import Configured
from ldlm_lint.confirming import asks_project, decided
from ldlm_lint.failures import failed, internal_error
from ldlm_lint.linting import selected_rules
from ldlm_lint.model import Finding, Span
from ldlm_lint.projects import Projects
from ldlm_lint.python.syntax import parses
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE, UNREADABLE_FILE
from ldlm_lint.shell.embedded_paths import script_of
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.checkers.queries import Query
    from ldlm_lint.project.questions import Context


def found_by_program(
    files: Sequence[tuple[Path, Kind]], known: Sequence[Finding], configured: Configured, projects: Projects
) -> Iterator[Finding]:
    """The findings of the program in the linted ``files`` that are not among the ``known`` ones."""
    by_project = _by_project(files, known, projects)
    if not by_project:
        return
    from ldlm_lint.checkers.queries import queries

    asked = queries()
    unparsed = {finding.span.path for finding in known if finding.rule == UNPARSABLE_FILE.symbol}
    for context, own in by_project:
        configs = {id(config): config for config in (configured.of(script_of(path) or path) for path in own)}
        selected = frozenset().union(*map(selected_rules, configs.values()))
        wanted = [query for query in asked if not selected.isdisjoint(query.symbols)]
        wanted = [query for query in wanted if _may_hold(query, context, own)]
        context.view.options_of = lambda path: projects.facts(script_of(path) or path)
        parse = functools.cache(functools.partial(_parses, context))
        for finding in _new(_asked(context, wanted, own, projects), known):
            # A file that does not parse cannot be checked after an edit.
            is_broken = finding.fix is not None and any(path in unparsed or not parse(path) for path in _edited(finding))
            yield finding._replace(fix=None) if is_broken else finding


def _edited(finding: Finding) -> frozenset[str]:
    """The files that the fix of a finding changes, and its own."""
    return frozenset([finding.span.path, *(edit.span.path for edit in (finding.fix.edits if finding.fix is not None else ()))])


def _parses(context: Context, path: str) -> bool:
    """Whether a file is Python that parses, or no Python: what no rule looks at by itself has not been parsed so far."""
    module = context.view.module(path)
    return module is None or parses(context.view.source(module))


def _by_project(files: Iterable[tuple[Path, Kind]], known: Iterable[Finding], projects: Projects) -> list[tuple[Context, list[str]]]:
    """The linted Python files, and the Python programs inside of linted scripts, by the project that they are of."""
    given_up = {finding.span.path for finding in known if _says_that_a_file_failed(finding)}
    found: dict[int, tuple[Context, list[str]]] = {}
    scripts: set[str] = set()
    for path, kind in files:
        name = path.as_posix()
        if kind is Kind.SHELL and projects.may_hold_programs(name):
            scripts.add(name)
        elif kind is Kind.PYTHON and name not in given_up:
            context = projects.of(name)
            found.setdefault(id(context), (context, []))[1].append(name)
    for context in dict.fromkeys(map(projects.of, sorted(scripts))):
        inner = [one for one in context.project.files if script_of(one) in scripts]
        if inner:
            found.setdefault(id(context), (context, []))[1].extend(inner)
    return list(found.values())


def _says_that_a_file_failed(finding: Finding) -> bool:
    """Whether a finding says that a whole file could not be checked: it is reported once; a failed rule has a place."""
    failed_as_a_whole = finding.rule == INTERNAL_ERROR.symbol and finding.span.end == 0
    return finding.rule == UNREADABLE_FILE.symbol or failed_as_a_whole


def _may_hold(query: Query, context: Context, paths: Iterable[str]) -> bool:
    """Whether one of the linted files contains a word that a finding would need."""
    return any(any(word in context.project.data(path) for word in query.words) for path in paths)


def _asked(context: Context, asked: Iterable[Query], paths: list[str], projects: Projects) -> Iterator[Finding]:
    from ldlm_lint.project.texts import ChangedError

    linted = context.view.linted = frozenset(paths)
    for query in asked:
        try:
            with projects.clock(paths[0]).running(len(context.project.files)), deep():
                findings = list(query.find(context.view))
        except OverBudgetError as error:
            yield failed(Span(paths[0], 0, 0), f"{query.symbols[0]}: {error}")
            return
        except ChangedError as error:
            yield failed(Span(paths[0], 0, 0), f"{query.symbols[0]}: {error}")
            continue
        except Exception as error:
            yield internal_error(Span(paths[0], 0, 0), error, query.symbols[0])
            continue
        yield from _decided(findings, linted, context, projects)


def _decided(findings: Iterable[Finding], linted: Collection[str], context: Context, projects: Projects) -> Iterator[Finding]:
    for finding in findings:
        if finding.span.path in linted:
            found = decided(finding, context, projects.clock(finding.span.path)) if asks_project(finding) else finding
            if found is not None:
                yield from _of_file(found, context)


def _of_file(finding: Finding, context: Context) -> Iterator[Finding]:
    """A finding about a program inside a script, converted to one about the script; others unchanged."""
    script = script_of(finding.span.path)
    if script is None:
        yield finding
        return
    from ldlm_lint.shell.embedded import of_program

    yield from of_program(finding, context.project.data(script), context.project.data(finding.span.path))


def _new(findings: Iterable[Finding], known: Sequence[Finding]) -> Iterator[Finding]:
    """The findings whose place no known finding of the same rule has or relates to; one per place."""
    places: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for finding in known:
        # A value from a configuration differs from one in the code, even if the same line reads it.
        related = finding.related if finding.span.path.endswith((".py", ".ipynb")) else ()
        for span in (finding.span, *(one.span for one in related)):
            places[finding.rule, span.path].append(span)
    given: set[tuple[str, Span]] = set()
    for finding in findings:
        place = (finding.rule, finding.span)
        if place not in given and not any(_meet(finding.span, span) for span in places.get((finding.rule, finding.span.path), ())):
            given.add(place)
            yield finding


def _meet(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
