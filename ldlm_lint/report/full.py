"""The full format: one block for each finding in ruff's style, and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TextIO

from ldlm_lint.model import Finding, Report, Rule
from ldlm_lint.report import closing
from ldlm_lint.report.blocks import Blocks
from ldlm_lint.report.lines import Line
from ldlm_lint.report.lines import write as write_lines
from ldlm_lint.report.ranking import PATH
from ldlm_lint.report.view import View


def write(view: View, stream: TextIO) -> None:
    """Write a report to a stream, styled where the view has colour.

    Lines are never wrapped: the terminal wraps long lines itself, and a pipe gets whole lines.
    """
    write_lines(closing.closed(view, _shown(view)), stream, colour=view.colour)


def finding_lines(report: Report, finding: Finding, *, base: Path, rules: Mapping[str, Rule]) -> Iterator[Line]:
    """The lines of one finding as the report shows them, without its fix."""
    blocks = Blocks(View(report, base, rules, unsafe=True))
    yield blocks.headline(finding)
    yield from blocks.found(finding)


def _shown(view: View) -> Iterator[Iterable[Line]]:
    """The blocks of the findings, each with an empty line after it."""
    blocks = Blocks(view)
    for finding in view.ordered(PATH):
        yield (blocks.headline(finding), *blocks.lines(finding), ())
