"""The text format: one block for each finding in the manner of ruff, and a footer with the counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Report, Rule, Severity, Span
from ldlm_lint.report import summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import has_edits, is_open, positions, settling, shown_path, source_of
from ldlm_lint.report.excerpt import excerpt
from ldlm_lint.report.lines import Line, line, stripped
from ldlm_lint.report.lines import write as write_lines
from ldlm_lint.report.patch import Change, patch
from ldlm_lint.report.statistics import table
from ldlm_lint.report.view import View

MOST_CHANGES = 24
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REFACTOR: "blue", Severity.INFO: "cyan"}
_FRAME = "blue"


def write(view: View, stream: TextIO) -> None:
    """Write a report to a stream, styled where the view has colour.

    Lines are never wrapped: what is long the terminal breaks by itself, and a pipe gets whole lines.
    """
    write_lines(_shown(view), stream, colour=view.colour)


def _shown(view: View) -> Iterator[Iterable[Line]]:
    """The blocks of the findings, each with an empty line behind it, or their counts; then the footer."""
    if view.statistics:
        yield map(line, table(view.report.findings, unsafe=view.unsafe).splitlines())
    else:
        blocks = _Blocks(view)
        for finding in view.report.findings:
            yield (*blocks.lines(finding), ())
    if not view.quiet:
        yield _footer(view)


def finding_lines(report: Report, finding: Finding, *, base: Path, rules: Mapping[str, Rule]) -> Iterator[Line]:
    """The lines of one finding as the report shows them, without its fix."""
    yield from _Blocks(View(report, base, rules, unsafe=True)).finding(finding)


@dataclass(frozen=True)
class _Blocks:
    """The blocks of one report; ``shown`` remembers the fixes that a block has spelt out already."""

    view: View
    shown: dict[tuple[Edit, ...], str] = field(default_factory=dict)

    def lines(self, finding: Finding) -> Iterator[Line]:
        """The lines of one finding and its fix."""
        yield from self.finding(finding)
        if finding.fix is not None:
            yield from self._help(finding, finding.fix, self._gutter(finding))
        yield from self._settling(finding)

    def finding(self, finding: Finding) -> Iterator[Line]:
        """The lines of one finding without its fix."""
        gutter = self._gutter(finding)
        yield self._head(finding)
        yield line(" " * gutter, ("--> ", _FRAME), self._place(finding.span))
        yield from self._excerpt(finding, gutter)
        for related in finding.related:
            place = self._place(related.span, column=False)
            yield line(" " * gutter, ("::: ", _FRAME), f"{place} {clean(related.message)}")
        if finding.evidence is not None:
            yield line(("probe: ", "bold magenta"), clean(finding.evidence.words))

    def _settling(self, finding: Finding) -> Iterator[Line]:
        """The command that would settle the finding, until one has."""
        command = settling(self.view.report, finding, self.view.rules[finding.rule], self.view.base)
        if command is not None and is_open(finding) and not self.view.quiet:
            yield line(("probe: ", "bold magenta"), f"settle it with {clean(command)}")

    def _head(self, finding: Finding) -> Line:
        style = f"bold {_STYLES[finding.severity]}"
        mark = ("[*]", "cyan") if self.view.applies(finding.fix) else ""
        message = clean(self.view.message(finding))
        return line((finding.code, style), mark, " ", (finding.rule, "bold"), f": {message}")

    def _place(self, span: Span, *, column: bool = True) -> str:
        place = self.view.place(span)
        return clean(str(place) if column else f"{place.file}:{place.line}")

    def _gutter(self, finding: Finding) -> int:
        """The width of the widest line number of the block."""
        source = source_of(self.view.report, finding.span.path)
        _, (last, _) = positions(self.view.report, finding.span)
        return len(str(min(last + 1, len(source.lines)))) if source else 1

    def _excerpt(self, finding: Finding, gutter: int) -> Iterator[Line]:
        source = source_of(self.view.report, finding.span.path)
        if source is None or not source.data:
            return
        bar = line((f"{'':{gutter}} |", _FRAME))
        yield bar
        for row in excerpt(source, finding.span):
            number = "" if row.number is None else str(row.number)
            style = _STYLES[finding.severity] if row.marks else ""
            yield stripped(line((f"{number:>{gutter}} |", _FRAME), " ", (row.text, style)))
        yield bar

    def _help(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Line]:
        earlier = self.shown.get(fix.edits) if has_edits(fix) else None
        if earlier:
            yield line(("help: ", "bold cyan"), f"one fix with {earlier}, shown there")
            return
        yield line(("help: ", "bold cyan"), clean(fix.title))
        if has_edits(fix):
            self.shown[fix.edits] = f"{finding.code} at {self._place(finding.span)}"
            yield from self._changes(finding, fix, gutter)
        if fix.applicability is not Applicability.SAFE:
            label = "unsafe fix" if fix.applicability is Applicability.UNSAFE else "not applied by --fix"
            reason = f": {clean(fix.reason)}" if fix.reason else ""
            yield line(("note: ", "bold"), label, reason)
        if fix.trade:
            yield line(("note: ", "bold"), f"it trades {fix.trade}: applied by --interactive, or with --unsafe-fixes and --select {finding.rule}")

    def _changes(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Line]:
        lines = 0
        for path in sorted({edit.span.path for edit in fix.edits}, key=lambda path: (path != finding.span.path, path)):
            source = source_of(self.view.report, path)
            if path != finding.span.path:
                yield line(" " * gutter, ("--> ", _FRAME), clean(shown_path(path, self.view.base)))
            changes = patch(source, [edit for edit in fix.edits if edit.span.path == path]) if source else []
            yield from (_change(change, gutter) for change in changes[: max(MOST_CHANGES - lines, 0)])
            lines += len(changes)
        if lines > MOST_CHANGES:
            yield line((f"{'':{gutter}} ... {lines - MOST_CHANGES} more lines, see --diff", "dim"))


def _change(change: Change, gutter: int) -> Line:
    if not change.sign:
        return line((f"{'':{gutter}} ...", "dim"))
    number = "" if change.number is None else str(change.number)
    style = "red" if change.sign == "-" else "green"
    return stripped(line(f"{number:>{gutter}} ", (f"{change.sign} {clean(change.text)}", style)))


def _footer(view: View) -> Iterator[Line]:
    found = summary.found(view.report, remaining=view.fixed is not None)
    for text in summary.lines(view):
        if text.startswith(summary.FIXABLE):
            yield line((summary.FIXABLE, "cyan"), text.removeprefix(summary.FIXABLE))
        else:
            yield line((text, "bold" if text == found else ""))
    if view.report.findings:
        gravest = max(view.report.findings, key=lambda finding: finding.severity)
        yield line(f"Why it matters and when not to follow: ldlm-lint explain {gravest.rule}")
