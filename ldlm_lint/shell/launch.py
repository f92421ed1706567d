"""The launch rules of scripts: commands that end early, pipelines, an old launcher, fixed accumulation, many workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ldlm_lint.model import Claim, Finding
from ldlm_lint.shell import (
    launch_batch,
    launch_calls,
    launch_deprecated,
    launch_frameworks,
    launch_lines,
    launch_pipes,
    launch_shared,
    launch_values,
)
from ldlm_lint.shell.launch_code import Code

_NOT_A_TEST = Claim("stands-outside-tests")


def findings(found: tuple[Code, ...], options: Mapping[str, object]) -> Iterator[Finding]:
    """Every finding of the launch rules in the codes of a script; ``options`` are the rule options by name."""
    reported = set()
    for finding in _found(found, options):
        reported.add(finding.span)
        yield replace(finding, claims=(*finding.claims, _NOT_A_TEST))
    for finding in launch_shared.values_for_others(found[0], reported, options):
        yield replace(finding, claims=(*finding.claims, _NOT_A_TEST))


def _found(found: tuple[Code, ...], options: Mapping[str, object]) -> Iterator[Finding]:
    script = found[0]
    yield from launch_lines.truncated(script)
    yield from launch_deprecated.deprecated(script)
    yield from launch_batch.drifting(script)
    for code in found:
        if code.shell:
            yield from launch_lines.truncated(code)
        yield from launch_pipes.hiding(code, script)
        yield from launch_values.fixed_accumulation(code, script)
        yield from launch_values.too_many_workers(code, script, options)
        yield from launch_calls.too_many_workers(code, options)
        yield from launch_frameworks.trainer_settings(code, script, options)
