"""The launch rules of scripts: commands that end early, pipelines, an old launcher, fixed accumulation, many workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.checkers.rule_files import findings_of
from ldlm_lint.failures import guarded
from ldlm_lint.frameworks import commands
from ldlm_lint.model import Claim, Finding, Span
from ldlm_lint.rules.linter import INTERNAL_ERROR
from ldlm_lint.shell import (
    launch_batch,
    launch_calls,
    launch_deprecated,
    launch_flags,
    launch_lines,
    launch_pipes,
    launch_prefixes,
    launch_shared,
    launch_values,
)
from ldlm_lint.shell.launch_code import Code

_NOT_A_TEST = Claim("stands-outside-tests")


def findings(found: tuple[Code, ...], options: Mapping[str, object]) -> Iterator[Finding]:
    """Every finding of the launch rules in the codes of a script; ``options`` are the rule options by name."""
    reported = set()
    for finding in _found(found, options):
        if finding.rule == INTERNAL_ERROR.symbol:
            yield finding
            continue
        reported.add(finding.span)
        yield finding._replace(claims=(*finding.claims, _NOT_A_TEST))
    for finding in launch_shared.values_for_others(found[0], reported, options):
        yield finding._replace(claims=(*finding.claims, _NOT_A_TEST))


def _found(found: tuple[Code, ...], options: Mapping[str, object]) -> Iterator[Finding]:
    script = found[0]
    rooms = [launch_lines.truncated(script), launch_prefixes.detached(script), launch_deprecated.deprecated(script), launch_batch.drifting(script, found)]
    for code in found:
        if code.shell:
            rooms.append(launch_lines.truncated(code))
        rooms += [
            launch_pipes.hiding(code, script),
            launch_values.fixed_accumulation(code, script),
            launch_values.too_many_workers(code, script, options),
            launch_calls.too_many_workers(code, options),
            _trainer_settings(code, script, options),
            launch_flags.own_options(code, script, options),
        ]
    for room in rooms:
        yield from guarded(room, script.source.span(0, 0), getattr(room, "__name__", "launch"))


def _trainer_settings(code: Code, script: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings about the trainings that a script launches with the arguments of transformers' Trainer."""
    reported: set[tuple[str, Span]] = set()
    for section in commands.sections(code, script):
        for finding in findings_of(section, options):
            if (finding.rule, finding.span) not in reported:
                reported.add((finding.rule, finding.span))
                yield finding
