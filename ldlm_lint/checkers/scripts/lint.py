"""The entry point for scripts: one script in, its findings out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.scripts import launches
from ldlm_lint.failures import guarded
from ldlm_lint.model import FileResult, Finding
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules import environment_aliases, environment_watchdog
from ldlm_lint.rules.environment_decisions import decide
from ldlm_lint.shell import embedded, tree
from ldlm_lint.shell.launch_code import Code, codes
from ldlm_lint.shell.processes import scene_of
from ldlm_lint.shell.removal import ScriptEditor
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.variables import assignments_of, joined
from ldlm_lint.source import Kind, Source, UnreadableError


def lint(source: Source, options: Mapping[str, object]) -> FileResult:
    """Every finding of the shell rules in a script; ``options`` are the rule options by name.

    Raises UnreadableError if it is nested too deeply, or too broken to be parsed.
    """
    if problem := tree.problem_of(tree.without_carriage_returns(source.data)):
        raise UnreadableError(problem)
    script = scan(source)
    found = codes(source, script)
    rooms = {
        "environment": _environment(source, found, options),
        "launch": launches.findings(found, options),
        "embedded": _embedded(found[0]),
    }
    results = (one for room, part in rooms.items() for one in guarded(part, source.span(0, 0), room))
    findings = sorted(results, key=lambda one: one.order)
    return FileResult(source.path, tuple(findings), unseen=script.unseen)


def _environment(source: Source, found: tuple[Code, ...], options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the variables that the script passes to its processes."""
    script = joined(found)
    assignments = assignments_of(source, script)
    if not assignments:
        return
    decided = list(decide(tuple(assignments), options, ScriptEditor(source, assignments), scene_of(source, script)))
    if script.sources or not script.launches:
        told = {one.span for one in decided}
        decided += environment_watchdog.candidates(assignments, told, options)
        conflicts = {one.span for one in decided if one.rule == environment_aliases.CONFLICTING_ENVIRONMENT_ALIAS.symbol}
        decided += environment_aliases.candidates(assignments, conflicts, options)
    yield from decided


def _embedded(code: Code) -> Iterator[Finding]:
    """The findings of the Python rules in the Python code of a script; those that the project decides have the
    program's own path."""
    for inner in embedded.programs(code):
        at_risk = rules_at_risk(inner.source.data[inner.start :], Kind.PYTHON)
        if at_risk:
            from ldlm_lint.checkers.unparsable import lint

            for finding in lint(inner.source).findings:
                yield from embedded.kept(finding, inner)
