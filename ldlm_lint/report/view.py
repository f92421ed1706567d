"""The input of every format: the report, display options, and the results of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.model import Applicability, Finding, Fix, Report, Rule, Severity, Span
from ldlm_lint.reach import Standing, counted
from ldlm_lint.report.common import has_edits, positions, shown_path, source_of
from ldlm_lint.report.ranking import ordered

if TYPE_CHECKING:
    from ldlm_lint.autofix.apply import Applied
    from ldlm_lint.graph import Graph
    from ldlm_lint.notebooks.stored import Stored
    from ldlm_lint.region import Region


class Fixed(NamedTuple):
    """What a run did before the report was made: how many findings it fixed or silenced, in how many files, and where.

    ``found`` is how many there were before, None if they were not counted.
    """

    findings: int
    files: int
    done: str = "Fixed"
    places: tuple[Applied, ...] = ()
    found: int | None = None


class Place(NamedTuple):
    """The place of a span: lines and columns are 1-based, in characters, the end is after it.

    ``path`` is relative to the base of the report with forward slashes. In a notebook lines are those of ``cell``.
    """

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None

    @property
    def file(self) -> str:
        """``train.py``, or ``train.ipynb:cell 3``."""
        return self.path if self.cell is None else f"{self.path}:cell {self.cell}"

    def __str__(self) -> str:
        """``train.py:12:5`` or ``train.ipynb:cell 3:12:5``."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class View:
    """A report with display options; ``report`` is already filtered, and no format filters again.

    Paths are relative to ``base``, ``rules`` are by symbol. ``exit_code`` is how the run will end. ``unsafe`` says that
    ``--unsafe-fixes`` was given, ``quiet`` that only findings are shown, ``statistics`` that rules are counted,
    ``colour`` whether styles may be written. ``sort`` is one of `ldlm_lint.report.ranking.ORDERS` and ``group_by`` one
    of its `GROUPS`, empty if the user did not choose. ``since`` is the revision that a report is about the changes
    since. ``again`` are the arguments that selected files and rules, None if they name no files on disk. ``unreached``:
    findings in code of minor importance are shown like the others, not counted by folder.
    ``launches`` reads the launches of the project, for formats that draw them; None without a project on disk.
    """

    report: Report
    base: Path
    rules: Mapping[str, Rule] = field(repr=False)
    exit_code: int = 0
    fail_level: Severity = Severity.REFACTOR
    unsafe: bool = False
    quiet: bool = False
    statistics: bool = False
    colour: bool = False
    fixed: Fixed | None = None
    sort: str = ""
    group_by: str = ""
    since: str = ""
    again: tuple[str, ...] | None = ()
    unreached: bool = False
    launches: Callable[[], Graph] | None = None
    _notebooks: dict[str, Stored | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def shown(self) -> tuple[Finding, ...]:
        """The findings that a report for people shows one by one."""
        findings = self.report.findings
        return findings if self.unreached else tuple(one for one in findings if one.standing is None)

    @property
    def counted(self) -> list[tuple[Standing, int]]:
        """How many of the other findings are in which code."""
        return [] if self.unreached else counted(self.report.findings)

    def ordered(self, usual: str) -> list[Finding]:
        """The findings to show, in the requested order, else in the format's ``usual`` order."""
        return ordered(self.shown, self.rules, self.sort or usual)

    def label(self, finding: Finding) -> str:
        """The consequence of a finding (or "info"), its code and its name: the beginning of every line about it."""
        rule = self.rules[finding.rule]
        word = finding.severity.label if finding.severity < rule.severity else rule.consequence.value
        return f"{word} {finding.code} {finding.rule}"

    def place(self, span: Span) -> Place:
        """The place of a span."""
        (line, column), (end_line, end_column) = positions(self.report, span)
        return Place(shown_path(span.path, self.base), line, column, end_line, end_column, span.cell)

    def region(self, span: Span) -> Region | None:
        """Where a span is in its file, in a notebook too; None if unknown."""
        source = source_of(self.report, span.path)
        if span.cell is not None or (source is not None and source.parts):
            notebook = self.notebook(span.path)
            return None if notebook is None else notebook.region(span)
        from ldlm_lint.region import Region

        (line, column), (end_line, end_column) = positions(self.report, span)
        return Region(line, column, end_line, end_column, span.start, span.end)

    def notebook(self, path: str) -> Stored | None:
        """The file of a notebook, None if it has changed since linting."""
        if path not in self._notebooks:
            from ldlm_lint.notebooks.stored import stored

            source = source_of(self.report, path)
            self._notebooks[path] = None if source is None else stored(source)
        return self._notebooks[path]

    def message(self, finding: Finding) -> str:
        """The message of a finding."""
        return self.rules[finding.rule].text(finding.args)

    def told(self, finding: Finding) -> str:
        """The message of a finding, with the reason why it is only information, for formats of one line."""
        return f"{self.message(finding)} (level info: {finding.why_minor})" if finding.why_minor else self.message(finding)

    def applies(self, fix: Fix | None) -> bool:
        """Whether ``--fix`` with the current flags would apply a fix."""
        limit = Applicability.UNSAFE if self.unsafe else Applicability.SAFE
        return fix is not None and has_edits(fix) and fix.reaches(limit)
