"""Shared parts of the terminal formats: counts instead of the findings, and the summary below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.report import summary
from ldlm_lint.report.lines import Line, line
from ldlm_lint.report.next_steps import Step, next_steps
from ldlm_lint.report.statistics import table
from ldlm_lint.report.view import View


def closed(view: View, blocks: Iterable[Iterable[Line]]) -> Iterator[Iterable[Line]]:
    """The blocks of the findings, or the counts of their rules if requested, and the summary."""
    if view.statistics:
        yield map(line, table(view).splitlines())
    else:
        yield from blocks
    if not view.quiet:
        yield _summary(view)


def _summary(view: View) -> Iterator[Line]:
    found = summary.found(view)
    for text in summary.lines(view):
        yield line((text, "bold" if text == found else ""))
    yield from _steps(list(next_steps(view)))


def _steps(steps: list[Step]) -> Iterator[Line]:
    """The possible next steps, each with its command, which may be long."""
    width = max((len(step.purpose) for step in steps), default=0)
    for number, step in enumerate(steps):
        yield line(("Next: " if number == 0 else "      ", "bold"), f"{step.purpose:<{width}}  ", (step.command, "cyan"))
