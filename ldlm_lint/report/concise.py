"""One line for each finding, ``path:line:column: consequence code rule: message``, as compilers write and editors read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from ldlm_lint.model import Finding
from ldlm_lint.report import summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.ranking import PATH
from ldlm_lint.report.statistics import table
from ldlm_lint.report.view import View


def write(view: View, stream: TextIO) -> None:
    """Write the findings to a stream and, unless only findings are wanted, the counts."""
    stream.write(render(view))


def render(view: View) -> str:
    """The whole text; ``[*]`` at the end of a line says that the current flags would fix it."""
    shown = table(view) if view.statistics else "".join(f"{one}\n" for one in _lines(view))
    return shown if view.quiet else shown + "".join(f"{line}\n" for line in summary.lines(view))


def line(view: View, finding: Finding) -> str:
    """The line of one finding."""
    place = clean(str(view.place(finding.span)))
    # In the log of a GitHub workflow two colons begin a command, and a name may begin with them.
    place = f"./{place}" if place.startswith(":") else place
    return f"{place}: {view.label(finding)}: {clean(view.told(finding))}"


def _lines(view: View) -> Iterator[str]:
    for finding in view.ordered(PATH):
        yield line(view, finding) + (f" {summary.FIXABLE}" if view.applies(finding.fix) else "")
