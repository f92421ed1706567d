"""Findings that depend on the execution order of a notebook's cells, which is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ldlm_lint.model import Finding
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.source import Source

# These are about one statement before or after another one. The others are about a loop, a call or an assignment at any
# place.
OF_ORDER = frozenset(
    (
        *("checkpoint-removed-before-replacement", "clip-before-unscale", "environment-set-too-late"),
        *("fused-lost-on-resume", "parameters-frozen-after-wrap", "scheduler-before-optimizer"),
        *("unsynchronized-copy-to-host",),
    )
)


def known(findings: Iterable[Finding], sources: Mapping[str, Source]) -> list[Finding]:
    """The findings without those of notebooks whose two statements are in different cells."""
    return [one for one in findings if one.rule not in OF_ORDER or _in_one_cell(one, sources)]


def _in_one_cell(finding: Finding, sources: Mapping[str, Source]) -> bool:
    path = finding.span.path
    if not is_notebook(path):
        return True
    spans = (finding.span, *(related.span for related in finding.related if related.span.path == path))
    return len({sources[path].part_at(span.start) for span in spans}) == 1
