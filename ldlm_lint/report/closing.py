"""Shared parts of the terminal formats: counts instead of the findings, and the summary below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.report import summary
from ldlm_lint.report.lines import Line, line
from ldlm_lint.report.next_steps import Step, next_steps
from ldlm_lint.report.statistics import table
from ldlm_lint.report.view import View

LONGEST = 120
"""Characters of a line with a next step and its command."""
_NEXT = "Next: "


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
    """What can be done next, each with its command: beside it, or below it if a line would be too long for most terminals."""
    width = max((len(step.purpose) for step in steps), default=0)
    below = any(len(_NEXT) + width + 2 + len(step.command) > LONGEST for step in steps)
    for number, step in enumerate(steps):
        head = (_NEXT if number == 0 else " " * len(_NEXT), "bold")
        if below:
            yield line(head, step.purpose)
            yield line(" " * (len(_NEXT) + 2), (step.command, "cyan"))
        else:
            yield line(head, f"{step.purpose:<{width}}  ", (step.command, "cyan"))
